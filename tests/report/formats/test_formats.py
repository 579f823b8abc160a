"""What holds for every format."""

import pytest

from harness.analysis.results import Results
from harness.model.errors import NothingSelectedError
from harness.report.formats import list_formats, render
from tests import observing
from tests.report.formats.examples import nothing

#: tests/report/html has the page's, which is no text without its scripts.
EVERY = [format for format in list_formats() if format != "html"]

#: The one that has no place for a run without a result.
REFUSING = {"benchmark-action"}


@pytest.mark.parametrize("format", EVERY)
def test_a_run_without_a_number_is_told_or_refused(format):
    if format in REFUSING:
        with pytest.raises(NothingSelectedError):
            render(format, Results(*nothing()))
    else:
        assert "it raised" in render(format, Results(*nothing()))
        # a run that only observes is not called broken
        observed = render(format, Results(*observing.example()))
        assert not any(word in observed for word in ("failed", "interrupted", "<error"))
