"""Shows on stderr how environments are prepared and launches go on: live on a terminal, plain lines elsewhere."""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from harness.analysis.rounds import by_clock
from harness.analysis.verdicts import FEWEST_ROUNDS
from harness.cli.messages import say
from harness.model import backend
from harness.model.backend import Stage, Step
from harness.model.launch import Clock, Launch, Protocol, Role, Sampling, Status
from harness.model.run import Plan
from harness.model.scenario import Cell
from harness.model.texts import counted, escaped
from harness.report import format
from harness.runner.schedule import RunEstimate
from harness.runner.walk import WalkListener, pilot_sampling

#: A budget that is suggested is so many times what was estimated.
HEADROOM = 1.1


@contextmanager
def preparing() -> Iterator[backend.Progress]:
    """Gives what is called with every step. Away from a terminal, what waits has no line."""
    if sys.stderr.isatty():
        shown = LivePreparation(Console(stderr=True))
        with shown.live:
            yield shown
    else:
        yield lambda step: None if step.stage is Stage.WAITING else say(step)


@contextmanager
def launching(plan: Plan, slots: int = 1) -> Iterator[WalkListener]:
    """Gives what hears of the launches, of which so many `slots` go on at once."""
    if sys.stderr.isatty():
        shown = LiveLaunches(plan, slots=slots)
        with shown.live:
            yield shown
    else:
        yield PlainLaunches(plan, slots=slots)


class LivePreparation:
    """A line for each environment that waits or is worked on; what has ended leaves its line above.

    It is shown as long as `live` is open. `clock` gives seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: dict[str, Step] = {}
        self._begun: dict[str, float] = {}
        self._console = console
        # what it draws tells the time, so it is drawn anew also when nothing happens
        self.live = Live(console=console, get_renderable=self._table, refresh_per_second=4, transient=True)

    def __call__(self, step: Step) -> None:
        """A step was taken."""
        if step.stage is Stage.WORKING:
            self._begun.setdefault(step.environment, self._clock())
        if step.stage not in (Stage.READY, Stage.FAILED):
            self._steps[step.environment] = step
            return
        self._steps.pop(step.environment, None)
        self._begun.pop(step.environment, None)
        self.live.refresh()
        self._console.print(Text(escaped(str(step))))

    def _table(self) -> Table:
        """What is worked on, then what waits, as far as the terminal has lines."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column()  # the one that gives way on a narrow terminal
        # the work of other threads goes on while this one draws
        steps = list(self._steps.values())
        working = [step for step in steps if step.stage is Stage.WORKING]
        waiting = [step for step in steps if step.stage is Stage.WAITING]
        for step in working:
            seconds = self._clock() - self._begun.get(step.environment, self._clock())
            words = Text(escaped(step.words), no_wrap=True, overflow="ellipsis")
            table.add_row(Text(step.environment), f"{seconds:.0f} s", words)
        room = max(0, self._console.height - len(working) - 2)
        for step in waiting[:room]:
            table.add_row(Text(step.environment), "", Text(step.words, style="dim"))
        if len(waiting) > room:
            table.add_row("", "", f"and {len(waiting) - room} more wait")
        return table


def describe(launch: Launch, clock: Clock = Clock.WALL) -> str:
    """What came of a launch, in a few words."""
    (launch,) = by_clock(clock, [launch])
    if launch.status is not Status.OK:
        told = f"{launch.status.value}: {launch.error}" if launch.error else launch.status.value
        return (
            f"{told}; TensorFlow's profiler ran, so it is made again without" if launch.ended_under_profiler else told
        )
    if launch.samples:
        unit = "CPU ms" if clock is Clock.CPU else "ms"
        shown = launch.centre * 1e3
        return f"{shown:{'.3g' if shown < 999.5 else ',.0f'}} {unit} a step"
    return counted(len(launch.observations), "observation") if launch.only_observed else "ok"


def describe_estimate(estimate: RunEstimate, plan: Plan) -> str:
    """Return what a run says of how long it takes, in one or two sentences."""
    told = f"A round takes about {format.duration(estimate.round_seconds)} on this machine"
    rounds, seconds = counted(estimate.rounds, "round"), format.duration(estimate.seconds)
    if estimate.needed is None or plan.budget_seconds is None:
        return f"{told}." if plan.ends_early else f"{told}: {rounds} in about {seconds}."
    fewest, budget = min(plan.rounds, FEWEST_ROUNDS), format.duration(plan.budget_seconds)
    some = f" {counted(len(estimate.left_out), 'cell')} of {len(plan.cells)} are left out." if estimate.left_out else ""
    enough = f"{math.ceil(estimate.needed * HEADROOM / 30.0) / 2.0:g}m"
    return (
        f"{told}. The budget of {budget} does not hold the {counted(fewest, 'round')} that all verdicts need: "
        f"they take about {format.duration(estimate.needed)} (--budget {enough}).{some}"
    )


