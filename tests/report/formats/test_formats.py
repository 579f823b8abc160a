"""What holds for every format."""

import re

import pytest

from harness.model.errors import NothingSelectedError
from harness.report.formats import Format, render
from tests.report.formats.examples import HOSTILE, example, hostile, nothing, one_launch

EVERY = list(Format)


@pytest.mark.parametrize("format", EVERY)
def test_every_format_holds_every_cell_with_a_number(format: Format) -> None:
    text = render(format, *example())
    for name in ("tf1.14", "tf2.0", "eager"):
        assert name in text


@pytest.mark.parametrize("format", EVERY)
def test_hostile_strings_are_harmless(format: Format) -> None:
    text = render(format, *hostile())
    # CSV is text: what a spreadsheet shows is never markup
    outside = re.sub(r"^(`{3,})\w+\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert format is Format.CSV or "<script" not in outside
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", text)
    assert text.encode("utf-8")
    assert len(text) < 100_000


@pytest.mark.parametrize("format", EVERY)
def test_the_same_launches_give_the_same_text(format: Format) -> None:
    assert render(format, *example()) == render(format, *example())


@pytest.mark.parametrize("format", EVERY)
def test_a_single_launch_is_enough(format: Format) -> None:
    assert "step" in render(format, *one_launch())


@pytest.mark.parametrize("format", EVERY)
def test_a_run_without_a_number_is_told_or_refused_with_a_sentence(format: Format) -> None:
    if format in {Format.PYPERF, Format.BENCHMARK_ACTION}:
        with pytest.raises(NothingSelectedError, match="No cell gave a number"):
            render(format, *nothing())
    else:
        assert "it raised" in render(format, *nothing())


def test_the_hostile_run_is_hostile() -> None:
    run, launches = hostile()
    assert run.scenarios[0].name == HOSTILE
    assert max(len(launch.stderr) for launch in launches) > 10_000_000
