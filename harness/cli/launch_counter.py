"""Counts the launches of a run, estimates the time left, and describes launches in a few words."""

import math
import statistics
import time
from collections.abc import Callable

from harness.analysis.rounds import apply_clock
from harness.cli.messages import say
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Clock, Launch, Protocol, Sampling, Status
from harness.model.run import Plan, Run
from harness.model.scenario import Cell
from harness.model.texts import counted, escape, format_plain
from harness.report import format, names
from harness.runner.executor import WalkListener
from harness.runner.schedule import RunEstimate

#: The suggested budget, as a multiple of the estimated time.
HEADROOM = 1.1


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
