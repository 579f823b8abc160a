"""What holds for every format."""

import pytest

from harness.analysis.results import Results
from harness.model.errors import NothingSelectedError
from harness.report.formats import names, render
from tests import observing
from tests.report.formats.examples import example, nothing, one_launch

#: tests/report/html has the page's, which is no text without its scripts.
EVERY = [format for format in names() if format != "html"]


@pytest.mark.parametrize("format", EVERY)
def test_every_format_holds_every_cell_with_a_number(format: str) -> None:
    text = render(format, Results(*example()))
    for name in ("tf1.14", "tf2.0", "eager"):
        assert name in text


@pytest.mark.parametrize("format", EVERY)
def test_the_same_launches_give_the_same_text(format: str) -> None:
    assert render(format, Results(*example())) == render(format, Results(*example()))


@pytest.mark.parametrize("format", EVERY)
def test_a_single_launch_is_enough(format: str) -> None:
    assert "step" in render(format, Results(*one_launch()))


@pytest.mark.parametrize("format", ["json", "csv", "junit", "summary"])
def test_a_run_that_only_observes_is_not_called_broken(format: str) -> None:
    text = render(format, Results(*observing.example()))
    assert "failed" not in text
    assert "interrupted" not in text
    assert "<error" not in text


@pytest.mark.parametrize("format", EVERY)
def test_a_run_without_a_number_is_told_or_refused_with_a_sentence(format: str) -> None:
    if format in {"pyperf", "benchmark-action"}:
        with pytest.raises(NothingSelectedError, match="No cell has a number"):
            render(format, Results(*nothing()))
    else:
        assert "it raised" in render(format, Results(*nothing()))


def test_a_format_is_called_as_its_module_is() -> None:
    assert names() == sorted(["benchmark-action", "csv", "html", "json", "junit", "md", "pyperf", "summary"])
