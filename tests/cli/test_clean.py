import json
import os
from pathlib import Path

import pytest

from harness.machine import sysfs
from harness.machine.gpu import clocks
from tests.cli.conftest import NOWHERE
from tests.stand_in.gpus import T4, Machine


def test_what_a_killed_run_left_is_removed_and_a_run_of_which_nothing_is_found_is_named(harness):
    name = "2026-11-21T00-00-00Z-dead"
    scratch = Path(os.environ["HARNESS_CACHE_DIR"]) / "scratch" / name / "launch"
    scratch.mkdir(parents=True)
    folder = harness.root / "results" / name
    folder.mkdir(parents=True)
    (folder / "launches.jsonl").touch()
    process = harness("clean", f"results/{name}", **NOWHERE)
    assert process.returncode == 0
    assert "and 1 scratch folders" in process.stdout
    assert not scratch.exists()
    assert not folder.exists()
    # of another run there is a folder, and of `nosuch` nothing
    (harness.root / "results" / "other").mkdir()
    lines = [harness.call("clean", run, **NOWHERE).stdout.splitlines() for run in ("other", "nosuch")]
    assert ["'nosuch'" in text[-1] for text in lines] == [False, True]


@pytest.mark.slow
def test_clocks_that_a_killed_run_left_locked_are_unlocked(harness, stand_ins, tmp_path):
    boot = sysfs.read_text(Path("/proc/sys/kernel/random/boot_id"))
    uuid = "GPU-00000000-57a4-d000-0000-000000000000"  # the stand-ins' first card
    clocks.get_mark_path().write_text(json.dumps({"boot": boot, "uuids": [uuid]}))
    refused = harness("clean", **NOWHERE, **Machine(stand_ins, [T4]).environ())
    assert refused.returncode == 4
    assert f"sudo nvidia-smi -i {uuid} --reset-gpu-clocks" in refused.stderr
    log = tmp_path / "clocks.log"
    machine = Machine(stand_ins, [T4], {"STAND_IN_MAY_SET": "1", "STAND_IN_CLOCKS_LOG": str(log)})
    outputs = [harness("clean", **NOWHERE, **machine.environ()).stdout for _ in range(2)]
    assert ["Unlocked" in output for output in outputs] == [True, False]
    assert log.read_text() == "0 0\n"
