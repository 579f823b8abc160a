"""The protocol that every backend keeps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from harness.model.environment import Requirement
from harness.model.job import Job
from harness.model.launch import Outcome


class Stage(StrEnum):
    """How far the preparation of an environment is."""

    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens to an environment while it is prepared. As text it is one line of progress."""

    environment: str
    words: str
    stage: Stage = Stage.WORKING

    def __str__(self) -> str:
        return f"{self.environment}: {self.words}"


#: Called with every step while environments are prepared, by one thread at a time.
Progress = Callable[[Step], object]


class Backend(Protocol):
    """Executes launches. One object serves one run."""

    name: str

    def facts(self) -> Mapping[str, Any]:
        """What the report says of the engine, JSON values only."""
        ...

    def prepare(self, requirements: list[Requirement], progress: Progress) -> dict[str, str | Exception]:
        """Make every environment ready, and return for each name what will run (an image's id or a lock's hash).

        An environment that cannot be had here has an UnavailableError as its value. Raises CannotRunHereError where
        nothing can be prepared at all.
        """
        ...

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        """Execute one launch and wait for its end. Leaves nothing behind, also when interrupted.

        Never raises for what the scenario does; KeyboardInterrupt passes through.
        """
        ...

    def clean(self, run: str) -> int:
        """Remove what launches of the run (all runs where empty) left behind; returns how many there were."""
        ...