class Count(WalkListener):
    """How many launches are done, and how long the rest will take in so many slots. `clock` gives seconds."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic, slots: int = 1) -> None:
        self._plan = plan
        self.total = plan.all_launches
        self.done = 0
        self._pilots = plan.launches(0)
        self._longer = _longer(plan.sampling, pilot_sampling(plan))
        self._budget, self._slots = plan.budget_seconds, slots
        self._spent = 0.0
        self._at_most = "at most " if plan.ends_early or plan.budget_seconds else ""
        self._clock = clock
        self._measured = plan.clock
        self._begun = 0.0
        self._open = 0
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._errors: dict[str, str] = {}

    def begin(self, cell: Cell, number: int) -> None:
        """A launch begins; there may be others that take turns with it."""
        self._begun = self._begun if self._open else self._clock()
        self._open += 1

    def end(self, launch: Launch) -> None:
        """It has ended."""
        self.done += not launch.ended_under_profiler
        self._open -= 1
        self._begun = self._clock()
        self._spent += launch.seconds
        self._seconds[launch.round == 0].append(launch.seconds)

    def described(self, launch: Launch) -> str:
        """What came of a launch; an error that another cell had before is not told again."""
        first = self._errors.setdefault(launch.error, str(launch.cell)) if launch.error else ""
        again = first not in ("", str(launch.cell))
        return f"{launch.status.value} as {first} did" if again else describe(launch, self._measured)

    def skip(self, launches: int) -> None:
        """Some will not be done."""
        self.done += launches

    def turn(self, number: int, turns: int) -> None:
        """Launches take a turn."""

    def again(self, number: int, launches: int) -> None:
        """Some more will be done."""
        self.total += launches
        self.tell(f"Round {number} is repeated, as other processes disturbed it: {launches} more launches.")

    def estimate(self, estimate: RunEstimate) -> None:
        """Print how long the run takes."""
        if self._plan.budget_is_wish:  # a slow machine exceeds it, until every comparison can have a verdict
            self._budget = max(self._budget or 0.0, estimate.seconds)
        self.tell(describe_estimate(estimate, self._plan))

    def tell(self, line: str) -> None:
        """Print a line."""
        say(line)

    def left(self) -> str:
        """The time left by now, from the launches so far; empty before the first has ended."""
        pilots, others = self._seconds[True], self._seconds[False]
        if not pilots and not others:
            return ""
        each = statistics.fmean(others) if others else statistics.fmean(pilots) + self._longer
        pilot = statistics.fmean(pilots or others)
        to_pilot = max(0, self._pilots - self.done)
        rest = (self.total - self.done - to_pilot) * each + to_pilot * pilot
        running = self._clock() - self._begun if self._open else 0.0
        # one that takes longer than usual has no time left, and takes none from those after it
        rest -= min(running, self._open * (pilot if to_pilot else each))
        rest /= self._slots
        if self._budget is not None:
            rest = min(rest, max(0.0, self._budget - self._spent / self._slots - running))
        minutes, seconds = divmod(round(max(0.0, rest)), 60)
        return self._at_most + (f"{minutes} min {seconds:02d} s left" if minutes else f"{seconds} s left")


def _longer(planned: Sampling, pilot: Sampling) -> float:
    """By how many seconds a launch is longer than a pilot, as far as the plan tells."""
    pairs = [(planned.warmup_seconds, pilot.warmup_seconds), (planned.measure_seconds, pilot.measure_seconds)]
    if planned.protocol is Protocol.DOCUMENT:
        return 0.0
    return sum(seconds - before for seconds, before in pairs if seconds is not None and before is not None)


class PlainLaunches(Count):
    """One line a launch."""

    def end(self, launch: Launch) -> None:
        """A launch was stored."""
        super().end(launch)
        name = f"round {launch.round}" if launch.round else launch.role.value
        told = f"{name}: {launch.cell}: {self.described(launch)}"
        say(escaped(f"[{self.done}/{self.total}] {told} ({self.left()})"))


class LiveLaunches(Count):
    """What runs now, how many are done, time left; a launch without a number leaves a line above.

    It is shown as long as `live` is open.
    """

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic, slots: int = 1) -> None:
        super().__init__(plan, clock, slots)
        left = self.left

        class Left(ProgressColumn):
            """The time left, which goes on while a launch runs."""

            def render(self, task: object) -> Text:
                return Text(left())

        self._rounds = plan.rounds
        self._name = ""
        self._first = Role.PROFILE if plan.profile_calls else Role.PILOT
        self.live = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            Left(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            # drawing takes CPU from what is measured: no more often than a reader needs
            refresh_per_second=2,
            transient=True,
        )
        self._task = self.live.add_task("", total=self.total)

    def begin(self, cell: Cell, number: int) -> None:
        """A launch begins."""
        super().begin(cell, number)
        self._name = f"round {number} of {self._rounds}" if number else self._first.value
        self.live.update(self._task, description=escaped(f"{self._name}: {cell}"))

    def turn(self, number: int, turns: int) -> None:
        """Launches take a turn."""
        self.live.update(self._task, description=f"{self._name}: turn {number} of {turns}")

    def end(self, launch: Launch) -> None:
        """A launch was stored."""
        super().end(launch)
        self.live.update(self._task, completed=self.done)
        if launch.status is not Status.OK:
            self.tell(f"{launch.cell}: {self.described(launch)}")

    def skip(self, launches: int) -> None:
        """Some launches will not be done."""
        super().skip(launches)
        self.live.update(self._task, completed=self.done)

    def again(self, number: int, launches: int) -> None:
        """A round is repeated."""
        super().again(number, launches)
        self.live.update(self._task, total=self.total)

    def tell(self, line: str) -> None:
        """Print a line above."""
        self.live.console.print(Text(escaped(line)))
