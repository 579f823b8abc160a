"""What holds for every format."""

import pytest

from harness.analysis.results import Results
from harness.model.errors import NothingSelectedError
from harness.report.formats import list_formats, render
from tests import observing
from tests.report.formats.examples import example, nothing, one_launch

#: tests/report/html has the page's, which is no text without its scripts.
EVERY = [format for format in list_formats() if format != "html"]

#: The one that has no place for a run without a result.
REFUSING = {"benchmark-action"}


@pytest.mark.parametrize("format", EVERY)
def test_every_format_holds_every_cell_with_a_number(format):
    text = render(format, Results(*example()))
    assert all(name in text for name in ("tf1.14", "tf2.0", "eager"))
    assert text == render(format, Results(*example()))
    assert "step" in render(format, Results(*one_launch()))


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
