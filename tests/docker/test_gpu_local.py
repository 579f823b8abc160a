"""Local environments with a GPU, from the plan to the report: real TensorFlow on fake GPUs.

The machine has the fake driver. The other fake libraries are a package in the locks that replaces NVIDIA's packages.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lacking import python
from tests.packageindex import PackageIndex, make_lock
from tests.stand_in.gpus import H100, RTX_3090, T4, Machine
from tests.stand_in.project import StandInProject

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
#: CUDA 11 and 12, cuDNN 8 and 9.
RELEASES = ("tf2.5", "tf2.15", "tf2.21")
NEW_DRIVER = {"STAND_IN_DRIVER": "570.86.10"}
CELL = ("-s", "numpy_sigmoid", "-a", "variant=compiled", "-a", "size=1")


def make_wheel(libraries: Path, folder: Path) -> str:
    """Write a wheel with all libraries but the driver's, and return its line in a lock."""
    files = {f"nvidia/stand_in/lib/{path.name}": path.read_bytes() for path in libraries.iterdir()}
    files = {name: content for name, content in files.items() if not name.endswith(DRIVER)}
    return make_lock(PackageIndex(folder).add("stand_in-1.0-py3-none-any", others=files))


@pytest.fixture(scope="module")
def project(stand_ins: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[StandInProject, dict[str, str]]:
    """Return a project whose GPU locks have the fake libraries, and the variables that name its folders."""
    for version in ("3.8", "3.11"):
        python(version)
    folder = tmp_path_factory.mktemp("local")
    line = make_wheel(stand_ins, folder)
    project = StandInProject.make(folder / "project", RELEASES)
    for name in RELEASES:
        lock = project.root / "images" / "locks" / f"{name}-gpu.txt"
        lock.write_text(lock.read_text() + line)
    return project, {"UV_FIND_LINKS": str(folder), "HARNESS_CACHE_DIR": str(folder / "cache")}


#: One card and release of nine; the others are for a campaign.
CASES = [
    pytest.param(card, release, marks=[] if (card, release) == (T4, "tf2.15") else [pytest.mark.campaign])
    for card in (T4, RTX_3090, H100)
    for release in RELEASES
]


@pytest.mark.parametrize(("card", "release"), CASES)
def test_a_release_is_launched_on_a_gpu_and_an_older_one_says_what_to_do(project, stand_ins, tmp_path, card, release):
    (stand_in, variables), results = project, tmp_path / "results"
    Machine(stand_ins, [card], NEW_DRIVER).installed(tmp_path / "driver")
    for path in (tmp_path / "driver").glob("*.so*"):
        if path.name not in DRIVER:
            path.unlink()
    short = ("--warmup", "10ms", "--measure", "20ms", "--rounds", "1", "--results", str(results))
    options = ("--gpu", "--backend", "local", "-e", "tf1.14", "-e", release)
    process = stand_in.run(Machine(tmp_path / "driver"), "matrix", *options, *CELL, *short, **variables)
    assert process.returncode == 0, process.stderr
    (folder,) = results.iterdir()
    launches: list[dict[str, Any]] = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
    assert {(launch["status"], launch["cell"]["environment"]) for launch in launches} == {("ok", release)}
    for launch in launches:
        assert launch["observations"]["placed on"] == ["GPU:0"]
        assert [gpu["name"] for gpu in launch["gpus"]] == [card.name]
    assert card.name in (folder / "report.md").read_text()
    (unavailable,) = json.loads((folder / "run.json").read_text())["plan"]["unavailable"]
    assert unavailable["cell"]["environment"] == "tf1.14"
    assert unavailable["advice"]
