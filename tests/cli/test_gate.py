"""`harness matrix --fail-on slower`: which exit code a run has."""

import pytest

from harness.cli.gate import check
from harness.model.errors import Exit
from tests.cli.conftest import Harness
from tests.factories import cell, cells, rounds, run, scenario

GRAPH = cells(modes=["graph"])


def judged(seconds, of=GRAPH, **changes):
    times = dict(zip(of, seconds, strict=True))
    return check(run(times, **changes), rounds(times, spread=0.0))


@pytest.mark.parametrize(
    ("seconds", "code"), [([0.01, 0.02], Exit.SLOWER), ([0.01, 0.01], Exit.OK), ([0.02, 0.01], Exit.OK)]
)
def test_an_environment_that_is_slower_than_the_reference_is_five(seconds, code):
    assert judged(seconds) is code


def test_a_value_of_an_axis_that_is_slower_than_another_is_no_regression():
    assert judged([0.01, 0.02, 0.01, 0.02], cells()) is Exit.SLOWER, "each release's default mode"
    along = scenario(compare=[scenario().compare[0], scenario().compare[1]])
    assert judged([0.01, 0.02, 0.01, 0.02], cells(), scenarios=[along]) is Exit.OK


@pytest.mark.parametrize("count", [1, 3])
def test_a_gate_that_judged_nothing_does_not_pass(count, capsys):
    times = dict.fromkeys(GRAPH, 0.01)
    assert check(run(times), rounds(times, count=count)) is Exit.NOTHING_SELECTED
    assert "No environment has a verdict, so nothing was checked for --fail-on." in capsys.readouterr().err


def test_a_run_of_one_environment_judges_nothing():
    times = {cell(): 0.01, cell(mode="eager"): 0.02}
    assert check(run(times), rounds(times)) is Exit.NOTHING_SELECTED


def test_the_command_takes_it_and_a_failed_cell_wins(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine,raises", "--rounds", "1", "--fail-on", "slower")
    assert done.returncode == 1, done.stderr


def test_the_command_says_that_nothing_was_judged(harness: Harness) -> None:
    done = harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1", "--fail-on", "slower")
    assert done.returncode == 3
    assert "nothing was checked for --fail-on" in done.stderr
