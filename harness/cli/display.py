"""Shows progress on stderr: live on a terminal, and as plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table
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
        launches = LiveLaunches(run)
        with launches.live:
            yield launches
    else:
        yield PlainLaunches(run)


class LivePreparation:
    """Shows a live line for each environment that waits or is being prepared, and a permanent line for a finished one.

    The lines are shown while `live` is open. `clock` returns seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: dict[str, PreparationStep] = {}
        self._start_times: dict[str, float] = {}
        self._console = console
        # the display shows the elapsed time, so it is redrawn regularly
        self.live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)

    def __call__(self, step: PreparationStep) -> None:
        """Show a step."""
        if step.stage is Stage.WORKING:
            self._start_times.setdefault(step.environment, self._clock())
        if step.stage not in (Stage.READY, Stage.FAILED):
            self._steps[step.environment] = step
            return
        self._steps.pop(step.environment, None)
        self._start_times.pop(step.environment, None)
        self.live.refresh()
        self._console.print(Text(escape(str(step))))

    def _table(self) -> Table:
        """Return a table of the active steps, and of as many waiting steps as fit on the terminal."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column()  # this column is shortened on a narrow terminal
        # a copy, because other threads change the steps during drawing
        steps = list(self._steps.values())
        working_steps = [step for step in steps if step.stage is Stage.WORKING]
        waiting_steps = [step for step in steps if step.stage is Stage.WAITING]
        for step in working_steps:
            seconds = self._clock() - self._start_times.get(step.environment, self._clock())
            words = Text(escape(step.words), no_wrap=True, overflow="ellipsis")
            table.add_row(Text(step.environment), f"{seconds:.0f} s", words)
        free_lines = max(0, self._console.height - len(working_steps) - 2)
        for step in waiting_steps[:free_lines]:
            table.add_row(Text(step.environment), "", Text(step.words, style="dim"))
        if len(waiting_steps) > free_lines:
            table.add_row("", "", f"and {len(waiting_steps) - free_lines} more waiting")
        return table


class LiveLaunches(LaunchCounter):
    """Shows a progress bar, the number of launches, the time left and the current launch, while `live` is open.

    For a launch without a result, it prints a permanent line.
    """

    def __init__(self, run: Run, console: Console | None = None) -> None:
        super().__init__(run)
        self._first_role = Role.PROFILE if self._plan.profile_calls else Role.PILOT
        self._stage = ""
        words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        # drawing uses CPU time during the measurement, so it is done only twice per second
        self.live = Progress(
            BarColumn(24), words, console=console or Console(stderr=True), refresh_per_second=2, transient=True
        )
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
