"""A plain script in a real container: it has no header, and reads a file beside it."""

from pathlib import Path

import pytest

from harness.model.environment import Device
from harness.model.launch import SHORT, Job, Limits, Status
from harness.model.scenario import Cell
from harness.project import Project
from harness.scenarios import scripts
from harness.scenarios.catalog import load_scenario, read_kit_files
from tests.conftest import ROOT

pytestmark = pytest.mark.docker

SCRIPT = """\
import sys
import threading

total = 0
# harness: step
for line in open("data.csv"):
    total += int(line)
threading.Thread(target=print, args=("total", total, *sys.argv[1:])).start()
"""


@pytest.fixture
def launch(docker, requirement, tmp_path, monkeypatch):
    """A function that launches a plain script in a container, as `harness run` does."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))

    def launched(text, **options):
        project = Project(ROOT)
        script = scripts.Script(path=Path("mine.py"), name="mine.py", text=text, **options)
        scenario = load_scenario(scripts.write(script, "scripts"))
        files = {name: (scenario.path.parent / name).read_bytes() for name in [scenario.path.name, *scenario.files]}
        cell = Cell(scenario.name, requirement.environment.name, Device.CPU, {})
        job = Job(cell, scenario.path.name, {**files, **read_kit_files(project)}, SHORT, Limits(cpus=(0,)), {})
        return docker.launch(requirement, job)

    return launched


def test_a_plain_script_runs_with_its_files_and_tells_its_steps_and_output(launch, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("1\n2\n3\n")
    outcome = launch(SCRIPT, files=[data], arguments=["end"], grep=[r"total (\d+)"])
    assert outcome.status is Status.OK, outcome.error + outcome.stderr
    assert outcome.observations["output"]["lines"] == ["total 6 end"]
    assert outcome.observations["printed: total …"] == 6.0
    assert len(outcome.samples) == 2
    assert {"import", "own work", "whole script", "first call"} <= outcome.phases.keys()
