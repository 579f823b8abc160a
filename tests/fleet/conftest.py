"""Fleets work in the same small project as the command line's tests."""

import contextlib
from collections import Counter
from pathlib import Path

import psutil
import pytest

from harness import session
from harness.model.launch import Role, Status
from tests.cli.conftest import Harness, _environments, harness, write_scenario

__all__ = ["_environments", "harness", "write_scenario"]


@pytest.fixture
def planned(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> session.Planned:
    """Eight groups of two cells, in two rounds."""
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    axes = {"way": ["fine", "raises", "exits", "killed"], "speed": ["fast", "slow"]}
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    request = session.Request(scenarios=["ways"], axes=axes, rounds=2, results=Path("results"), **short)  # type: ignore[arg-type]
    return session.plan(request)


class Sentences(session.Listener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def find_commands(home: Path) -> list[psutil.Process]:
    """Return the harness processes of machines whose home folders are in a folder."""
    parents = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_there = process.environ().get("HOME", "").startswith(str(home))
            if is_there and process.cmdline()[1:3] == ["-m", "harness"]:
                parents[process] = process.ppid()
    started_by = {process.pid for process in parents}
    return [process for process, parent in parents.items() if parent not in started_by]


def counts(folder: Path) -> Counter[tuple[str, str, int]]:
    """How often each cell has a result, by group, environment and round: controls left out.

    Of a round the last attempt counts; a pilot that was interrupted is made again for the cells that lack it.
    """
    launches = session.read(folder).launches
    results = [launch for launch in launches if launch.status is Status.OK and launch.role is not Role.CONTROL]
    newest: dict[tuple[str, int], int] = {}
    for launch in results:
        newest[launch.group, launch.round] = max(newest.get((launch.group, launch.round), 0), launch.attempt)
    return Counter(
        (launch.group, launch.cell.environment, launch.round)
        for launch in results
        if not launch.round or launch.attempt == newest[launch.group, launch.round]
    )
