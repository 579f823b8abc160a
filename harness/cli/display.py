"""Shows progress on stderr: live on a terminal, and as plain lines elsewhere."""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from harness.analysis.rounds import apply_clock
from harness.cli.launch_counter import LaunchCounter, PlainLaunches, format_step
from harness.cli.messages import say
from harness.model import backend
from harness.model.backend import PreparationStep, Stage
from harness.model.launch import Launch, Role, Status
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.model.texts import escape
from harness.report import format
from harness.runner.executor import WalkListener
from harness.runner.schedule import RunEstimate


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


class _Cell:
    """The state of a cell on a terminal: its last result as text, and its seconds per step by round."""

    def __init__(self) -> None:
        self.last_result = ""
        self.seconds: dict[int, float] = {}

    @property
    def mean(self) -> float:
        """The geometric mean over the cell's rounds, as in the report."""
        return statistics.geometric_mean(self.seconds.values())

    def format_ratio(self, base: "_Cell") -> str:
        """Format the ratio to another cell in the rounds that both have; empty if there are none."""
        ratios = [
            self.seconds[round_number] / base.seconds[round_number]
            for round_number in self.seconds
            if round_number in base.seconds
        ]
        return f"{format.number(statistics.geometric_mean(ratios))}×" if ratios else ""


