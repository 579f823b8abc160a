"""A clock that is set back by a day in the middle of a run: nothing is lost, and no time is less than none."""

import subprocess
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from harness import session
from harness.history.folder import History
from harness.model.launch import Status

#: Each launch writes a byte. There are a pilot of each cell, and three rounds of each and the control.
SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Sums"
# ///


def scenario(bench):
    with open({mark!r}, "a") as file:
        file.write(".")
    bench.measure(lambda: sum(range(1000)))
"""

BEFORE, LAUNCHES = 6, 2 + 3 * 3


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that turns it."""
    path = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, source], check=True)
    return path


@pytest.mark.slow
def test_a_clock_that_is_set_back_in_the_middle_of_a_run(harness, clock, tmp_path):
    mark = tmp_path / "mark"
    (harness.root / "scenarios" / "sums.py").write_text(SCENARIO.format(mark=str(mark)))
    variables = {"LD_PRELOAD": str(clock), "CLOCK_MARK": str(mark), "CLOCK_AFTER": str(BEFORE)}
    process = harness.matrix("-s", "sums", "--rounds", "3", **variables)
    assert process.returncode == 0, process.stderr
    results = session.read(harness.run)
    counted = [launch for launch in results.launches if launch.attempt == 0]
    assert len(counted) == LAUNCHES
    assert {launch.status for launch in results.launches} == {Status.OK}
    # it went back, once
    starts = [datetime.fromisoformat(launch.started) for launch in results.launches]
    steps = [after - before for before, after in pairwise(starts)]
    assert [step < timedelta(0) for step in steps].count(True) == 1
    assert min(launch.seconds for launch in results.launches) > 0.0
    assert all(seconds >= 0.0 for launch in results.launches for seconds in launch.phases.values())
    assert all(launch.resources["wall_seconds"] >= 0.0 for launch in results.launches)
    assert "-0." not in process.stdout
    # what is done with the folder then
    assert harness("matrix", "--resume", str(harness.run)).returncode == 0
    assert harness("report", str(harness.run)).returncode == 0
    assert harness("history", "add", str(harness.run), HARNESS_HISTORY=str(tmp_path / "history")).returncode == 0
    assert [run.run for run in History(tmp_path / "history").runs()] == [harness.run.name]
