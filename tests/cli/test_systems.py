"""Systems that are not Linux: what does not work there is said in a sentence, and what reads finished runs works."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.model.errors import CannotRunHereError
from harness.model.run import Stop, StopReason
from tests.cli.conftest import Harness, stored
from tests.conftest import ROOT
from tests.report.formats.examples import example

#: What Python on Windows lacks.
WINDOWS = """
import os, runpy, signal, sys
sys.modules.update(dict.fromkeys(["fcntl", "pwd", "resource"]))
del signal.SIGHUP, os.sched_getaffinity, os.sysconf
sys.platform = "win32"
runpy.run_module("harness", run_name="__main__")
"""


def test_on_windows_the_way_to_every_command_is_said() -> None:
    done = subprocess.run([sys.executable, "-c", WINDOWS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr == (
        "harness: harness needs Linux, but this computer runs Windows.\n"
        "Use WSL 2: every command works there, and Docker Desktop can run the containers.\n"
    )


@pytest.fixture
def mac(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """What Python on macOS lacks is gone."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    return harness


@pytest.mark.parametrize(
    "command",
    [
        ("matrix", "-s", "ways", "-e", "old", "--dry-run"),
        ("matrix", "--resume", "results"),
        ("profile", "-s", "ways", "--dry-run"),
        ("doctor",),
    ],
)
@pytest.mark.usefixtures("mac")
def test_on_macos_what_measures_says_what_works(command: tuple[str, ...]) -> None:
    with pytest.raises(CannotRunHereError) as refused:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert refused.value.exit == 4
    assert refused.value.message == "Measuring needs Linux, and this computer runs macOS."
    assert "report, compare, history and scenarios" in refused.value.advice


def test_on_macos_what_reads_finished_runs_works(mac: Harness, tmp_path: Path) -> None:
    run, launches = example()
    run = replace(run, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in run.plan.groups})
    one, other = (str(stored(tmp_path, replace(run, id=f"{run.id[:-1]}{end}"), launches)) for end in "ab")
    for command in (
        ["--version"],
        ["report", one],
        ["compare", one, other],
        ["history", "add", one],
        ["history", "list"],
        ["scenarios", "list"],
        ["scenarios", "show", "ways"],
        ["scenarios", "check", "ways"],
    ):
        ended = CliRunner().invoke(app, command, catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
