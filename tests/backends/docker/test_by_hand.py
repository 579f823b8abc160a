"""A run in containers again, without the harness."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends.docker.by_hand import by_hand
from harness.model.backend import BackendFacts
from harness.model.launch import Limits, Protocol, Sampling
from harness.model.settings import with_settings
from tests.factories import ENVIRONMENTS, cell, cells, run, scenario


def again(planned=None, **changes):
    """The lines for the first cell of each environment."""
    made = run(planned, **changes)
    chosen = {}
    for each in made.plan.cells:
        chosen.setdefault(each.environment, each)
    return by_hand(made, chosen)


def words(line):
    """A command as a shell in /project reads it."""
    return shlex.split(line.replace('"$PWD"', "/project").replace("$PWD", "/project"))


def test_each_chosen_environment_has_a_target_and_a_line():
    made = again(environments=ENVIRONMENTS)
    assert made.bake == "docker buildx bake cpu-tf1-14 cpu-tf2-0"
    assert made.others == []
    assert len(made.cells) == 2


def test_a_line_runs_the_cell_as_it_was_run():
    (line,) = again([cell(environment="tf1.14", call="fit", mode="graph")]).cells
    mounted = ["-v", "/project/scenarios:/scenarios:ro", "-w", "/tmp", "--cpuset-cpus", "0"]
    assert words(line) == [
        *("docker", "run", "--rm", "--network", "none", *mounted, "harness/tf1.14:cpu", "python", "/scenarios/step.py"),
        *("--call", "fit", "--dtype", "float32", "--mode", "graph"),
    ]


def test_a_scenario_of_upstream_issues_is_run_where_it_lies():
    path = Path("/project/scenarios/upstream/step.py")
    (line,) = again([cell("tf1.14")], scenarios=[scenario(path=path)]).cells
    assert words(line)[words(line).index("python") + 1] == "/scenarios/upstream/step.py"
    typed = ["harness", "matrix", "-s", "scenarios/upstream/step.py"]
    assert again([cell("tf1.14")], scenarios=[scenario(path=path)], command=typed).cells == [line]


def test_the_registry_is_part_of_the_images_names():
    made = again(backend=BackendFacts("docker", registry="ghcr.io/x/"))
    assert made.bake == "REGISTRY=ghcr.io/x/ docker buildx bake cpu-tf1-14 cpu-tf2-0"
    assert "ghcr.io/x/harness/tf1.14:cpu" in made.cells[0]


def test_what_is_not_in_the_bake_file_is_built_by_the_harness():
    asked = replace(ENVIRONMENTS[1], asked="tensorflow==2.0.0,keras<2.4")
    made = again(environments=[ENVIRONMENTS[0], asked])
    assert made.bake == "docker buildx bake cpu-tf1-14"
    assert made.others == ["harness images build 'tensorflow==2.0.0,keras<2.4'"]
    assert len(made.cells) == 2


def test_axes_that_are_variables_of_the_process_are_given_as_such():
    axes = {"call": ["fit"], "XLA": ["", "on"], "mode": ["graph", "eager"]}
    members = {replace(of, axes={**of.axes, "XLA": "on"}): 0.01 for of in cells()}
    members = {replace(of, axes={name: of.axes[name] for name in axes}): 0.01 for of in members}
    line = again(members, scenarios=[scenario(axes=axes, environ=["XLA"], default={})]).cells[0]
    assert "-e XLA=on" in line
    assert "--XLA" not in line


@pytest.mark.parametrize(
    ("gpus", "by", "asked"),
    [
        (("0",), "CDI", ["--device", "nvidia.com/gpu=0"]),
        (("0", "1"), "CDI", ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
        (("all",), "CDI", ["--device", "nvidia.com/gpu=all"]),
        (
            ("0", "1"),
            "the runtime nvidia",
            [
                *("--runtime", "nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=0,1"),
                *("-e", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
            ],
        ),
        (("0", "1"), "the engine's device driver", ["--gpus", '"device=0,1"']),
        (("all",), "the engine's device driver", ["--gpus", "all"]),
        # as runs of earlier versions call it
        (("0", "1"), "NVIDIA's runtime", ["--gpus", '"device=0,1"']),
    ],
)
def test_gpus_are_given_as_the_engine_gave_them(gpus, by, asked):
    made = again(backend=BackendFacts("docker", gpus_by=by), asked={"limits": Limits(gpus=gpus)})
    assert made.bake == "docker buildx bake gpu-tf1-14 gpu-tf2-0"
    read = words(made.cells[0])
    place = read.index(asked[0])
    assert read[place : place + len(asked)] == asked
    assert "harness/tf1.14:gpu" in read
    assert read[-2:] == ["--device", "gpu"]


def test_groups_that_may_open_the_device_nodes_are_asked_for_again():
    made = again(
        backend=BackendFacts("docker", gpus_by="CDI", gpu_groups=[44, 109]), asked={"limits": Limits(gpus=("0",))}
    )
    assert "--group-add 44 --group-add 109" in made.cells[0]
    assert "--group-add" not in again().cells[0]


def test_the_sources_iteration_counts_are_asked_for_again():
    assert again(asked={"sampling": Sampling(protocol=Protocol.DOCUMENT)}).cells[0].endswith("--sampling document")


@pytest.mark.parametrize(
    ("typed", "mounted"), [("his/step.py", "/project/his/step.py"), ("/tmp/his one/step.py", "/tmp/his one/step.py")]
)
def test_a_scenario_from_outside_is_mounted_beside_the_kit(typed, mounted):
    made = again(command=["harness", "matrix", "-s", typed], scenarios=[scenario(path=Path("/any/step.py"))])
    read = words(made.cells[0])
    assert f"{mounted}:/scenario/step.py:ro" in read
    assert "PYTHONPATH=/scenarios" in read
    assert read[read.index("python") + 1] == "/scenario/step.py"


def test_untrusted_strings_are_words_of_the_command_and_nothing_else():
    evil = "$(reboot); `x` 'y' \"z\""
    axes = {**scenario().axes, "call": [evil, "fit"]}
    members = dict.fromkeys(cells(calls=[evil]), 0.01)
    for line in again(members, scenarios=[scenario(axes=axes)]).cells:
        assert words(line)[-6:-4] == ["--call", evil]


def test_settings_are_options_but_for_those_that_are_left_as_they_come():
    asked = with_settings(scenario(), {"xla": ["on", "default"], "tf32": ["off", "default"]})
    (line,) = again([cell(xla="on", tf32="default")], scenarios=[asked]).cells
    assert words(line)[-2:] == ["--xla", "on"]
    assert "--tf32" not in words(line)
