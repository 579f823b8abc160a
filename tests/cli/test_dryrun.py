"""`harness matrix --gpu --dry-run`, the command itself, on machines whose NVML is the stand-ins'."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.stand_in.gpus import H100, MIG, RTX_3090, T4, Machine, StandIn

V100 = StandIn("Tesla V100-SXM2-16GB", "7.0", 16)
RTX_4090 = StandIn("NVIDIA GeForce RTX 4090", "8.9", 24)
RTX_5090 = StandIn("NVIDIA GeForce RTX 5090", "12.0", 32)
#: The first driver that has a Blackwell GPU.
BLACKWELLS = {"STAND_IN_DRIVER": "570.86.10"}


def dry_run(machine: Machine, *typed: str, backend: str = "docker") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **machine.environ(), "DOCKER_HOST": "unix:///nowhere/docker.sock", "COLUMNS": "200"}
    command = [sys.executable, "-m", "harness", "matrix", "--dry-run", "--backend", backend, *typed]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def environments(plan: dict[str, Any]) -> list[str]:
    """Those in which something would be launched."""
    return list(dict.fromkeys(entry["cell"].split()[1] for entry in plan["cells"]))


@pytest.mark.parametrize(
    ("card", "measured"),
    [
        (T4, ["tf1.14", "tf2.0"]),
        (V100, ["tf1.14", "tf2.0"]),
        (RTX_3090, ["tf1.15-ngc", "tf2.5"]),
        (RTX_4090, ["tf1.15-ngc", "tf2.5"]),
        (H100, ["tf1.15-ngc", "tf2.16"]),
    ],
)
def test_the_famous_question_is_asked_on_each_card(stand_ins: Path, card: StandIn, measured: list[str]) -> None:
    """Without -e: the defect was that nothing was measured after Turing, with exit code 0."""
    done = dry_run(Machine(stand_ins, [card]), "--gpu", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert environments(plan) == measured
    assert plan["reference"] == measured[0]
    assert {entry["for"]: entry["environment"] for entry in plan["stand_ins"]} == (
        {} if measured[0] == "tf1.14" else dict(zip(["tf1.14", "tf2.0"], measured, strict=True))
    )


def test_what_stands_in_is_said_first_and_what_the_driver_compiles(stand_ins: Path) -> None:
    done = dry_run(Machine(stand_ins, [H100]), "--gpu", "--suite", "seed")
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first.startswith("tf1.15-ngc replaces tf1.14, and tf2.5 replaces tf2.0, which the NVIDIA H100 80GB HBM3")
    assert "The driver compiles tf2.5 at the first start. This takes 30 minutes or longer." in others
    needed = "The driver compiles the kernels of tf2.15 when they are first needed. This takes minutes in total."
    assert needed in others
    (time,) = [line for line in others if line.startswith("The run takes at least about ")]
    assert "; 1 environment whose kernels the driver compiles when they are first needed, in about 5 min each;" in time
    assert re.search(r"; 1 first start of at least 30 min, in which the driver compiles GPU code\.$", time)


@pytest.mark.parametrize("typed", [("--suite", "quick"), ("-e", "tf2.2*")])
def test_where_nothing_can_be_compared_the_command_fails(stand_ins: Path, typed: tuple[str, ...]) -> None:
    done = dry_run(Machine(stand_ins, [RTX_5090], BLACKWELLS), "--gpu", *typed)
    assert done.returncode == 4, done.stdout
    assert "Nothing can be measured: none of the " in done.stderr
    assert "Environments that run on NVIDIA GeForce RTX 5090: tf2.17-ngc." in done.stderr


def test_a_driver_that_was_updated_and_not_loaded_is_said_before_anything_else(stand_ins: Path) -> None:
    done = dry_run(Machine(stand_ins, [T4], {"STAND_IN_NVML_INIT": "18"}), "--gpu")
    assert done.returncode == 4, done.stdout
    assert "--gpus 0: the NVIDIA driver was updated but not reloaded" in done.stderr
    assert "Restart the machine" in done.stderr


def test_what_was_typed_is_judged_as_it_was_typed_and_what_the_card_runs_is_told(stand_ins: Path) -> None:
    done = dry_run(Machine(stand_ins, [RTX_3090]), "--gpu", "-e", "tf1.14,tf2.0")
    assert done.returncode == 4
    assert "Environments that run on NVIDIA GeForce RTX 3090: tf1.15-ngc, tf2.5, tf2.6, " in done.stderr
    assert "replaces" not in done.stdout


def test_both_devices_are_two_cells_and_a_gpu_that_cannot_run_the_release_leaves_none(stand_ins: Path) -> None:
    selection = ("--device", "cpu,gpu", "-s", "train_batch", "-a", "mode=function", "-a", "batch=16,64")
    done = dry_run(Machine(stand_ins, [T4]), *selection, "-e", "tf2.15", "--json")
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [entry["cell"] for entry in cells] == [
        f"train_batch tf2.15 function {batch} {device}" for batch in ("16", "64") for device in ("cpu", "gpu")
    ]
    assert {entry["group"] for entry in cells} == {f"train_batch cpu,gpu batch={batch}" for batch in ("16", "64")}
    done = dry_run(Machine(stand_ins, [RTX_5090], BLACKWELLS), *selection, "-e", "tf2.15")
    assert done.returncode == 4, done.stdout
    assert (
        "Nothing can be measured: none of the 4 cells is available. train_batch tf2.15 function 16 gpu: " in done.stderr
    )
    assert "compute capability 12.0" in done.stderr


def test_an_instance_of_a_divided_card_can_be_typed_and_the_card_cannot(stand_ins: Path) -> None:
    machine = Machine(stand_ins, [MIG])
    for typed in (["--gpu"], ["--gpus", "0"], ["--gpus", "all"]):
        done = dry_run(machine, *typed)
        assert done.returncode == 4
        assert (
            "is divided into instances (MIG), and a launch gets one of them. The instances: 0:0 3g.20gb (MIG-"
            in done.stderr
        )
    for name in ("0:0", "MIG-00000000-57a4-d000-0000-000000000000"):
        done = dry_run(machine, "--gpus", name, "--json")
        assert done.returncode == 0, done.stderr
        assert environments(json.loads(done.stdout)) == ["tf1.15-ngc", "tf2.4"]


@pytest.mark.parametrize("card", [T4, RTX_3090, H100], ids=lambda card: card.name)
def test_without_an_engine_releases_with_packaged_cuda_are_planned_and_older_ones_say_what_to_do(
    stand_ins: Path, card: StandIn
) -> None:
    machine = Machine(stand_ins, [card], {"STAND_IN_DRIVER": "570.86.10"})
    asked = ("--gpu", "-s", "numpy_sigmoid", "-a", "variant=compiled", "-e", "tf1.14,tf2.5,tf2.15,tf2.21", "--json")
    done = dry_run(machine, *asked, backend="auto")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert environments(plan) == ["tf2.5", "tf2.15", "tf2.21"]
    assert {entry["cell"].split()[1] for entry in plan["not available"]} == {"tf1.14"}
    assert plan["outlook"]["makes"] == "local environment"


def test_a_release_whose_cuda_is_in_an_image_needs_a_container(stand_ins: Path) -> None:
    done = dry_run(Machine(stand_ins, [T4]), "--gpu", "-s", "keras_step", "-e", "tf1.14", backend="local")
    assert done.returncode == 4
    assert "its CUDA is in an image" in done.stderr
    assert "Measure this environment in containers, with Docker Engine. Or use tf2.5." in done.stderr
