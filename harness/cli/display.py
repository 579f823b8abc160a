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

#: A suggested budget is this multiple of the estimate.
HEADROOM = 1.1


@contextmanager
def show_preparation() -> Iterator[backend.Progress]:
    """Yield a function that shows the steps of the preparation. Outside a terminal, waiting steps aren't shown."""
    if sys.stderr.isatty():
        shown = LivePreparation(Console(stderr=True))
        with shown.live:
            yield shown
    else:
        yield lambda step: None if step.stage is Stage.WAITING else say(step)


@contextmanager
def show_launches(run: Run) -> Iterator[WalkListener]:
    """Yield a listener that shows the progress of launches on stderr."""
    if sys.stderr.isatty():
        shown = LiveLaunches(run)
        with shown.live:
            yield shown
    else:
        yield PlainLaunches(run)


class LivePreparation:
    """Shows a live line for each environment that waits or is being prepared, and a permanent line for a finished one.

    The lines are shown while `live` is open. `clock` returns seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: dict[str, PreparationStep] = {}
        self._begun: dict[str, float] = {}
        self._console = console
        # the display shows the elapsed time, so it is redrawn regularly
        self.live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)

    def __call__(self, step: PreparationStep) -> None:
        """Show a step."""
        if step.stage is Stage.WORKING:
            self._begun.setdefault(step.environment, self._clock())
        if step.stage not in (Stage.READY, Stage.FAILED):
            self._steps[step.environment] = step
            return
        self._steps.pop(step.environment, None)
        self._begun.pop(step.environment, None)
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
        working = [step for step in steps if step.stage is Stage.WORKING]
        waiting = [step for step in steps if step.stage is Stage.WAITING]
        for step in working:
            seconds = self._clock() - self._begun.get(step.environment, self._clock())
            words = Text(escape(step.words), no_wrap=True, overflow="ellipsis")
            table.add_row(Text(step.environment), f"{seconds:.0f} s", words)
        room = max(0, self._console.height - len(working) - 2)
        for step in waiting[:room]:
            table.add_row(Text(step.environment), "", Text(step.words, style="dim"))
        if len(waiting) > room:
            table.add_row("", "", f"and {len(waiting) - room} more waiting")
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
    fewest, budget = min(plan.rounds, FEWEST_ROUNDS), format.duration(plan.budget_seconds)
    missing = len(estimate.left_out)
    some = f" {missing} of {len(plan.cells)} cells {'is' if missing == 1 else 'are'} not measured." if missing else ""
    enough = f"{format_plain(math.ceil(estimate.needed * HEADROOM / 30.0) / 2.0)}m"
    return (
        f"{sentence}. The budget of {budget} is too small for the {counted(fewest, 'round')} that all verdicts "
        f"need. These rounds take about {format.duration(estimate.needed)} (--budget {enough}).{some}"
    )


class LaunchCounter(WalkListener):
    """Counts finished and expected launches, and estimates the time left. `clock` returns seconds."""

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan = run.plan
        self._clock, self._measured = clock, plan.clock
        by_cell = names.distinguish_cells(plan.cells, run.scenarios)
        self._names = {cell: " ".join(words) for cell, words in by_cell.items()}
        self.done = 0
        self._most = plan.all_launches  # including finished ones
        self._skipped = 0
        self._expected: int | None = None  # from the last estimate, including finished ones
        self._pilots = plan.launches(0)
        sure = min(plan.rounds, FEWEST_ROUNDS) if plan.budget_is_wish else int(plan.is_spent_by_group)
        self._least = self._pilots + sure * plan.launches(1)  # launched even if the budget is too small
        self._longer = _estimate_extra_seconds(plan.sampling, plan.sampling.of_pilots)
        self._spent = 0.0
        self._round = 0
        self._begun = 0.0
        self._open = 0
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._errors: dict[str, str] = {}

    def begin(self, cell: Cell, number: int) -> None:
        """Count a launch that starts. Other launches may be interleaved with it."""
        self._begun = self._begun if self._open else self._clock()
        self._open += 1

    def end(self, launch: Launch) -> None:
        """Count a finished launch."""
        self.done += not launch.ended_under_profiler
        self._open -= 1
        self._begun = self._clock()
        self._round = max(self._round, launch.round)
        self._spent += launch.seconds
        self._seconds[launch.round == 0].append(launch.seconds)

    def name(self, cell: Cell) -> str:
        """Return the values that distinguish a cell from the other cells of the run."""
        return self._names.get(cell) or str(cell)

    def describe(self, launch: Launch) -> str:
        """Describe the result of a launch. The error of an earlier cell isn't repeated."""
        name = self.name(launch.cell)
        first = self._errors.setdefault(launch.error, name) if launch.error else ""
        again = first not in ("", name)
        return f"{launch.status.value} as {first} did" if again else describe(launch, self._measured)

    def skip(self, launches: int) -> None:
        """Count skipped launches."""
        self._most -= launches
        self._skipped += launches

    def turn(self, number: int, turns: int) -> None:
        """Ignore turns."""

    def again(self, number: int, launches: int) -> None:
        """Count the additional launches of a repeated round, and print a line."""
        self._most += launches
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
        """Return the number of remaining launches, from the last estimate or, before the first one, from the budget.

        The pilots, and the rounds that a suite always measures, are launched even if the budget is too small.
        """
        ahead = self._most - self.done
        if self._expected is not None:
            ahead = min(ahead, self._expected - self.done)
        elif self._plan.budget_seconds is not None:
            _, mean = self._compute_means()
            held = (self._plan.budget_seconds - self._spent) / mean if mean else 0.0
            ahead = min(ahead, max(math.ceil(held), self._least - self.done - self._skipped))
        return max(ahead, self._open)

    def _compute_means(self) -> tuple[float, float]:
        """Return the mean seconds of pilots and of other launches; 0 before the first launch has ended."""
        pilots, others = self._seconds[True], self._seconds[False]
        if not pilots and not others:
            return 0.0, 0.0
        pilot = statistics.fmean(pilots or others)
        return pilot, statistics.fmean(others) if others else pilot + self._longer

    def format_time_left(self) -> str:
        """Format the time left, estimated from the launches so far; empty before the first launch has ended."""
        pilot, mean = self._compute_means()
        if not mean:
            return ""
        ahead = self._count_remaining()
        to_pilot = min(ahead, max(0, self._pilots - self.done - self._skipped))
        rest = (ahead - to_pilot) * mean + to_pilot * pilot
        running = self._clock() - self._begun if self._open else 0.0
        # an overdue launch has no time left, but doesn't reduce the time of later ones
        rest -= min(running, self._open * (pilot if to_pilot else mean))
        at_most = self._expected is None and (self._plan.ends_early or self._plan.budget_seconds)
        minutes, seconds = divmod(round(max(0.0, rest)), 60)
        return f"{'at most ' if at_most else ''}{f'{minutes} min {seconds:02d} s' if minutes else f'{seconds} s'} left"


