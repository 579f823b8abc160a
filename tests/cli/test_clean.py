import json
import os
from pathlib import Path

from harness.machine import sysfs
from harness.machine.gpu import clocks
from tests.cli.conftest import NOWHERE, Harness
from tests.stand_in.gpus import T4, Machine


def test_scratch_folders_that_a_killed_harness_left_are_removed(harness: Harness) -> None:
    left = Path(os.environ["HARNESS_CACHE_DIR"]) / "scratch" / "2026-11-21T00-00-00Z-dead" / "launch"
    left.mkdir(parents=True)
    done = harness("clean", "results/2026-11-21T00-00-00Z-dead", **NOWHERE)
    assert done.returncode == 0
    assert "and 1 scratch folders" in done.stdout
    assert not left.exists()


def test_a_run_of_which_nothing_is_found_is_named(harness: Harness) -> None:
    (harness.root / "results" / "known").mkdir(parents=True)
    told = "Nothing of a run 'nosuch' was found on this machine.\n"
    done = harness("clean", "nosuch", **NOWHERE)
    assert (done.returncode, done.stdout.endswith(told)) == (0, True)
    assert "Nothing of a run" not in harness("clean", "known", **NOWHERE).stdout


def locked_and_killed() -> None:
    """What a run leaves that was killed while the clocks of the stand-ins' first card were locked."""
    boot = sysfs.read_text(Path("/proc/sys/kernel/random/boot_id"))
    clocks.get_mark_path().write_text(json.dumps({"boot": boot, "uuids": ["GPU-00000000-57a4-d000-0000-000000000000"]}))


def test_clocks_that_a_killed_run_left_locked_are_unlocked(harness: Harness, stand_ins: Path, tmp_path: Path) -> None:
    locked_and_killed()
    log = tmp_path / "clocks.log"
    may = Machine(stand_ins, [T4], {"STAND_IN_MAY_SET": "1", "STAND_IN_CLOCKS_LOG": str(log)})
    done = harness("clean", **NOWHERE, **may.environ())
    assert "Unlocked the clocks of 1 GPU." in done.stdout
    assert log.read_text() == "0 0\n"
    assert "Unlocked" not in harness("clean", **NOWHERE, **may.environ()).stdout


def test_who_may_not_unlock_them_is_told_the_command(harness: Harness, stand_ins: Path) -> None:
    locked_and_killed()
    done = harness("clean", **NOWHERE, **Machine(stand_ins, [T4]).environ())
    assert done.returncode == 4
    assert "Removed" in done.stdout
    assert "sudo nvidia-smi -i GPU-00000000-57a4-d000-0000-000000000000 --reset-gpu-clocks" in done.stderr
