import os
from pathlib import Path

from tests.cli.conftest import NOWHERE, Harness


def test_scratch_folders_that_a_killed_harness_left_are_removed(harness: Harness) -> None:
    left = Path(os.environ["HARNESS_CACHE_DIR"]) / "scratch" / "2026-11-21T00-00-00Z-dead" / "launch"
    left.mkdir(parents=True)
    done = harness("clean", "results/2026-11-21T00-00-00Z-dead", **NOWHERE)
    assert done.returncode == 0
    assert "and 1 scratch folders" in done.stdout
    assert not left.exists()