class LiveLaunches(LaunchCounter):
    """Shows a live table of the cells with their times so far, and below it the progress and the current launch.

    For a launch without a result, it prints a permanent line. The table is shown while `live` is open.
    """

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic, console: Console | None = None) -> None:
        super().__init__(run, clock)
        self._started = clock()
        self._rounds = 0 if self._plan.ends_early or self._plan.budget_seconds else self._plan.rounds
        self._stage = self._current = ""
        self._first_role = Role.PROFILE if self._plan.profile_calls else Role.PILOT
        self._cells: dict[Cell, _Cell] = {}  # in the order of their last finished launches
        self._bases = {cell: group.control or group.cells[0] for group in self._plan.groups for cell in group.cells}
        self._places = {cell: place for place, cell in enumerate(self._plan.cells)}
        #: The widths of the lines on the screen.
        self.widths: list[int] = []
        # drawing uses CPU time during the measurement, so it is done only twice per second
        self.live = _Live(self, console or Console(stderr=True))

    def begin(self, cell: Cell, number: int) -> None:
        """Show a launch that starts."""
        super().begin(cell, number)
        total = f" of {self._rounds}" if self._rounds >= number else ""
        self._stage = f"round {number}{total}" if number else self._first_role.value
        self._current = self.name(cell)

    def turn(self, number: int, turns: int) -> None:
        """Show the number of the turn, in which each interleaved launch measures once."""
        self._current = f"turn {number} of {turns}"

    def end(self, launch: Launch) -> None:
        """Add a finished launch to the table, and print a line if it has no result."""
        super().end(launch)
        if launch.role in (Role.PILOT, Role.MEASURE):
            self._add_to_row(launch)
        if launch.status is not Status.OK:
            self.tell(f"{self.name(launch.cell)}: {self.describe(launch)}")

    def _add_to_row(self, launch: Launch) -> None:
        """Add a launch to the row of its cell."""
        cell = self._cells[launch.cell] = self._cells.pop(launch.cell, _Cell())
        (measured_launch,) = apply_clock(self._measured, [launch])
        cell.last_result = "" if measured_launch.status is Status.OK else measured_launch.status.value
        if measured_launch.samples:
            cell.last_result = cell.last_result or format_step(measured_launch.mean, self._measured)
            if launch.round:
                # a new dict, because another thread may be drawing the old one
                cell.seconds = {**cell.seconds, launch.round: measured_launch.mean}

    def estimate(self, estimate: RunEstimate) -> None:
        """Store the expected numbers of launches and rounds."""
        super().estimate(estimate)
        self._rounds = estimate.rounds

    def tell(self, line: str) -> None:
        """Print a permanent line above the table."""
        self.live.console.print(Text(escape(line)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # leave the last column empty, because some terminals wrap a line that fills it
        width = max(1, options.max_width - 1)
        lines = [
            *self._table(width, options.size.height - 4),
            self._draw_progress(width),
            self._describe_running(width),
        ]
        for line in lines:
            line.truncate(width)
        self.widths = [line.cell_len for line in lines]
        yield from lines

    def _table(self, width: int, free_lines: int) -> list[Text]:
        """Return one row per cell in plan order, or for the most recent cells if there are more than `free_lines`.

        Each ratio is relative to the group's baseline, or to its first cell.
        """
        # a copy, because launches end in another thread while this one draws
        cells = list(self._cells.items())
        newest_cells = cells[-free_lines:] if free_lines > 0 else ()
        shown_cells = sorted(newest_cells, key=lambda entry: self._places.get(entry[0], 0))
        if not shown_cells:
            return []
        rows = [(self.name(cell), *self._format_values(cell, state)) for cell, state in shown_cells]
        count_note = f" ({len(rows)} of {len(self._plan.cells)})" if len(rows) < len(cells) else ""
        table = [(f"cell{count_note}", "last", "mean", "ratio", "rounds"), *rows]
        _, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
        name_width = min(max(cell_len(row[0]) for row in table), max(8, width - sum(widths) - 2 * len(widths)))
        lines = []
        for row, style in zip(table, ["dim", *[""] * len(rows)], strict=True):
            numbers = "".join(f"  {text:>{column_width}}" for text, column_width in zip(row[1:], widths, strict=True))
            lines.append(Text(set_cell_size(shorten(row[0], name_width), name_width) + numbers, style, no_wrap=True))
        return lines

    def _format_values(self, cell: Cell, state: _Cell) -> tuple[str, str, str, str]:
        """Return the last time of a cell, its mean, its ratio and its number of rounds, as texts."""
        base = self._bases.get(cell, cell)
        if not state.seconds:
            return state.last_result or "ok", "", "", "pilot"
        ratio = "baseline" if base == cell else state.format_ratio(self._cells.get(base, _Cell()))
        return state.last_result, format_step(state.mean, self._measured), ratio, str(len(state.seconds))

    def _draw_progress(self, width: int) -> Text:
        """Return the progress bar, the number of finished launches, the time left and the time so far."""
        total, time_left = self.total, self.format_time_left()
        spent_text = f"{format.duration(self._clock() - self._started)} so far"
        words = "".join(f"  {part}" for part in (f"{self.done}/{total}", time_left, spent_text) if part)
        bar = max(6, min(24, width - len(words)))
        filled_width = round(bar * self.done / total) if total else 0
        return Text.assemble(("━" * filled_width, "green"), ("─" * (bar - filled_width), "dim"), words, no_wrap=True)

    def _describe_running(self, width: int) -> Text:
        """Return the line about the current launches: the round, and the cell or the turn."""
        stage = f"{self._stage}: " if self._stage else ""
        return Text(stage + shorten(self._current, width - len(stage)), no_wrap=True)


class _Live(Live):
    """A live display that stays in its place if the terminal becomes narrower.

    A narrower terminal wraps the lines on the screen, so they take more lines than were drawn.
    """

    def __init__(self, launches: LiveLaunches, console: Console) -> None:
        self._launches = launches
        super().__init__(launches, console=console, refresh_per_second=2, transient=True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clear the additional lines before drawing."""
        width = max(1, self.console.width)
        extra_lines = sum(max(0, math.ceil(line_width / width) - 1) for line_width in self._launches.widths)
        controls = [Control((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))] * extra_lines
        return [*controls, *super().process_renderables(renderables)]


def shorten(text: str, width: int) -> str:
    """Shorten a text to `width` columns by leaving out its middle."""
    text = escape(text)
    if cell_len(text) <= width:
        return text
    end = max(0, width - 1) // 2
    return set_cell_size(text, max(0, width - 1 - end)) + "…" + set_cell_size(text[::-1], end)[::-1]
