"""The receiver of the events of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.model.backend import PreparationStep, Progress
from harness.model.run import Run
from harness.runner.executor import WalkListener


class Listener(WalkListener):
    """Receives the events of a run, and ignores them. Override the methods that you need.

    `preparing` and `launching` are context managers that enclose a whole stage, for example to show a progress bar.
    The object that they yield receives the events of that stage. By default, it is this listener.
    """

    def say(self, sentence: str) -> None:
        """Receive a message for the user, such as the name of the selected backend."""

    def step(self, step: PreparationStep) -> None:
        """Receive a step of the preparation of an environment."""

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        """Enclose the preparation of the environments."""
        yield self.step

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Enclose the launches of a run, whose folder already exists."""
        yield self
