"""Fixtures for the tests of the scenarios: their folder, workers, and interpreters."""

import gc
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from harness.machine.interpreters import find_installed
from tests.lacking import for_a_campaign, python

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
sys.path.insert(0, str(SCENARIOS))

from kit import process  # noqa: E402, from the folder of the scenarios
from kit.events import plain  # noqa: E402
from kit.telemetry import Telemetry  # noqa: E402
from kit.words import Words  # noqa: E402
from kit.worker import INTERRUPTED, report  # noqa: E402

TIME = {
    "mode": "time",
    "warmup_seconds": 0.02,
    "measure_seconds": 0.05,
    "sample_seconds": 0.01,
    "calls_per_sample": None,
}

#: The oldest release's interpreter, and the newest one. Those in between are for a campaign.
IN_BETWEEN = for_a_campaign("3.7", "3.8", "3.11")
VERSIONS = ["3.6", *IN_BETWEEN, "3.13"]


@pytest.fixture(autouse=True)
def _freeze():
    """Keep the objects of other tests out of the garbage collections before measurements."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def scenarios():
    """The folder that holds the scenarios and the kit."""
    return SCENARIOS


@pytest.fixture(scope="session")
def interpreter():
    """A function that returns the path of the installed Python of a version."""
    return lambda version: str(python(version, [find_installed]))


class Launch:
    def __init__(self, status, events, stderr=""):
        self.status, self.events, self.stderr = status, events, stderr

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    @property
    def end(self):
        (event,) = self.of("end")
        return event

    @property
    def samples(self):
        return [sample for event in self.of("samples") for sample in event["samples"]]

    def observed(self, name):
        (value,) = [event["value"] for event in self.of("observation") if event["name"] == name]
        return value


def write_job(folder, source, axes=None, sampling=TIME, **changes):
    """Write a scenario given as source text, and a plain job for it, less what differs. Return the job's path."""
    (folder / "given.py").write_text(source, encoding="utf-8")
    job = {
        "schema": 1,
        "cell": {"scenario": "given", "axes": axes or {}, "environment": "here", "device": "cpu"},
        "script": str(folder / "given.py"),
        "sampling": sampling,
        "artifacts": str(folder / "artifacts"),
        **changes,
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return str(folder / "job.json")


def run_worker(folder, source, python=sys.executable, words="", **changes):
    """Run a job in a worker process, with the text `words` on its standard input."""
    job = write_job(folder, source, **{"limits": {"die_with_parent": True}, **changes})
    completed = subprocess.run(
        [python, "-m", "kit", job], cwd=SCENARIOS, input=words.encode(), capture_output=True, timeout=60, check=False
    )
    events = [json.loads(line) for line in completed.stdout.splitlines()]
    return Launch(completed.returncode, events, completed.stderr.decode())


@pytest.fixture
def launch(tmp_path):
    return partial(run_worker, tmp_path)


@pytest.fixture
def perform(tmp_path, monkeypatch):
    """Return a function that runs a job in this process, because starting a process takes long."""
    monkeypatch.setattr(process, "installed_packages", dict)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def start(source, words="", **changes):
        job, events = write_job(tmp_path, source, **changes), []
        reader, writer = os.pipe()
        os.write(writer, words.encode())
        os.close(writer)
        try:
            emit = lambda event, **fields: events.append({"event": event, **plain(fields)})  # noqa: E731
            status = report(job, emit, Words(reader), Telemetry())
        except KeyboardInterrupt:
            status = INTERRUPTED
        finally:
            os.close(reader)
        return Launch(status, events)

    return start
