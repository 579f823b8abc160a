"""`harness bundle`."""

import json
from pathlib import Path

from typer.testing import CliRunner

from harness.cli import app
from tests.cli.conftest import Harness


def test_what_was_measured_becomes_a_bundle(harness: Harness, monkeypatch) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    monkeypatch.chdir(harness.root)
    done = CliRunner().invoke(app, ["bundle", str(harness.run), "--for", "keras"], catch_exceptions=False)
    assert done.exit_code == 0
    assert Path(done.stdout.strip()) == harness.run / "bundle" / "issue.md"
    assert "bundle.zip" in done.stderr
    assert "fast" in json.loads((harness.run / "bundle" / "run.json").read_text())["scenarios"][0]["axes"]["speed"]


def test_no_run_is_no_bundle(harness: Harness) -> None:
    done = harness("bundle", str(harness.root))
    assert done.returncode == 2
    assert "isn't the folder of a run" in done.stderr


def test_a_cell_can_be_selected(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "-a", "speed=fast,slow", "--rounds", "1")
    refused = harness("bundle", str(harness.run), "-e", "old,new")
    assert refused.returncode == 2
    assert "cells are selected, but a script can run only 1 or 2" in refused.stderr
    done = harness("bundle", str(harness.run), "-e", "old", "-a", "speed=fast")
    assert done.returncode == 0, done.stderr
    script = (harness.run / "bundle" / "repro.py").read_text()
    assert ('"speed": "fast"' in script, '"speed": "slow"' in script) == (True, False)
