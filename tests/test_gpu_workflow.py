"""The scripts of the workflow "GPU images", as far as they run without a registry, an engine and NVIDIA's packages."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from tests.conftest import ROOT
from tests.lacking import lacking

SCRIPTS = ROOT / ".github" / "gpu"


def run(script: Path, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *arguments], env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )


def write_program(path: Path, lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def test_the_environments_are_those_whose_cuda_comes_from_a_registry(tmp_path: Path) -> None:
    output = tmp_path / "output"
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run(SCRIPTS / "environments", GITHUB_OUTPUT=str(output), PATH=programs, PYTHONPATH=str(ROOT)).check_returncode()
    name, _, value = output.read_text().partition("=")
    packaged = {entry.name for entry in load_environments(Project(ROOT)).values() if entry.has_packaged_cuda}
    assert name == "environments"
    assert {"tf1.14", "tf2.4", "tf1.15-ngc", "tf2.17-ngc"} <= set(json.loads(value))
    assert packaged.isdisjoint(json.loads(value))


@pytest.mark.parametrize(("code", "result"), [(0, "success"), (1, "failure")])
def test_an_image_is_built_verified_and_shown(tmp_path: Path, code: int, result: str) -> None:
    write_program(tmp_path / "bin" / "harness", f'echo "$2 $3 $4 $5"; [ "$2" = build ] || exit {code}')
    summary = tmp_path / "summary"
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
    process = run(SCRIPTS / "image", ENVIRONMENT="tf1.14", **environ)
    assert process.returncode == code, process.stderr
    assert summary.read_text() == (
        f"### tf1.14: {result}\n```\nbuild tf1.14 --device gpu\nverify tf1.14 --device gpu\n```\n"
    )


@pytest.mark.parametrize(("missing", "tests"), [("", 0), ("driver", 0), ("", 1)])
def test_all_three_methods_must_work_and_the_tests_of_launches_pass(tmp_path: Path, missing: str, tests: int) -> None:
    ways = [way for way in ("cdi", "runtime", "driver") if way != missing]
    sentences = "\n".join(f"echo 'gpu-check: {way}: CUDA starts in a container.'" for way in ways)
    tested = f'case "$*" in "-m pytest tests/docker/gpu_toolkit.py") echo tested; exit {tests};; esac'
    write_program(tmp_path / ".venv" / "bin" / "python", f"{tested}\n{sentences}")
    shutil.copytree(SCRIPTS, tmp_path / ".github" / "gpu")
    process = run(tmp_path / ".github" / "gpu" / "ways", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert process.returncode == bool(missing or tests), process.stderr
    assert (f"{missing} doesn't work" in process.stdout) is bool(missing)
    assert ("Tests of launches failed" in process.stdout) is bool(tests)
    summary = (tmp_path / "summary").read_text()
    assert summary.count("CUDA starts in a container") == len(ways)
    assert summary.count("tested") == 1


@pytest.mark.parametrize("name", ["room", "toolkit"])
def test_nothing_is_removed_or_replaced_on_ones_own_machine(name: str) -> None:
    process = run(SCRIPTS / name, RUNNER_ENVIRONMENT="self-hosted")
    assert process.returncode == 2
    assert "only runs on a machine that GitHub hosts" in process.stdout


STARTS = """
import ctypes, sys
cuda, count, name = ctypes.CDLL(sys.argv[1]), ctypes.c_int(), ctypes.create_string_buffer(64)
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
cuda.cuDeviceGetName(name, 64, 0)
print(name.value.decode())
"""


def test_the_fake_driver_has_a_gpu_in_a_process_without_settings(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        lacking("there is no C compiler (gcc): the fake driver is C")
    process = run(SCRIPTS / "driver", tmp_path)
    version = process.stdout.strip()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"libcuda.so.{version}", f"libnvidia-ml.so.{version}"]
    command = [sys.executable, "-c", STARTS, str(tmp_path / f"libcuda.so.{version}")]
    started = subprocess.run(command, capture_output=True, text=True, check=True)
    assert started.stdout.splitlines() == ["0 0 1", "Tesla T4"]
