"""`harness matrix --gpu --dry-run` on a machine with a stand-in for NVML; tests/session has the plans themselves."""

import pytest

from tests.cli.conftest import NOWHERE
from tests.commands import run_harness
from tests.stand_in.gpus import H100, Machine


@pytest.mark.slow
def test_a_dry_run_tells_substitutes_what_the_driver_compiles_and_how_long_that_takes(stand_ins, tmp_path, snapshot):
    options = ["--gpu", "--suite", "seed", "--dry-run", "--backend", "docker", "--results", str(tmp_path / "results")]
    process = run_harness("matrix", *options, **Machine(stand_ins, [H100]).environ(), **NOWHERE)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.replace(str(tmp_path), "TMP").splitlines()
    sentences = [line for line in lines if line.endswith(".") and not line.startswith("not available")]
    assert sentences == snapshot
