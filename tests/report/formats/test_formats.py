"""What holds for every format."""

import pytest

from harness.analysis.results import Results
from harness.report.formats import list_formats, render
from tests import observing
from tests.report.formats.examples import nothing

#: tests/report/html has the page's, which is no text without its scripts.
EVERY = [format for format in list_formats() if format != "html"]


@pytest.mark.parametrize("format", EVERY)
def test_a_run_without_a_number_is_told(format):
    assert "it raised" in render(format, Results(*nothing()))
    # a run that only observes is not called broken
    observed = render(format, Results(*observing.example()))
    assert not any(word in observed for word in ("failed", "interrupted", "<error"))
