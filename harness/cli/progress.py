"""Shows a walk on stderr: a live display on a terminal, plain lines elsewhere."""

import statistics
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from harness.model.launch import Launch, Protocol, Role, Sampling, Status
from harness.model.run import Plan
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.runner.walk import pilot_sampling


def describe(launch: Launch) -> str:
    """What came of a launch, in a few words."""
    if launch.status is Status.OK:
        observed = len(launch.observations)
        told = counted(observed, "observation") if launch.only_observed else "ok"
        return f"{launch.centre * 1e3:.3g} ms a step" if launch.samples else told
    return f"{launch.status.value}: {launch.error}" if launch.error else launch.status.value


class Count:
    """How many launches are done, and how long the rest will take. `clock` gives seconds."""

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        self.total = plan.all_launches
        self.done = 0
        self._pilots = plan.launches(0)
        self._longer = _longer(plan.sampling, pilot_sampling(plan))
        self._budget = plan.budget_seconds
        self._spent = 0.0
        self._at_most = "at most " if plan.precision or plan.budget_seconds else ""
        self._clock = clock
        self._begun: float | None = None
        self._seconds: dict[bool, list[float]] = {True: [], False: []}

    def begin(self) -> None:
        """A launch begins."""
        self._begun = self._clock()

    def end(self, launch: Launch) -> None:
        """It has ended."""
        self.done += 1
        taken = self._clock() - (self._begun or 0.0)
        self._begun = None
        self._spent += taken
        self._seconds[launch.round == 0].append(taken)

    def skip(self, launches: int) -> None:
        """Some will not be done."""
        self.done += launches

    def again(self, launches: int) -> None:
        """Some more will be done."""
        self.total += launches

    def left(self) -> str:
        """The time left by now, from the launches so far; empty before the first has ended."""
        pilots, others = self._seconds[True], self._seconds[False]
        if not pilots and not others:
            return ""
        each = statistics.fmean(others) if others else statistics.fmean(pilots) + self._longer
        pilot = statistics.fmean(pilots or others)
        to_pilot = max(0, self._pilots - self.done)
        rest = (self.total - self.done - to_pilot) * each + to_pilot * pilot
        running = 0.0 if self._begun is None else self._clock() - self._begun
        # one that takes longer than usual has no time left, and takes none from those after it
        rest -= min(running, pilot if to_pilot else each)
        if self._budget is not None:
            rest = min(rest, max(0.0, self._budget - self._spent - running))
        minutes, seconds = divmod(round(max(0.0, rest)), 60)
        return self._at_most + (f"{minutes} min {seconds:02d} s left" if minutes else f"{seconds} s left")


def _longer(planned: Sampling, pilot: Sampling) -> float:
    """By how many seconds a launch is longer than a pilot, as far as the plan tells."""
    pairs = [(planned.warmup_seconds, pilot.warmup_seconds), (planned.measure_seconds, pilot.measure_seconds)]
    if planned.protocol is Protocol.DOCUMENT:
        return 0.0
    return sum(seconds - before for seconds, before in pairs if seconds is not None and before is not None)


def _repeated(number: int, launches: int) -> str:
    """Why the total grows."""
    return f"Round {number} is repeated, as other processes disturbed it: {launches} more launches."


class PlainProgress:
    """One line a launch."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = Count(plan, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, cell: Cell, number: int) -> None:
        """A launch begins."""
        self._count.begin()

    def end(self, launch: Launch) -> None:
        """A launch was stored."""
        self._count.end(launch)
        name = f"round {launch.round}" if launch.round else launch.role.value
        count = f"[{self._count.done}/{self._count.total}]"
        print(f"{count} {name}: {launch.cell}: {describe(launch)} ({self._count.left()})", file=sys.stderr, flush=True)

    def skip(self, launches: int) -> None:
        """Some launches will not be done."""
        self._count.skip(launches)

    def again(self, number: int, launches: int) -> None:
        """A round is repeated."""
        self._count.again(launches)
        print(_repeated(number, launches), file=sys.stderr, flush=True)


class LiveProgress:
    """What runs now, how many are done, time left; a launch without a number leaves a line above."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
        from rich.text import Text

        count = self._count = Count(plan, clock)

        class Left(ProgressColumn):
            """The time left, which goes on while a launch runs."""

            def render(self, task: object) -> Text:
                return Text(count.left())

        self._rounds = plan.rounds
        self._first = Role.PROFILE if plan.profile_calls else Role.PILOT
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            Left(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            # drawing takes CPU from what is measured: no more often than a reader needs
            refresh_per_second=2,
            transient=True,
        )
        self._task = self._progress.add_task("", total=count.total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, cell: Cell, number: int) -> None:
        """A launch begins."""
        from rich.markup import escape

        self._count.begin()
        name = f"round {number} of {self._rounds}" if number else self._first.value
        self._progress.update(self._task, description=escape(f"{name}: {cell}"))

    def end(self, launch: Launch) -> None:
        """A launch was stored."""
        from rich.text import Text

        self._count.end(launch)
        self._progress.update(self._task, completed=self._count.done)
        if launch.status is not Status.OK:
            self._progress.console.print(Text(f"{launch.cell}: {describe(launch)}"))

    def skip(self, launches: int) -> None:
        """Some launches will not be done."""
        self._count.skip(launches)
        self._progress.update(self._task, completed=self._count.done)

    def again(self, number: int, launches: int) -> None:
        """A round is repeated."""
        self._count.again(launches)
        self._progress.update(self._task, total=self._count.total)
        self._progress.console.print(_repeated(number, launches), highlight=False)


def show(plan: Plan) -> LiveProgress | PlainProgress:
    """The display that fits where stderr goes."""
    return LiveProgress(plan) if sys.stderr.isatty() else PlainProgress(plan)
