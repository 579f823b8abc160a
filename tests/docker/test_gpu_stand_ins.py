"""`harness matrix --gpu` from end to end: real TensorFlow in real containers, on stand-ins for GPUs.

The images are this project's own, without NVIDIA's libraries (`tests/stand_in/project.py`). Kernels are computed on the
host, but convolutions aren't, so that no time here is a GPU's, and a Keras cell's fingerprint is not that of its work.
Images of five releases take minutes: `test_gpu_run.py` has what is run more often.
"""

import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.stand_in.gpus import MIG, RTX_3090, T4, Machine, StandIn
from tests.stand_in.project import NGC, ROOT, StandInProject

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow, pytest.mark.campaign]

#: CUDA 10.0, 11 and 12.
FAMOUS, LATER = ("tf1.14", "tf2.0"), ("tf2.5", "tf2.15")
#: Those whose images `stand_in_project` has.
ENVIRONMENTS = (*FAMOUS, NGC, *LATER)

#: One cell that is quick to start: what is measured means nothing.
CELL = ("-e", "tf2.15", "-s", "numpy_sigmoid", "-a", "variant=compiled", "-a", "size=1")
#: Scenarios of the CPU alone: whole numbers are multiplied there, and a strategy has logical devices of the CPU.
ON_A_CPU = {"function_power", "function_amortise", "strategy_step"}
#: tf2.15 has Keras 2, and the stand-ins have no kernels of convolutional and recurrent networks.
NOT_ON_STAND_INS = {"keras_backends", "model_step"}

#: A suite with a cell of each of the others.
OTHERS = Path(__file__).with_name("others.toml")

SHORT = ("--warmup", "10ms", "--measure", "20ms", "--rounds", "1")


@dataclass(frozen=True)
class MatrixRun:
    """What came of a run: its exit code, its messages, its report, and its launches."""

    code: int
    messages: str
    report: str
    launches: Sequence[dict[str, Any]]

    @property
    def statuses(self) -> set[str]:
        return {launch["status"] for launch in self.launches}

    def computed_fingerprints(self, scenario: str = "*") -> list[dict[str, Any]]:
        """Return the fingerprints of a scenario's launches, without those that filled a new volume of compiled code.

        To fill it, they ran a convolution, after which the fake driver computes nothing (kit/placement.py).
        """
        return [
            launch["fingerprint"]
            for launch in self.launches
            if fnmatch(launch["cell"]["scenario"], scenario) and "first fill" not in launch["phases"]
        ]


@pytest.fixture(scope="module")
def stand_in_project(request, need_bases, no_gpus, stand_ins, tmp_path_factory):
    """Build GPU images of the module's ENVIRONMENTS for a project, and remove them at the end.

    `no_gpus` is held by one process at a time, and so are the names of these images.
    """
    need_bases("3.7", "3.8")
    project = StandInProject.make(tmp_path_factory.mktemp("stand-in") / "project", request.module.ENVIRONMENTS)
    with (project.root / "scenarios" / "suites.toml").open("a") as file:
        file.write(f"\n{OTHERS.read_text()}")
    project.build(stand_ins)
    yield project
    project.remove()


@pytest.fixture
def matrix(stand_in_project, no_gpus, stand_ins, tmp_path):
    """Runs `harness matrix` on a machine with these cards, and these faults."""

    def run(cards: Sequence[StandIn], *arguments: str, without: str = "", **faults: str) -> MatrixRun:
        libraries = stand_ins
        if without:
            libraries = shutil.copytree(stand_ins, tmp_path / "libraries")
            (libraries / without).unlink()
        machine, results = Machine(libraries, cards, faults), tmp_path / secrets.token_hex(4)
        with machine.offered(no_gpus):
            process = stand_in_project.run(machine, "matrix", *SHORT, *arguments, "--results", str(results))
        (folder,) = list(results.iterdir()) if results.is_dir() else [None]
        if folder is None:
            return MatrixRun(process.returncode, process.stderr, "", ())
        launches = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
        return MatrixRun(process.returncode, process.stderr, (folder / "report.md").read_text(), launches)

    return run


@pytest.mark.parametrize(
    ("card", "releases", "words"),
    [
        # no kernel is computed after a convolution, which the step counter shows: no verdict is given on such work
        (T4, {*FAMOUS}, "the framework counted 0"),
        # NVIDIA's build replaces TensorFlow 1, and a later release replaces 2.0
        (RTX_3090, {NGC, LATER[0]}, "tf1.15-ngc replaces tf1.14, and tf2.5 replaces tf2.0"),
    ],
    ids=["both releases", "substitutes"],
)
def test_the_famous_question_is_asked_on_a_gpu(matrix, card, releases, words):
    run = matrix([card], "--gpu")
    assert (run.code, run.statuses) == (0, {"ok"}), (run.messages, run.launches)
    assert {launch["cell"]["environment"] for launch in run.launches} == releases
    assert ("1.15.5" in {launch["observations"]["tensorflow"] for launch in run.launches}) == (NGC in releases)
    assert all(launch["observations"]["placed on"] == ["GPU:0"] for launch in run.launches)
    assert card.name in run.report
    assert words in " ".join(run.report.split())


