"""How to reproduce a run."""

import shlex

import pytest

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.report.blocks import Code, Where
from harness.report.sections import reproduce
from tests.factories import broken, cell, cells, rounds, run
from tests.report.sections.reading import everything, texts

SECONDS = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 9], strict=True))


def section(of):
    (found,) = reproduce.make_sections(of)
    return found


def codes(found):
    return [entry.text for entry in everything(found) if isinstance(entry, Code)]


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["harness", "matrix"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed", "7"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed=7"], "harness matrix --seed=7"),
        (["harness", "matrix", "-a", "mode=op by op; rm"], "harness matrix -a 'mode=op by op; rm' --seed 7"),
    ],
)
def test_the_command_is_that_of_the_run_with_the_seed(typed, command):
    assert reproduce.make_command(run(SECONDS, command=typed)) == command


def test_a_run_is_reproduced_with_harness_and_without_it():
    assert codes(section(Results(run(SECONDS), rounds(SECONDS)))) == [
        "harness matrix -s step --seed 7",
        "harness report results/2026-11-21T04-10-00Z-3f2a",
        "harness bundle results/2026-11-21T04-10-00Z-3f2a",
    ]


def test_without_a_result_there_is_no_comparison_to_run():
    lost = [broken(cell(), Status.FAILED)]
    assert not any("bundle" in code for code in codes(section(Results(run([cell()]), lost))))


def test_the_folder_is_one_word_of_the_command():
    (_, report, *_) = codes(section(Results(run(SECONDS, folder="/tmp/my runs/x"), [])))
    assert shlex.split(report) == ["harness", "report", "/tmp/my runs/x"]


def test_the_users_own_scenario_is_saved_first():
    asked = run(SECONDS, scripts={"step": "print()"})
    assert texts(section(Results(asked, [])))[0] == (
        "step.py isn't part of the project. First, save it from “Run details” to the path in the command."
    )


def test_it_is_pasted_and_not_in_the_terminal():
    found = section(Results(run(SECONDS), rounds(SECONDS)))
    assert found.shown(Where.PASTE) == found.shown(Where.PAGE) == found
    assert found.shown(Where.TERMINAL) is None
