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
from harness.cli.messages import say
from harness.model import backend
from harness.model.backend import PreparationStep, Stage
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Clock, Launch, Protocol, Role, Sampling, Status
from harness.model.run import Plan, Run
from harness.model.scenario import Cell
from harness.model.texts import counted, escape, format_plain
from harness.report import format, names
from harness.runner.executor import WalkListener
from harness.runner.schedule import RunEstimate

#: The suggested budget, as a multiple of the estimated time.
HEADROOM = 1.1


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


def describe(launch: Launch, clock: Clock = Clock.WALL) -> str:
    """Describe the result of a launch in a few words."""
    (launch,) = apply_clock(clock, [launch])
    if launch.status is not Status.OK:
        words = f"{launch.status.value}: {launch.error}" if launch.error else launch.status.value
        return (
            f"{words}; the launch ran with TensorFlow's profiler, so it is repeated without the profiler"
            if launch.ended_under_profiler
            else words
        )
    if launch.samples:
        return f"{format_step(launch.mean, clock)} per step"
    return counted(len(launch.observations), "observation") if launch.only_observed else "ok"


def format_step(seconds: float, clock: Clock) -> str:
    """Format a time per step with a suitable unit: `0.375 µs`, `12.3 CPU ms`, `72.3 s`."""
    unit = format.unit([seconds], clock)
    return f"{format.number(seconds * unit.factor)} {unit.symbol}"


def describe_estimate(estimate: RunEstimate, plan: Plan) -> str:
    """Describe the estimated duration of a run in one to three sentences."""
    sentence = f"A round takes about {format.duration(estimate.round_seconds)} on this machine"
    rounds, seconds = counted(estimate.rounds, "round"), format.duration(estimate.seconds)
    if estimate.needed is None or plan.budget_seconds is None:
        if not plan.ends_early or estimate.rounds >= plan.rounds:
            return f"{sentence}: {rounds} in about {seconds}."
        end = "all claims are clear" if plan.claims else "verdicts are clear or intervals are narrow enough"
        limit = (
            ""
            if plan.budget_seconds is None
            else f", or until the budget of {format.duration(plan.budget_seconds)} ends"
        )
        return f"{sentence}: at least {rounds} in about {seconds}. The run continues until {end}{limit}."
    fewest_rounds, budget = min(plan.rounds, FEWEST_ROUNDS), format.duration(plan.budget_seconds)
    count = len(estimate.left_out)
    note = f" {count} of {len(plan.cells)} cells {'is' if count == 1 else 'are'} not measured." if count else ""
    budget_option = f"{format_plain(math.ceil(estimate.needed * HEADROOM / 30.0) / 2.0)}m"
    return (
        f"{sentence}. The budget of {budget} is too small for the {counted(fewest_rounds, 'round')} that all verdicts "
        f"need. These rounds take about {format.duration(estimate.needed)} (--budget {budget_option}).{note}"
    )