@pytest.mark.parametrize(("cards", "gpus"), [([T4, T4], "0,1"), ([MIG], "0:0")], ids=["two cards", "MIG"])
def test_a_card_from_the_plan_to_the_report(matrix, cards, gpus):
    run = matrix(cards, "--gpus", gpus, *CELL)
    assert (run.code, run.statuses) == (0, {"ok"}), (run.messages, run.launches)
    assert cards[0].name in run.report
    for launch in run.launches:
        assert launch["observations"]["placed on"] == ["GPU:0"]
        # the first is where TensorFlow puts work
        assert [gpu["name"] for gpu in launch["gpus"]] == [cards[0].given().partition(";")[0]]


def test_both_devices_in_one_run_have_images_of_their_own(matrix):
    run = matrix([T4], "--device", "cpu,gpu", *CELL)
    assert (run.code, run.statuses) == (0, {"ok"}), (run.messages, run.launches)
    assert {
        (
            launch["cell"]["device"],
            *launch["observations"].get("placed on", []),
            *(gpu["name"] for gpu in launch["gpus"]),
        )
        for launch in run.launches
    } == {("cpu",), ("gpu", "GPU:0", T4.given().partition(";")[0])}
    assert len({(launch["cell"]["device"], launch["image"]) for launch in run.launches}) == 2
    assert "gpu vs cpu" in run.report
    # the fake driver computes kernels, also those that are compiled in the container
    first, *others = (fingerprint["mean"] for fingerprint in run.computed_fingerprints())
    assert others == [pytest.approx(first)] * len(others)


def test_training_on_two_releases_of_cuda(matrix):
    """XLA compiles on the later one, and cuDNN's plans are asked for on both."""
    run = matrix([T4], "--gpu", "--suite", "quick", *(f"-e{name}" for name in LATER))
    assert [launch for launch in run.launches if launch["status"] != "ok"] == []
    assert run.code == 0, run.messages
    # no kernel is computed after a convolution, which the step counter shows: no verdict is given on such work
    assert "the framework counted 0" in " ".join(run.report.split())


def test_every_other_scenario_runs_on_a_card(matrix):
    run = matrix([RTX_3090], "--suite", "others", "--gpu")
    assert RTX_3090.name in run.report
    assert {launch["cell"]["scenario"]: launch["error"] for launch in run.launches if launch["error"]} == {}
    assert run.code == 0, run.messages
    trained = run.computed_fingerprints("train_batch")
    assert trained
    assert [proof["steps_counted"] for proof in trained] == [proof["steps_called"] for proof in trained]
    assert [sorted(proof["losses"], reverse=True) for proof in trained] == [proof["losses"] for proof in trained]
    launched = {launch["cell"]["scenario"] for launch in run.launches}
    assert launched == {path.stem for path in (ROOT / "scenarios").glob("*.py")} - {
        "keras_step",
        *ON_A_CPU,
        *NOT_ON_STAND_INS,
    }


def test_what_a_driver_or_a_card_does_wrong_is_told(matrix):
    for status, words, faults in (
        ("cpu fallback", "libcudnn.so.8", {"without": "libcudnn.so.8"}),
        ("failed", "Dst tensor is not initialized", {"STAND_IN_TAKEN_GIB": "15"}),
        ("failed", "lost its GPU", {"STAND_IN_LAUNCH_FAILS": "719:20", "STAND_IN_NVML_LOST_AFTER": "10"}),
    ):
        run = matrix([T4], "--gpu", *CELL, **faults)
        assert (run.code, run.statuses) == (1, {status}), words
        assert words in run.messages + run.launches[0]["advice"]
    run = matrix([T4], "--gpu", *CELL, STAND_IN_DRIVER="450.36.06")
    assert (run.code, run.launches) == (4, ())
    assert "525.60.13" in run.messages


def test_what_slows_a_card_down_disturbs_its_rounds(matrix):
    for fault, value, resource in (
        ("STAND_IN_REASONS", "0x40", "gpu_throttled_share"),
        ("STAND_IN_PROCESS", "1", "gpu_foreign_processes"),
    ):
        # NVML is read every tenth of a second, and one reading is not enough
        run = matrix([T4], "--gpu", *CELL, "--measure", "500ms", **{fault: value})
        assert (run.code, run.statuses) == (0, {"ok"})
        assert all(launch["resources"][resource] == 1 for launch in run.launches)
        assert "interference" in run.messages
