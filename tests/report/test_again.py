"""How to run it again."""

import pytest

from harness.analysis.results import Results
from harness.model.run import ByHand
from harness.report.again import again as told
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 9], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def ask(run, chosen):
    """A backend whose lines are the names of the chosen cells."""
    return ByHand("bake", ["build"], [f"{name}: {chosen[name]}" for name in chosen])


def again(times=SECONDS, **changes):
    return of(Results(run(times, **changes), rounds(times, spread=0.0), ask))


def of(results):
    return told(results.run, results.found, results.answers, results.by_hand)


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        (["harness", "matrix"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed", "7"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed=7"], "harness matrix --seed=7"),
        (["harness", "matrix", "-a", "mode=op by op; rm"], "harness matrix -a 'mode=op by op; rm' --seed 7"),
    ],
)
def test_the_command_is_what_was_typed_with_the_seed(command, typed):
    assert again(command=command).command == typed


def test_without_the_harness_it_is_as_the_backend_says():
    made = again()
    assert (made.bake, made.others) == ("bake", ["build"])
    assert len(made.by_hand) == 2


def test_a_backend_that_knows_no_lines_has_the_harnesss_command_alone():
    made = of(Results(run(SECONDS), rounds(SECONDS, spread=0.0)))
    assert (made.bake, list(made.others), list(made.by_hand)) == ("", [], [])


def test_by_hand_is_the_row_of_the_first_answer_that_is_farthest_from_equal():
    first, second = again().by_hand
    assert first == "tf1.14: step tf1.14 train_on_batch float32 eager"
    assert second == "tf2.0: step tf2.0 train_on_batch float32 eager"


def test_an_environment_in_no_answer_has_its_first_cell():
    only = {of: seconds for of, seconds in SECONDS.items() if of.environment == "tf2.0"}
    assert again(only, scenarios=[scenario(compare=[])]).by_hand == ["tf2.0: step tf2.0 fit float32 graph"]


def test_an_environment_that_could_not_be_had_has_no_line():
    assert not [line for line in again(environments=ENVIRONMENTS).by_hand if "tf2.1" in line]


def test_cells_that_gave_no_number_are_run_by_hand_too():
    assert len(of(Results(run([cell()]), [], ask)).by_hand) == 1