def _estimate_extra_seconds(planned: Sampling, pilot: Sampling) -> float:
    """Return how many seconds longer a launch is than a pilot, if the plan sets both lengths; otherwise 0."""
    pairs = [(planned.warmup_seconds, pilot.warmup_seconds), (planned.measure_seconds, pilot.measure_seconds)]
    if planned.protocol is Protocol.DOCUMENT:
        return 0.0
    return sum(seconds - before for seconds, before in pairs if seconds is not None and before is not None)


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
        self.last = ""
        self.seconds: dict[int, float] = {}

    @property
    def mean(self) -> float:
        """The geometric mean over the cell's rounds, as in the report."""
        return statistics.geometric_mean(self.seconds.values())

    def format_ratio(self, base: "_Cell") -> str:
        """Format the ratio to another cell in the rounds that both have; empty if there are none."""
        both = [
            self.seconds[round_number] / base.seconds[round_number]
            for round_number in self.seconds
            if round_number in base.seconds
        ]
        return f"{format.number(statistics.geometric_mean(both))}×" if both else ""


class LiveLaunches(LaunchCounter):
    """Shows a live table of the cells with their times so far, and below it the progress and the current launch.

    For a launch without a result, it prints a permanent line. The table is shown while `live` is open.
    """

    def __init__(self, run: Run, clock: Callable[[], float] = time.monotonic, console: Console | None = None) -> None:
        super().__init__(run, clock)
        self._started = clock()
        self._rounds = 0 if self._plan.ends_early or self._plan.budget_seconds else self._plan.rounds
        self._stage = self._now = ""
        self._first = Role.PROFILE if self._plan.profile_calls else Role.PILOT
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
        self._stage = f"round {number}{total}" if number else self._first.value
        self._now = self.name(cell)

    def turn(self, number: int, turns: int) -> None:
        """Show the number of the turn, in which each interleaved launch measures once."""
        self._now = f"turn {number} of {turns}"

    def end(self, launch: Launch) -> None:
        """Add a finished launch to the table, and print a line if it has no result."""
        super().end(launch)
        if launch.role in (Role.PILOT, Role.MEASURE):
            self._add(launch)
        if launch.status is not Status.OK:
            self.tell(f"{self.name(launch.cell)}: {self.describe(launch)}")

    def _add(self, launch: Launch) -> None:
        """Add a launch to the row of its cell."""
        cell = self._cells[launch.cell] = self._cells.pop(launch.cell, _Cell())
        (judged,) = apply_clock(self._measured, [launch])
        cell.last = "" if judged.status is Status.OK else judged.status.value
        if judged.samples:
            cell.last = cell.last or format_step(judged.mean, self._measured)
            if launch.round:
                # a new dict, because another thread may be drawing the old one
                cell.seconds = {**cell.seconds, launch.round: judged.mean}

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

    def _table(self, width: int, room: int) -> list[Text]:
        """Return one row per cell in plan order, or for the most recent cells if there are more than `room`.

        Each ratio is relative to the group's baseline, or to its first cell.
        """
        # a copy, because launches end in another thread while this one draws
        latest = list(self._cells.items())
        shown = sorted(latest[-room:] if room > 0 else (), key=lambda entry: self._places.get(entry[0], 0))
        if not shown:
            return []
        rows = [(self.name(cell), *self._format_values(cell, state)) for cell, state in shown]
        some = f" ({len(rows)} of {len(self._plan.cells)})" if len(rows) < len(latest) else ""
        table = [(f"cell{some}", "last", "mean", "ratio", "rounds"), *rows]
        _, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
        first = min(max(cell_len(row[0]) for row in table), max(8, width - sum(widths) - 2 * len(widths)))
        lines = []
        for row, style in zip(table, ["dim", *[""] * len(rows)], strict=True):
            numbers = "".join(f"  {text:>{wide}}" for text, wide in zip(row[1:], widths, strict=True))
            lines.append(Text(set_cell_size(shorten(row[0], first), first) + numbers, style, no_wrap=True))
        return lines

    def _format_values(self, cell: Cell, state: _Cell) -> tuple[str, str, str, str]:
        """Return a cell's last time, its mean, the ratio and the number of rounds."""
        base = self._bases.get(cell, cell)
        if not state.seconds:
            return state.last or "ok", "", "", "pilot"
        ratio = "baseline" if base == cell else state.format_ratio(self._cells.get(base, _Cell()))
        return state.last, format_step(state.mean, self._measured), ratio, str(len(state.seconds))

    def _draw_progress(self, width: int) -> Text:
        """Return the progress bar, the number of finished launches, the time left and the time so far."""
        total, left = self.total, self.format_time_left()
        spent = f"{format.duration(self._clock() - self._started)} so far"
        words = "".join(f"  {part}" for part in (f"{self.done}/{total}", left, spent) if part)
        bar = max(6, min(24, width - len(words)))
        filled = round(bar * self.done / total) if total else 0
        return Text.assemble(("━" * filled, "green"), ("─" * (bar - filled), "dim"), words, no_wrap=True)

    def _describe_running(self, width: int) -> Text:
        """Return the line about the current launches: the round, and the cell or the turn."""
        stage = f"{self._stage}: " if self._stage else ""
        return Text(stage + shorten(self._now, width - len(stage)), no_wrap=True)


class _Live(Live):
    """A live display that stays in its place if the terminal becomes narrower.

    A narrower terminal wraps the lines on the screen, so they take more lines than were drawn.
    """

    def __init__(self, drawn: LiveLaunches, console: Console) -> None:
        self._drawn = drawn
        super().__init__(drawn, console=console, refresh_per_second=2, transient=True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clear these additional lines before drawing."""
        width = max(1, self.console.width)
        more = sum(max(0, math.ceil(line_width / width) - 1) for line_width in self._drawn.widths)
        up = [Control((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))] * more
        return [*up, *super().process_renderables(renderables)]


def shorten(text: str, width: int) -> str:
    """Shorten a text to `width` columns by leaving out its middle."""
    text = escape(text)
    if cell_len(text) <= width:
        return text
    end = max(0, width - 1) // 2
    return set_cell_size(text, max(0, width - 1 - end)) + "…" + set_cell_size(text[::-1], end)[::-1]
