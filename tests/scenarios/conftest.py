"""What the tests of the scenarios share: where they lie, a worker to start, and the oldest interpreters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.machine.interpreters import find_installed
from tests.lacking import python

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
sys.path.insert(0, str(SCENARIOS))

TIME = {
    "mode": "time",
    "warmup_seconds": 0.02,
    "measure_seconds": 0.05,
    "sample_seconds": 0.01,
    "calls_per_sample": None,
}


@pytest.fixture(scope="session")
def scenarios():
    """The folder that holds the scenarios and the kit."""
    return SCENARIOS


@pytest.fixture(scope="session")
def interpreter():
    """A function that returns the path of the installed Python of a version."""
    return lambda version: str(python(version, [find_installed]))


class Launch:
    """What a finished worker left: its exit status, its events, its standard error."""

    def __init__(self, completed):
        self.status = completed.returncode
        self.events = [json.loads(line) for line in completed.stdout.splitlines()]
        self.stderr = completed.stderr.decode()

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    @property
    def end(self):
        (event,) = self.of("end")
        return event

    @property
    def samples(self):
        return [sample for event in self.of("samples") for sample in event["samples"]]


@pytest.fixture
def launch(tmp_path):
    """A function that has a worker do a job: a scenario given as source text, and what differs from a plain job.

    `words`: what its standard input holds.
    """

    def start(source, axes=None, sampling=TIME, python=sys.executable, words="", **changes):
        (tmp_path / "given.py").write_text(source, encoding="utf-8")
        job = {
            "schema": 1,
            "cell": {"scenario": "given", "axes": axes or {}, "environment": "here", "device": "cpu"},
            "script": str(tmp_path / "given.py"),
            "sampling": sampling,
            "limits": {"die_with_parent": True},
            "artifacts": str(tmp_path / "artifacts"),
        }
        job.update(changes)
        (tmp_path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        command = [python, "-m", "kit", str(tmp_path / "job.json")]
        done = subprocess.run(
            command, cwd=SCENARIOS, input=words.encode(), capture_output=True, timeout=60, check=False
        )
        return Launch(done)

    return start
