"""Systems that are not Linux: what does not work there is said in a sentence, and what reads finished runs works."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.cli.conftest import Harness, stored
from tests.conftest import ROOT
from tests.factories import complete
from tests.report.formats.examples import example

#: What Python on Windows lacks.
WINDOWS = """
import os, runpy, signal, sys
sys.modules.update(dict.fromkeys(["fcntl", "pwd", "resource"]))
del signal.SIGHUP, os.sched_getaffinity, os.sysconf
sys.platform = "win32"
runpy.run_module("harness", run_name="__main__")
"""


def test_on_windows_the_way_to_every_command_is_said(snapshot):
    process = subprocess.run([sys.executable, "-c", WINDOWS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (4, "")
    assert process.stderr == snapshot


@pytest.fixture
def mac(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """What Python on macOS lacks is gone."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    return harness


def test_on_macos_what_measures_says_what_works(mac, snapshot):
    for line in ("matrix -s ways -e old --dry-run", "matrix --resume results", "profile -s ways --dry-run", "doctor"):
        process = mac.call(*line.split())
        assert process.returncode == 4, line
        assert process.stderr == snapshot(name="every command")


@pytest.mark.slow
def test_on_macos_what_reads_finished_runs_works(mac, tmp_path):
    run, launches = example()
    first, second = (stored(tmp_path, replace(complete(run), id=f"{run.id[:-1]}{end}"), launches) for end in "ab")
    for line in (
        "--version",
        f"report {first}",
        f"compare {first} {second}",
        f"history add {first}",
        "history list",
        "scenarios list",
        "scenarios show ways",
        "scenarios check ways",
    ):
        process = mac.call(*line.split())
        assert process.returncode == 0, process.stderr
