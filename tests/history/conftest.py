import pytest

from harness.analysis.results import Results
from harness.history.summary import summarise
from harness.model.history import Summary
from harness.model.run import Machine
from tests.factories import cells, rounds, run


@pytest.fixture
def night() -> Summary:
    """A run of four cells in two environments, the last of which takes 20 % longer than the reference."""
    planned = cells()
    seconds = {each: 0.012 if each == planned[-1] else 0.01 for each in planned}
    made = run(planned, controlled=True, machine=Machine("m-00000001", "lab"), kit="c0ffee", own={"step": "ab12"})
    return summarise(Results(made, rounds(seconds, 5, 0.002, 1)))
