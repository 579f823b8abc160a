"""Shows progress on stderr: live on a terminal, and as plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from harness.cli.launch_counter import LaunchCounter, PlainLaunches
from harness.cli.messages import say
from harness.model import backend
from harness.model.backend import PreparationStep, Stage
from harness.model.launch import Launch, Role, Status
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.model.texts import escape
from harness.runner.executor import WalkListener


@contextmanager
def show_preparation() -> Iterator[backend.Progress]:
    """Yield a function that shows the steps of the preparation. Waiting steps are shown only on a terminal."""
    if sys.stderr.isatty():
        preparation = LivePreparation(Console(stderr=True))
        with preparation.live:
            yield preparation
    else:
        yield lambda step: None if step.stage is Stage.WAITING else say(step)


@contextmanager
def show_launches(run: Run) -> Iterator[WalkListener]:
    """Yield a listener that shows the progress of launches on stderr."""
    if sys.stderr.isatty():
        launches = LiveLaunches(run, Console(stderr=True))
        with launches.live:
            yield launches
    else:
        yield PlainLaunches(run)


class LivePreparation:
    """Shows a live line for each environment that waits or is being prepared, and a permanent line for a finished one.

    The lines are shown while `live` is open.
    """

    def __init__(self, console: Console) -> None:
        self._tasks: dict[str, TaskID] = {}
        name = TextColumn("{task.description}", markup=False)
        self.live = _make_progress(console, name, TimeElapsedColumn(), words="{task.fields[words]}", refreshes=4)

    def __call__(self, step: PreparationStep) -> None:
        """Show a step."""
        if step.stage in (Stage.READY, Stage.FAILED):
            if step.environment in self._tasks:
                self.live.remove_task(self._tasks.pop(step.environment))
            self.live.console.print(Text(escape(str(step))))
            return
        if step.environment not in self._tasks:
            self._tasks[step.environment] = self.live.add_task(step.environment, start=False, words="")
        if step.stage is Stage.WORKING:
            self.live.start_task(self._tasks[step.environment])
        self.live.update(self._tasks[step.environment], words=escape(step.words))


def _make_progress(console: Console, *columns: ProgressColumn, words: str, refreshes: int) -> Progress:
    """Return a live display with a line for each task. The `words` at its end are cut at the end of the terminal.

    It is drawn `refreshes` times per second.
    """
    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    words_column = TextColumn(words, markup=False, table_column=rest)
    return Progress(*columns, words_column, console=console, refresh_per_second=refreshes, transient=True, expand=True)


class LiveLaunches(LaunchCounter):
    """Shows a progress bar, the number of launches, the time left and the current launch, while `live` is open.

    For a launch without a result, it prints a permanent line.
    """

    def __init__(self, run: Run, console: Console) -> None:
        super().__init__(run)
        self._first_role = Role.PROFILE if self._plan.profile_calls else Role.PILOT
        self._stage = ""
        # drawing uses CPU time during the measurement, so it is done only twice per second
        self.live = _make_progress(console, BarColumn(24), words="{task.description}", refreshes=2)
        self._task = self.live.add_task("", total=self.total)

    def begin(self, cell: Cell, number: int) -> None:
        """Show a launch that starts."""
        self._stage = f"round {number}" if number else self._first_role.value
        self._show(self.name(cell))

    def turn(self, number: int, turns: int) -> None:
        """Show the number of the turn, in which each interleaved launch measures once."""
        self._show(f"turn {number} of {turns}")

    def end(self, launch: Launch) -> None:
        """Count a finished launch, and print a line if it has no result."""
        super().end(launch)
        if launch.status is not Status.OK:
            self.tell(f"{self.name(launch.cell)}: {self.describe(launch)}")

    def tell(self, line: str) -> None:
        """Print a permanent line above the progress bar."""
        self.live.console.print(Text(escape(line)))

    def _show(self, current: str) -> None:
        parts = (self.format_count(), self.format_time_left(), f"{self._stage}: {current}")
        words = "  ".join(filter(None, parts))
        self.live.update(self._task, description=escape(words), completed=self.done, total=self.total)
