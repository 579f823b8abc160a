import pytest

from harness.analysis.results import Results
from harness.history.summary import summarize
from harness.model.history import Summary
from harness.model.run import Machine
from tests.factories import cells, rounds, run


@pytest.fixture
def night() -> Summary:
    """A run of four cells in two environments, the last of which takes 20 % longer than the reference."""
    planned = cells()
    seconds = {entry: 0.012 if entry == planned[-1] else 0.01 for entry in planned}
    of_night = run(planned, controlled=True, machine=Machine("m-00000001", "lab"), kit="c0ffee", own={"step": "ab12"})
    return summarize(Results(of_night, rounds(seconds, 5, 0.002, 1)))
