"""Counts the launches of a run, estimates the time left, and describes launches in a few words."""

import math
import statistics

from harness.analysis.rounds import apply_clock
from harness.cli.messages import say
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Clock, Launch, Status
from harness.model.run import Plan, Run
from harness.model.scenario import Cell
from harness.model.texts import counted, escape, format_plain, joined
from harness.report import format, names
from harness.runner.executor import WalkListener
from harness.runner.schedule import TOLERANCE, RunEstimate

#: The suggested budget, as a multiple of the estimated time.
HEADROOM = 1.1


def describe(launch: Launch, clock: Clock = Clock.WALL) -> str:
    """Describe the result of a launch in a few words."""
    (launch,) = apply_clock(clock, [launch])
    if launch.status is not Status.OK:
        words = f"{launch.status.value}: {launch.error}" if launch.error else launch.status.value
        if launch.ended_under_profiler:
            words += "; the launch ran with TensorFlow's profiler, so it is repeated without the profiler"
        return words
    if launch.samples:
        unit = format.unit([launch.mean], clock)
        return f"{format.number(launch.mean * unit.factor)} {unit.symbol} per step"
    return counted(len(launch.observations), "observation") if launch.only_observed else "ok"


def describe_estimate(estimate: RunEstimate, plan: Plan) -> str:
    """Describe the estimated duration of a run in one to three sentences."""
    sentence = f"A round takes about {format.duration(estimate.round_seconds)} on this machine"
    rounds, seconds = counted(estimate.rounds, "round"), format.duration(estimate.seconds)
    if estimate.needed is None or plan.budget_seconds is None:
        if not plan.ends_early or estimate.rounds >= plan.rounds:
            return f"{sentence}: {rounds} in about {seconds}."
        end = "all claims are clear" if plan.claims else "verdicts are clear or intervals are narrow enough"
        limit = ""
        if plan.budget_seconds is not None:
            limit = f", or until the budget of {format.duration(plan.budget_seconds)} ends"
        return f"{sentence}: at least {rounds} in about {seconds}. The run continues until {end}{limit}."
    fewest_rounds, budget = min(plan.rounds, FEWEST_ROUNDS), format.duration(plan.budget_seconds)
    count = len(estimate.left_out)
    note = f" {count} of {len(plan.cells)} cells {'is' if count == 1 else 'are'} not measured." if count else ""
    if estimate.seconds > plan.budget_seconds * (1.0 + TOLERANCE):
        note = f" One round takes longer than the rest of the budget, so the run takes about {seconds}.{note}"
    budget_option = f"{format_plain(math.ceil(estimate.needed * HEADROOM / 30.0) / 2.0)}m"
    return (
        f"{sentence}. The budget of {budget} is too small for the {counted(fewest_rounds, 'round')} that all verdicts "
        f"need. These rounds take about {format.duration(estimate.needed)} (--budget {budget_option}).{note}"
    )


class LaunchCounter(WalkListener):
    """Counts finished and expected launches, and estimates the time left.

    If the plan can end early or has a budget, the number of launches is only known after the pilots.
    """

    def __init__(self, run: Run) -> None:
        self._plan = plan = run.plan
        by_cell = names.distinguish_cells(plan.cells, run.scenarios)
        self._names = {cell: " ".join(words) for cell, words in by_cell.items()}
        self.done = 0
        #: The expected number of launches, including finished ones; None if it isn't known yet.
        self.total = None if plan.ends_early or plan.budget_seconds else plan.all_launches
        self._round = 0
        self._is_estimated = False
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._errors: dict[str, str] = {}
        # the times of the first launches of a plain script, by environment, for preliminary results
        is_script = len(run.scenarios) == 1 and run.scenarios[0].script and not run.scenarios[0].axes
        self._reference, self._times = run.reference if is_script else "", dict[str, float]()

    def end(self, launch: Launch) -> None:
        """Count a finished launch."""
        self.done += not launch.ended_under_profiler
        self._round = max(self._round, launch.round)
        self._seconds[launch.round == 0].append(launch.seconds)
        if self._reference and launch.round <= 1 and launch.samples and launch.cell.environment not in self._times:
            self._tell_preliminary(launch)

    def _tell_preliminary(self, launch: Launch) -> None:
        """Print how the first launch of an environment compares with the first launch of the baseline."""
        (judged,), base = apply_clock(self._plan.clock, [launch]), self._reference
        is_known, self._times[launch.cell.environment] = base in self._times, judged.mean
        others = [name for name in self._times if name != base and (not is_known or name == launch.cell.environment)]
        if base in self._times and others:
            ratios = [f"{format.factor(self._times[name] / self._times[base])} in {name}" for name in others]
            self.tell(f"Preliminary, from one launch each: the time is {joined(ratios)}, relative to {base}.")

    def name(self, cell: Cell) -> str:
        """Return the values that distinguish a cell from the other cells of the run."""
        return self._names.get(cell) or str(cell)

    def describe(self, launch: Launch) -> str:
        """Describe the result of a launch. If an earlier cell had the same error, name that cell instead."""
        name = self.name(launch.cell)
        first_name = self._errors.setdefault(launch.error, name) if launch.error else ""
        if first_name in ("", name):
            return describe(launch, self._plan.clock)
        return f"{launch.status.value}: same error as {first_name}"

    def skip(self, launches: int) -> None:
        """Count skipped launches. An estimate doesn't include them."""
        if self.total is not None and not self._is_estimated:
            self.total -= launches

    def again(self, number: int, launches: int) -> None:
        """Count the additional launches of a repeated round, and print a line."""
        if self.total is not None:
            self.total += launches
        self.tell(
            f"Round {number} had interference from other processes and is repeated: this needs "
            f"{counted(launches, 'more launch')}."
        )

    def estimate(self, estimate: RunEstimate) -> None:
        """Store the expected number of launches. After the pilots and the first round, print the estimated duration."""
        if not self._is_estimated or self._round == 1:
            self.tell(describe_estimate(estimate, self._plan))
        self._is_estimated = True
        self.total = self.done + estimate.launches

    def tell(self, line: str) -> None:
        """Print a line."""
        say(line)

    def format_count(self) -> str:
        """Format the number of finished launches and, if it is known, of all launches: `3/11`."""
        return f"{self.done}" if self.total is None else f"{self.done}/{max(self.done, self.total)}"

    def format_time_left(self) -> str:
        """Format the time left, from the launches so far; empty if the number of launches isn't known."""
        seconds = self._seconds[False] or self._seconds[True]
        if self.total is None or not seconds:
            return ""
        minutes, rest = divmod(round(max(0, self.total - self.done) * statistics.fmean(seconds)), 60)
        return f"{f'{minutes} min {rest:02d} s' if minutes else f'{rest} s'} left"


class PlainLaunches(LaunchCounter):
    """Prints one line per finished launch."""

    def end(self, launch: Launch) -> None:
        """Count a finished launch, and print a line."""
        super().end(launch)
        stage = f"round {launch.round}" if launch.round else launch.role.value
        time_left = self.format_time_left()
        words = f"{stage}: {self.name(launch.cell)}: {self.describe(launch)}{f' ({time_left})' if time_left else ''}"
        say(escape(f"[{self.format_count()}] {words}"))
