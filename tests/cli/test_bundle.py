"""`harness bundle`."""

import json

import pytest


@pytest.mark.slow
def test_a_run_becomes_a_bundle_of_at_most_two_cells(harness):
    harness.matrix("-s", "ways", "-a", "way=fine", "-a", "speed=fast,slow", "--rounds", "1")
    refused = harness.call("bundle", str(harness.run), "-e", "old,new")
    assert (refused.returncode, " 1 or 2" in refused.stderr) == (2, True)
    process = harness("bundle", str(harness.run), "-e", "old", "-a", "speed=fast")
    assert process.returncode == 0, process.stderr
    folder = harness.run / "bundle"
    assert harness.root / process.stdout.strip() == folder / "issue.md"
    assert "bundle.zip" in process.stderr
    assert "fast" in json.loads((folder / "run.json").read_text())["scenarios"][0]["axes"]["speed"]
    script = (folder / "repro.py").read_text()
    assert ('"speed": "fast"' in script, '"speed": "slow"' in script) == (True, False)
