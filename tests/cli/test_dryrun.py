"""`harness matrix --gpu --dry-run` on a machine with a stand-in for NVML; tests/session has the plans themselves."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.stand_in.gpus import H100, Machine


@pytest.mark.slow
def test_a_dry_run_tells_substitutes_what_the_driver_compiles_and_how_long_that_takes(stand_ins, tmp_path, snapshot):
    environ = {**os.environ, **Machine(stand_ins, [H100]).environ(), "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    options = ["--gpu", "--suite", "seed", "--dry-run", "--backend", "docker", "--results", str(tmp_path / "results")]
    command = [sys.executable, "-m", "harness", "matrix", *options]
    process = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.replace(str(tmp_path), "TMP").splitlines()
    sentences = [line for line in lines if line.endswith(".") and not line.startswith("not available")]
    assert sentences == snapshot
