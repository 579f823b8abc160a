"""The protocol that every backend keeps."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from harness.model.environment import Requirement
from harness.model.job import Job
from harness.model.launch import Outcome

#: Called with one line of progress while an environment is prepared.
Progress = Callable[[str], None]


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
