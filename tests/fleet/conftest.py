"""Fleets work in the same small project as the command line's tests."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from harness import session
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


def read_until(lines: Iterable[str], text: str) -> str:
    """What was said up to the line that has this text."""
    told = ""
    for line in lines:
        told += line
        if text in line:
            return told
    pytest.fail(f"{text} was never said:\n{told}")
