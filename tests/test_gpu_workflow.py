"""The scripts of the workflow "GPU images", as far as they run without a registry, an engine and NVIDIA's packages."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from harness.environments.catalog import load_environments
from harness.project import Project
from tests.conftest import ROOT
from tests.workflow import run_script, write_program

SCRIPTS = ROOT / ".github" / "gpu"


@pytest.mark.slow
def test_the_environments_are_those_whose_cuda_comes_from_a_registry(tmp_path):
    output = tmp_path / "output"
    programs = Path(sys.executable).parent
    run_script(SCRIPTS / "environments", programs=programs, GITHUB_OUTPUT=output).check_returncode()
    name, _, value = output.read_text().partition("=")
    packaged = {entry.name for entry in load_environments(Project(ROOT)).values() if entry.has_packaged_cuda}
    assert name == "environments"
    assert {"tf1.14", "tf2.4", "tf1.15-ngc", "tf2.17-ngc"} <= set(json.loads(value))
    assert packaged.isdisjoint(json.loads(value))


def test_an_image_is_built_verified_and_shown(tmp_path):
    for code, result in ((0, "success"), (1, "failure")):
        write_program(tmp_path / "bin" / "harness", 'echo "$2 $3 $4 $5"')
        write_program(tmp_path / "bin" / "python", f'echo "$@"; exit {code}')
        summary = tmp_path / result
        process = run_script(
            SCRIPTS / "image", programs=tmp_path / "bin", ENVIRONMENT="tf1.14", GITHUB_STEP_SUMMARY=summary
        )
        assert process.returncode == code, process.stderr
        lines = ["build tf1.14 --device gpu", "verify tf1.14 --device gpu", "-m bench.gpu_image tf1.14"]
        assert summary.read_text() == "\n".join([f"### tf1.14: {result}", "```", *lines, "```", ""])


def test_all_three_methods_must_work_and_the_tests_of_launches_pass(tmp_path):
    shutil.copytree(SCRIPTS, tmp_path / ".github" / "gpu")
    for missing, tests in (("", 0), ("driver", 0), ("", 1)):
        methods = [method for method in ("cdi", "runtime", "driver") if method != missing]
        findings = "\n".join(f"echo 'gpu-check: {method}: CUDA starts in a container.'" for method in methods)
        tested = f'case "$*" in "-m pytest tests/docker/gpu_toolkit.py") echo tested; exit {tests};; esac'
        write_program(tmp_path / ".venv" / "bin" / "python", f"{tested}\n{findings}")
        summary = tmp_path / f"summary{missing}{tests}"
        process = run_script(tmp_path / ".github" / "gpu" / "ways", GITHUB_STEP_SUMMARY=summary)
        assert process.returncode == bool(missing or tests), process.stderr
        errors = [line for line in process.stdout.splitlines() if line.startswith("::error::")]
        assert len(errors) == bool(missing) + bool(tests)
        assert not missing or f"{missing} doesn't work" in errors[0]
        text = summary.read_text()
        assert (text.count("CUDA starts in a container"), text.count("tested")) == (len(methods), 1)


def test_nothing_is_removed_or_replaced_on_ones_own_machine():
    for name in ("room", "toolkit"):
        process = run_script(SCRIPTS / name, RUNNER_ENVIRONMENT="self-hosted")
        assert process.returncode == 2
        assert "only runs on a machine that GitHub hosts" in process.stdout