class LaunchCounter(WalkListener):
    """Counts finished and expected launches, and estimates the time left. `clock` returns seconds."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan = run.plan
        self._clock, self._measured = clock, plan.clock
        by_cell = names.distinguish_cells(plan.cells, run.scenarios)
        self._names = {cell: " ".join(words) for cell, words in by_cell.items()}
        self.done = 0
        self._most_launches = plan.all_launches  # including finished ones
        self._skipped = 0
        self._expected: int | None = None  # from the last estimate, including finished ones
        self._pilots = plan.launches(0)
        guaranteed_rounds = min(plan.rounds, FEWEST_ROUNDS) if plan.budget_is_wish else int(plan.is_spent_by_group)
        # launched even if the budget is too small
        self._fewest_launches = self._pilots + guaranteed_rounds * plan.launches(1)
        self._extra_seconds = _estimate_extra_seconds(plan.sampling, plan.sampling.of_pilots)
        self._spent_seconds = 0.0
        self._round = 0
        self._launch_start = 0.0
        self._running_count = 0
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._errors: dict[str, str] = {}

    def begin(self, cell: Cell, number: int) -> None:
        """Count a launch that starts. Other launches may be interleaved with it."""
        self._launch_start = self._launch_start if self._running_count else self._clock()
        self._running_count += 1

    def end(self, launch: Launch) -> None:
        """Count a finished launch."""
        self.done += not launch.ended_under_profiler
        self._running_count -= 1
        self._launch_start = self._clock()
        self._round = max(self._round, launch.round)
        self._spent_seconds += launch.seconds
        self._seconds[launch.round == 0].append(launch.seconds)

    def name(self, cell: Cell) -> str:
        """Return the values that distinguish a cell from the other cells of the run."""
        return self._names.get(cell) or str(cell)

    def describe(self, launch: Launch) -> str:
        """Describe the result of a launch. If an earlier cell had the same error, name that cell instead."""
        name = self.name(launch.cell)
        first_name = self._errors.setdefault(launch.error, name) if launch.error else ""
        is_repeated = first_name not in ("", name)
        return f"{launch.status.value}: same error as {first_name}" if is_repeated else describe(launch, self._measured)

    def skip(self, launches: int) -> None:
        """Count skipped launches."""
        self._most_launches -= launches
        self._skipped += launches

    def turn(self, number: int, turns: int) -> None:
        """Ignore turns."""

    def again(self, number: int, launches: int) -> None:
        """Count the additional launches of a repeated round, and print a line."""
        self._most_launches += launches
        if self._expected is not None:
            self._expected += launches
        self.tell(
            f"Round {number} had interference from other processes and is repeated: this needs "
            f"{counted(launches, 'more launch')}."
        )

    def estimate(self, estimate: RunEstimate) -> None:
        """Store the expected number of launches. After the pilots and the first round, print the estimated duration."""
        if self._expected is None or self._round == 1:
            self.tell(describe_estimate(estimate, self._plan))
        self._expected = self.done + estimate.launches

    def tell(self, line: str) -> None:
        """Print a line."""
        say(line)

    @property
    def total(self) -> int:
        """The expected number of launches, including finished ones."""
        return self.done + self._count_remaining()

    def _count_remaining(self) -> int:
        """Return the number of remaining launches, from the last estimate, or from the budget without an estimate.

        The pilots, and the rounds that a suite always measures, are launched even if the budget is too small.
        """
        remaining = self._most_launches - self.done
        if self._expected is not None:
            remaining = min(remaining, self._expected - self.done)
        elif self._plan.budget_seconds is not None:
            _, mean = self._compute_means()
            affordable = (self._plan.budget_seconds - self._spent_seconds) / mean if mean else 0.0
            remaining = min(remaining, max(math.ceil(affordable), self._fewest_launches - self.done - self._skipped))
        return max(remaining, self._running_count)

    def _compute_means(self) -> tuple[float, float]:
        """Return the mean seconds of pilots and of other launches; 0 before the first launch has ended."""
        pilot_seconds, other_seconds = self._seconds[True], self._seconds[False]
        if not pilot_seconds and not other_seconds:
            return 0.0, 0.0
        pilot = statistics.fmean(pilot_seconds or other_seconds)
        return pilot, statistics.fmean(other_seconds) if other_seconds else pilot + self._extra_seconds

    def format_time_left(self) -> str:
        """Format the time left, estimated from the launches so far; empty before the first launch has ended."""
        pilot, mean = self._compute_means()
        if not mean:
            return ""
        remaining = self._count_remaining()
        pilot_count = min(remaining, max(0, self._pilots - self.done - self._skipped))
        seconds_left = (remaining - pilot_count) * mean + pilot_count * pilot
        running_seconds = self._clock() - self._launch_start if self._running_count else 0.0
        # an overdue launch has no time left, but doesn't reduce the time of later ones
        seconds_left -= min(running_seconds, self._running_count * (pilot if pilot_count else mean))
        at_most = self._expected is None and (self._plan.ends_early or self._plan.budget_seconds)
        minutes, seconds = divmod(round(max(0.0, seconds_left)), 60)
        return f"{'at most ' if at_most else ''}{f'{minutes} min {seconds:02d} s' if minutes else f'{seconds} s'} left"


def _estimate_extra_seconds(planned: Sampling, pilot: Sampling) -> float:
    """Return how many seconds longer a launch is than a pilot, if the plan sets both lengths; otherwise 0."""
    pairs = [(planned.warmup_seconds, pilot.warmup_seconds), (planned.measure_seconds, pilot.measure_seconds)]
    if planned.protocol is Protocol.DOCUMENT:
        return 0.0
    return sum(seconds - shorter for seconds, shorter in pairs if seconds is not None and shorter is not None)


class PlainLaunches(LaunchCounter):
    """Prints one line per finished launch."""

    def end(self, launch: Launch) -> None:
        """Count a finished launch, and print a line."""
        super().end(launch)
        stage = f"round {launch.round}" if launch.round else launch.role.value
        words = f"{stage}: {self.name(launch.cell)}: {self.describe(launch)}"
        say(escape(f"[{self.done}/{self.total}] {words} ({self.format_time_left()})"))


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
