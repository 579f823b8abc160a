"""Who hears what a run does, to show it."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.model.backend import Progress, Step
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.runner.walk import WalkListener


class Listener:
    """Hears what a run does, and does nothing about it: override what you want to know.

    `preparing` and `launching` stand around a whole stage, for those who show something as long as it lasts; what they
    give is told the steps of that stage, by default this listener itself.
    """

    def say(self, sentence: str) -> None:
        """A sentence for the user: which backend was taken, what is not available here."""

    def step(self, step: Step) -> None:
        """Something happened to an environment that is being prepared."""

    def begin(self, cell: Cell, number: int) -> None:
        """A launch of round `number` begins; 0 is the pilot."""

    def end(self, launch: Launch) -> None:
        """A launch has ended, and is stored."""

    def skip(self, launches: int) -> None:
        """So many launches will not be done: they are there already, or not needed, or their cells failed for good."""

    def again(self, number: int, launches: int) -> None:
        """Other processes disturbed round `number` of a group: it is repeated, with so many more launches."""

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        """Stands around the preparation of the environments."""
        yield self.step

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Stands around the launches of a run, whose folder is there now."""
        yield self
