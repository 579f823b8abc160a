"""What holds for every format."""

import pytest

from harness.model.errors import NothingSelectedError
from harness.report.formats import Format, render
from tests import observing
from tests.report.formats.examples import example, nothing, one_launch

#: tests/report/html has the page's, which is no text without its scripts.
EVERY = [format for format in Format if format is not Format.HTML]


@pytest.mark.parametrize("format", EVERY)
def test_every_format_holds_every_cell_with_a_number(format: Format) -> None:
    text = render(format, *example())
    for name in ("tf1.14", "tf2.0", "eager"):
        assert name in text


@pytest.mark.parametrize("format", EVERY)
def test_the_same_launches_give_the_same_text(format: Format) -> None:
    assert render(format, *example()) == render(format, *example())


@pytest.mark.parametrize("format", EVERY)
def test_a_single_launch_is_enough(format: Format) -> None:
    assert "step" in render(format, *one_launch())


@pytest.mark.parametrize("format", [Format.JSON, Format.CSV, Format.JUNIT, Format.SUMMARY])
def test_a_run_that_only_observes_is_not_called_broken(format: Format) -> None:
    text = render(format, *observing.example())
    assert "failed" not in text
    assert "interrupted" not in text
    assert "<error" not in text


@pytest.mark.parametrize("format", EVERY)
def test_a_run_without_a_number_is_told_or_refused_with_a_sentence(format: Format) -> None:
    if format in {Format.PYPERF, Format.BENCHMARK_ACTION}:
        with pytest.raises(NothingSelectedError, match="No cell gave a number"):
            render(format, *nothing())
    else:
        assert "it raised" in render(format, *nothing())
