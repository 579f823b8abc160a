"""How to run it again."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.backends import registry
from harness.model.backend import BackendFacts
from harness.model.launch import Sample
from harness.report.blocks import Code, Where
from harness.report.sections import again
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario
from tests.report.sections.reading import everything, summaries, texts

SECONDS = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 9], strict=True))


def results(asked, launches):
    """Results whose lines by hand are the backend's own."""
    return Results(asked, launches, registry.by_hand)


def section(of):
    (found,) = again.sections(of)
    return found


def codes(found):
    return [each.text for each in everything(found) if isinstance(each, Code)]


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["harness", "matrix"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed", "7"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed=7"], "harness matrix --seed=7"),
        (["harness", "matrix", "-a", "mode=op by op; rm"], "harness matrix -a 'mode=op by op; rm' --seed 7"),
    ],
)
def test_the_command_is_what_was_typed_with_the_seed(typed, command):
    assert again.command(run(SECONDS, command=typed)) == command


def chosen(times=SECONDS, **changes):
    asked = run(times, **changes)
    return {name: str(of) for name, of in again.chosen(Results(asked, rounds(times, spread=0.0))).items()}


def test_by_hand_is_the_row_of_the_first_answer_that_is_farthest_from_equal():
    # no environment of the run but these: what could not be had has no line
    assert chosen(environments=ENVIRONMENTS) == {
        "tf1.14": "step tf1.14 train_on_batch float32 eager",
        "tf2.0": "step tf2.0 train_on_batch float32 eager",
    }


def test_an_environment_in_no_answer_has_its_first_cell():
    only = {of: seconds for of, seconds in SECONDS.items() if of.environment == "tf2.0"}
    assert chosen(only, scenarios=[scenario(compare=[])]) == {"tf2.0": "step tf2.0 fit float32 graph"}


def test_cells_that_gave_no_number_are_run_by_hand_too():
    assert again.chosen(Results(run([cell()]), [])) == {cell().environment: cell()}


def test_it_can_be_done_again_with_the_harness_and_without_it():
    found = section(results(run(SECONDS), rounds(SECONDS)))
    command, report, bake, by_hand = codes(found)
    assert command == "harness matrix -s step --seed 7"
    assert report == "harness report results/2026-11-21T04-10-00Z-3f2a"
    assert bake == "docker buildx bake cpu-tf1-14 cpu-tf2-0"
    assert by_hand.count("docker run --rm --network none") == 2
    assert texts(found)[-1].endswith("A quick check, not a measurement.")


def test_local_environments_have_no_lines_by_hand():
    found = section(results(run(SECONDS, backend=BackendFacts("local")), rounds(SECONDS)))
    assert not any("docker" in each for each in [*codes(found), *texts(found)])


def test_the_folder_is_one_word_of_the_command():
    (_, report, *_) = codes(section(results(run(SECONDS, folder="/tmp/my runs/x"), [])))
    assert shlex.split(report) == ["harness", "report", "/tmp/my runs/x"]


@pytest.mark.parametrize(
    ("count", "sentence"), [(1, "(the first is not in docker-bake.hcl"), (2, "(the first 2 are not in docker-bake.hcl")]
)
def test_what_the_harness_builds_is_told_apart(count, sentence):
    asked = [replace(each, asked=f"tensorflow=={each.tensorflow}") for each in ENVIRONMENTS[:count]]
    found = section(results(run(SECONDS, environments=[*asked, *ENVIRONMENTS[count:2]]), rounds(SECONDS)))
    assert sentence in texts(found)[-1]
    assert [each for each in codes(found) if "images build" in each] == [
        f"harness images build tensorflow=={each.tensorflow}" for each in ENVIRONMENTS[:count]
    ]


def test_more_than_four_lines_are_folded():
    many = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}") for minor in range(5)]
    times = {cell(each.name): 0.01 for each in many}
    found = section(results(run(times, environments=many, reference="tf9.0"), rounds(times)))
    assert summaries(found) == ["One cell of each environment by hand"]
    assert codes(found)[-1].count("docker run") == 5
    assert not summaries(section(results(run(SECONDS), rounds(SECONDS))))


def test_by_hand_all_environments_run_the_scenario_of_the_first_answer():
    other = scenario("other", path=Path("other.py"))
    times = {
        **{cell(name): seconds for name, seconds in (("tf1.14", 0.01), ("tf2.0", 0.02), ("tf2.1", 0.02))},
        **{cell(name, of="other"): seconds for name, seconds in (("tf1.14", 0.01), ("tf2.1", 0.05))},
    }
    made = results(run(times, scenarios=[other, scenario()]), rounds(times, spread=0.0))
    assert made.answers[0].table.scenario is other
    by_hand = codes(section(made))[-1].splitlines()
    assert [line.split("/scenarios/")[1].split()[0] for line in by_hand] == ["other.py", "step.py", "other.py"]


def test_the_users_own_scenario_is_saved_first():
    asked = run(SECONDS, scripts={"step": "print()"})
    assert texts(section(Results(asked, [])))[0] == (
        "step.py is not the project's: save it from “Run details” first, where the command names it."
    )


def test_it_is_pasted_and_not_in_the_terminal():
    found = section(results(run(SECONDS), rounds(SECONDS)))
    assert found.shown(Where.PASTE) == found.shown(Where.PAGE) == found
    assert found.shown(Where.TERMINAL) is None


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [([Sample(1.0, 1)], "Each makes the scenario's calls and prints"), ([Sample(1.0, 9)], "Each runs for two seconds")],
)
def test_what_one_cell_by_hand_does_is_told(samples, sentence):
    found = section(results(run(SECONDS), rounds(SECONDS, samples=samples)))
    assert any(sentence in each for each in texts(found.blocks))
