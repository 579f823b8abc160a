"""A session works in the same small project as the command line's tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import session
from harness.backends.local.backend import LocalBackend
from harness.model.launch import Launch
from harness.store.folder import RunFolder
from tests.cli.conftest import Harness, InstantLaunches, _environments, harness, instant, write_scenario

__all__ = ["InstantLaunches", "_environments", "harness", "instant", "write_scenario"]

Options = dict[str, Any]


@pytest.fixture
def in_project(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the small project."""
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Options:
    """Return options of launches as short as can be, on a small disk: the environments contain no TensorFlow."""
    monkeypatch.setattr(LocalBackend, "check_room", lambda *_: None)
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    return {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "rounds": 1, **short}


def edit_run(folder: Path, **changes: Any) -> None:
    """Change a stored run, as this user."""
    stored = RunFolder.open(folder)
    stored.write_run(replace(stored.read_run(), **changes), signed=True)


class Ears(session.Listener):
    """A listener that keeps messages, and interrupts after a number of launches."""

    def __init__(self, interrupt_after: int = 0) -> None:
        self.sentences: list[str] = []
        self.launches: list[Launch] = []
        self._after = interrupt_after

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def end(self, launch: Launch) -> None:
        self.launches.append(launch)
        if len(self.launches) == self._after:
            raise KeyboardInterrupt


def make_run(options: Options, listener: session.Listener | None = None, **changes: Any) -> session.Ended:
    """Plan and run."""
    planned = session.plan(session.Request(**{**options, **changes}))
    return session.run(planned, listener) if listener else session.run(planned)
