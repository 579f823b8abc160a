"""How to run it again."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.model.job import Limits, Protocol, Sampling
from harness.report.again import again as told
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 9], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def again(times=SECONDS, **changes):
    return of(Results(run(times, **changes), rounds(times, spread=0.0)))


def of(results):
    return told(results.run, results.found, results.answers)


def words(line):
    """A command as a shell in /project reads it."""
    return shlex.split(line.replace('"$PWD"', "/project").replace("$PWD", "/project"))


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


def test_each_environment_has_a_target_and_a_line_by_hand():
    made = again()
    assert made.bake == "docker buildx bake cpu-tf1-14 cpu-tf2-0"
    assert made.others == []
    assert len(made.by_hand) == 2


def test_by_hand_is_the_row_of_the_first_answer_that_is_farthest_from_equal():
    first, second = map(words, again().by_hand)
    mounted = ["-v", "/project/scenarios:/scenarios:ro", "-w", "/tmp", "--cpuset-cpus", "0"]
    assert first == [
        *("docker", "run", "--rm", "--network", "none", *mounted, "harness/tf1.14:cpu", "python", "/scenarios/step.py"),
        *("--call", "train_on_batch", "--dtype", "float32", "--mode", "eager"),
    ]
    assert second[-6:] == ["--call", "train_on_batch", "--dtype", "float32", "--mode", "eager"]


def test_an_environment_in_no_answer_has_its_first_cell():
    only = {of: seconds for of, seconds in SECONDS.items() if of.environment == "tf2.0"}
    (line,) = again(only, scenarios=[scenario(compare=[])]).by_hand
    assert words(line)[-6:] == ["--call", "fit", "--dtype", "float32", "--mode", "graph"]


def test_an_environment_that_could_not_be_had_has_no_line():
    assert not [line for line in again(environments=ENVIRONMENTS).by_hand if "tf2.1" in line]


def test_the_registry_is_part_of_the_images_names():
    made = again(backend={"name": "docker", "registry": "ghcr.io/x/"})
    assert made.bake == "REGISTRY=ghcr.io/x/ docker buildx bake cpu-tf1-14 cpu-tf2-0"
    assert "ghcr.io/x/harness/tf1.14:cpu" in made.by_hand[0]


def test_what_is_not_in_the_bake_file_is_built_by_the_harness():
    asked = replace(ENVIRONMENTS[1], asked="tensorflow==2.0.0,keras<2.4")
    made = again(environments=[ENVIRONMENTS[0], asked])
    assert made.bake == "docker buildx bake cpu-tf1-14"
    assert made.others == ["harness images build 'tensorflow==2.0.0,keras<2.4'"]
    assert len(made.by_hand) == 2


def test_local_environments_have_the_harnesss_command_alone():
    made = again(backend={"name": "local"})
    assert (made.bake, made.others, made.by_hand) == ("", [], [])


def test_axes_that_are_variables_of_the_process_are_given_as_such():
    axes = {"call": ["fit"], "XLA": ["", "on"], "mode": ["graph", "eager"]}
    members = {replace(of, axes={**of.axes, "XLA": "on"}): 0.01 for of in cells()}
    members = {replace(of, axes={name: of.axes[name] for name in axes}): 0.01 for of in members}
    line = again(members, scenarios=[scenario(axes=axes, environ=["XLA"], default={})]).by_hand[0]
    assert "-e XLA=on" in line
    assert "--XLA" not in line


@pytest.mark.parametrize(
    ("gpus", "by", "asked"),
    [
        (("0",), "CDI", ["--device", "nvidia.com/gpu=0"]),
        (("0", "1"), "CDI", ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
        (("all",), "CDI", ["--device", "nvidia.com/gpu=all"]),
        (("0", "1"), "NVIDIA's runtime", ["--gpus", '"device=0,1"']),
        (("all",), "NVIDIA's runtime", ["--gpus", "all"]),
    ],
)
def test_gpus_are_given_as_the_engine_gave_them(gpus, by, asked):
    made = again(backend={"name": "docker", "gpus_by": by}, asked={"limits": Limits(gpus=gpus)})
    assert made.bake == "docker buildx bake gpu-tf1-14 gpu-tf2-0"
    read = words(made.by_hand[0])
    place = read.index(asked[0])
    assert read[place : place + len(asked)] == asked
    assert "harness/tf1.14:gpu" in read
    assert read[-2:] == ["--device", "gpu"]


def test_the_sources_iteration_counts_are_asked_for_again():
    assert again(asked={"sampling": Sampling(protocol=Protocol.DOCUMENT)}).by_hand[0].endswith("--sampling document")


@pytest.mark.parametrize(
    ("typed", "mounted"), [("his/step.py", "/project/his/step.py"), ("/tmp/his one/step.py", "/tmp/his one/step.py")]
)
def test_a_scenario_from_outside_is_mounted_beside_the_kit(typed, mounted):
    made = again(command=["harness", "matrix", "-s", typed], scenarios=[scenario(path=Path("/any/step.py"))])
    read = words(made.by_hand[0])
    assert f"{mounted}:/scenario/step.py:ro" in read
    assert "PYTHONPATH=/scenarios" in read
    assert read[read.index("python") + 1] == "/scenario/step.py"


def test_strings_of_strangers_are_words_of_the_command_and_nothing_else():
    evil = "$(reboot); `x` 'y' \"z\""
    axes = {**scenario().axes, "call": [evil, "fit"]}
    members = dict.fromkeys(cells(calls=[evil]), 0.01)
    for line in again(members, scenarios=[scenario(axes=axes)]).by_hand:
        assert words(line)[-6:-4] == ["--call", evil]


def test_cells_that_gave_no_number_are_run_by_hand_too():
    made = of(Results(run([cell()]), []))
    assert len(made.by_hand) == 1
