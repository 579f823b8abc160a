"""Walks a plan through a backend, round by round, and stores each launch as it ends."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from harness.analysis import sizing
from harness.model.backend import Backend
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import FEWEST_TURNS, SHORT, Job, Launch, Role, Sampling
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.plan.groups import balanced, order, split
from harness.runner.budget import RoundRequest, Spending
from harness.runner.launching import Launching, LaunchSlot, LaunchStore, Watch, share_seconds
from harness.runner.rounds import RoundLog
from harness.runner.schedule import Pairs, RunEstimate, Schedule, affordable, needed_budget
from harness.runner.stop_rules import Widths

#: Turns end early where the slowest launch's have taken so many seconds, or so many times as long as it was to measure,
#: Turns end early, after three at least, if the slowest launch's have taken so many times as long as its samples were
#: to take: launches of slow calls make three turns.
TURNS_PATIENCE = 2.0

#: Alone, after its turns, a launch takes this share of as many samples: in so many stretches, so that what the machine
#: does meanwhile meets all cells; in one where the turns were few, as those of slow steps are.
ALONE_SHARE, STRETCHES, FEW_TURNS = 0.3, 3, 9

#: Assumed memory of a launch, in bytes, if no pilot has measured it.
USUAL_MEMORY = 2.0**30


class WalkListener(Protocol):
    """Listener for the progress of a run."""

    def begin(self, cell: Cell, number: int) -> None:
        """A launch of round `number` starts."""

    def end(self, launch: Launch) -> None:
        """A launch was stored."""

    def skip(self, launches: int) -> None:
        """Launches won't run: they are stored already, aren't needed, or their cells failed for good."""

    def turn(self, number: int, turns: int) -> None:
        """The waiting launches take turn `number` of `of`."""

    def again(self, number: int, launches: int) -> None:
        """Round `number` of a group had interference from other processes and is repeated, with more launches."""

    def estimate(self, estimate: RunEstimate) -> None:
        """Receive an estimate of the duration, after the pilots and after each round."""


@dataclass(frozen=True, slots=True)
class RunExecutor:
    """Executes a plan; `run` measures it, and `profile` profiles its cells.

    `requirements` are by environment. `widths` returns the widths of each group's intervals, if groups end by width,
    and `looks` the first round at which to look, by group. `watch`, if given, monitors each launch from outside.
    Interleaved launches use at most `memory` bytes together, as far as their pilots show. `pairs` are compared: if a
    budget doesn't hold all of them, the first ones are measured. As many launches start at the same time as `starts`
    has CPUs (see `machine.cpus.starting`), one on each. `clock` returns seconds.
    """

    plan: Plan
    folder: LaunchStore
    backend: Backend
    requirements: Mapping[str, Requirement]
    job: Callable[[Cell, Sampling], Job]
    listener: WalkListener
    widths: Widths
    watch: Watch | None = None
    memory: float = math.inf
    looks: Mapping[str, int] = field(default_factory=dict)
    pairs: Pairs = field(default_factory=dict)
    starts: Sequence[int] = ()
    clock: Callable[[], float] = time.monotonic

    def run(self, finished: list[Launch]) -> list[Launch]:
        """Launch what `finished` doesn't have yet, and return all launches, old and new.

        runner/schedule.py decides what comes next. The budget of claims is spent on one group after the other. A round
        that was interrupted is repeated as a whole, because its cells are compared with each other.
        """
        if self.plan.is_spent_by_group:
            return self._by_group(finished)
        begun, before = self.clock(), sum(launch.seconds for launch in finished)

        def spent() -> float:
            return before + self.clock() - begun

        ledger = RoundLog(self.plan, finished)
        for group in self.plan.groups:
            if ledger.is_complete(group, 0):
                self.listener.skip(len(self.plan.slots(group, 0)))
            else:
                self._round(group, 0, ledger, self.plan.sampling.of_pilots)
        plan = affordable(self.plan, ledger.launches, self.pairs)
        ledger = RoundLog(plan, ledger.launches)
        schedule = Schedule(plan, ledger, self.widths, spent)
        self.listener.skip(self.plan.rounds * (self.plan.launches(1) - plan.launches(1)))
        self._skip(plan, lambda group, number: number <= ledger.rounds(group))
        self._estimate(plan, ledger, schedule)
        walk = replace(self, plan=plan)
        while step := schedule.next():
            samplings = walk._samplings(step.number, ledger)
            # in an order drawn from the seed: an effect across groups would otherwise meet what drifts within a round
            for group in order(plan.seed, "", step.number, plan.groups):
                if group in step.groups:
                    walk._measure(group, step.number, ledger, samplings[group.name], spent)
            self._estimate(plan, ledger, schedule)
        self._skip(plan, lambda group, number: number > ledger.rounds(group))
        return ledger.launches

    def _skip(self, plan: Plan, is_skipped: Callable[[Group, int], bool]) -> None:
        """Notify the listener of launches whose rounds are complete, or won't be made."""
        numbers = range(1, self.plan.rounds + 1)
        self.listener.skip(
            sum(
                len(plan.slots(group, number))
                for group in plan.groups
                for number in numbers
                if is_skipped(group, number)
            )
        )

    def _estimate(self, plan: Plan, ledger: RoundLog, schedule: Schedule) -> None:
        """Notify the listener of the estimated duration, if there is one."""
        estimate = schedule.estimate()
        kept = {*plan.cells}
        left_out = [cell for cell in self.plan.cells if cell not in kept]
        if left_out:
            needed = needed_budget(self.plan, RoundLog(self.plan, ledger.launches))
            estimate = replace(estimate, needed=needed, left_out=left_out)
        if estimate.round_seconds:
            self.listener.estimate(estimate)

    def _measure(
        self, group: Group, number: int, ledger: RoundLog, sampling: Sampling, spent: Callable[[], float]
    ) -> None:
        """Measure a round of a group, and repeat it once if it had interference."""
        self._round(group, number, ledger, sampling)
        if ledger.is_to_repeat(group, number) and self._can_repeat(group, number, ledger, spent()):
            self.listener.again(number, len(group.slots))
            self._round(group, number, ledger, sampling)

    def _by_group(self, finished: list[Launch]) -> list[Launch]:
        """Use the budget as runner/budget.py decides, and notify the listener of the launches that weren't needed."""
        launches = list(finished)
        spending = Spending(self.plan, self.widths, self.looks, finished)
        self.listener.skip(spending.rounds_done())
        while errand := spending.next():
            ledger = spending.ledgers[errand.group.name]
            before = len(ledger.launches)
            self._run_errand(errand, ledger)
            launches += ledger.launches[before:]
        self.listener.skip(spending.rounds_left())
        return launches

    def _run_errand(self, errand: RoundRequest, ledger: RoundLog) -> None:
        """Take a group to a round, as far as its seconds go; its first round is always launched."""
        group = errand.group
        plan = replace(self.plan, groups=[group], rounds=errand.rounds, budget_seconds=errand.seconds)
        walk = replace(self, plan=plan)
        for number in range(errand.rounds + 1):
            if ledger.is_complete(group, number):
                continue
            if number > 1 and ledger.seconds() + ledger.seconds(number - 1, [group]) > errand.seconds:
                break
            sampling = walk._samplings(number, ledger)[group.name]
            walk._measure(group, number, ledger, sampling, ledger.seconds)

    def _can_repeat(self, group: Group, number: int, ledger: RoundLog, spent: float) -> bool:
        """Return whether the budget allows to repeat the round without losing a later round of all groups."""
        if self.plan.budget_seconds is None:
            return True
        whole = max(ledger.seconds(round_number, self.plan.groups) for round_number in (number - 1, number))
        later = (self.plan.rounds - number) * whole
        return spent + ledger.seconds(number, [group]) + later <= self.plan.budget_seconds

    def profile(self) -> list[Launch]:
        """Launch every cell once under the profiler, in launches that enter no statistic; returns these.

        Cells are launched in an order drawn from the seed, as in a round: a machine that gets slower meanwhile changes
        seconds, and hardly shares.
        """
        return [
            launch
            for group in self.plan.groups
            for place, cell in enumerate(order(self.plan.seed, group.name, 0, group.cells))
            for launch in self._together(
                [self._launching(LaunchSlot(group.name, 0, 0, place, Role.PROFILE), cell, SHORT)]
            )
        ]

    def _round(self, group: Group, number: int, ledger: RoundLog, sampling: Sampling) -> None:
        slots = ledger.slots(group, number)
        self.listener.skip(len(self.plan.slots(group, number)) - len(slots))
        attempt = ledger.attempts(group, number)
        place = 0
        for at, block in enumerate(self._blocks(group, number, ledger, slots)):
            # whether a pilot is needed may depend on those before it
            needed = [(cell, role) for cell, role in block if number or ledger.is_to_pilot(group, cell)]
            self.listener.skip(len(block) - len(needed))
            begun: list[Launching] = []
            starts = self._starts(group, len(needed))
            for cell, role in needed:
                sized = _sized(sampling, number, ledger, cell, alone=len(block) == 1)
                # launches that run one after the other form one block each; the control is next to its twin
                slot = LaunchSlot(group.name, number, attempt, place, role, at if number and len(block) > 1 else 0)
                first = ledger.is_first(cell)
                begun.append(self._launching(slot, cell, sized, thorough=first, starts=starts, place=len(begun)))
                place += 1
            turns = balanced(self.plan.seed, f"{group.name}/{at}", number, len(begun), sampling.turns or 0)
            longest = TURNS_PATIENCE * (sampling.turns or 0) * sampling.sample_seconds
            launches = self._together(begun, turns if len(begun) > 1 else (), longest, at_once=max(1, len(starts)))
            for launch in launches:
                ledger.add(launch)
            for launch in [candidate for candidate in launches if candidate.ended_under_profiler]:
                # no longer the cell's first: so this one goes without the profiler
                slot = LaunchSlot(group.name, number, attempt, place, launch.role, at)
                sized = _sized(sampling, number, ledger, launch.cell, alone=True)
                ledger.add(*self._together([self._launching(slot, launch.cell, sized)]))
                place += 1

    def _blocks(
        self, group: Group, number: int, ledger: RoundLog, slots: Sequence[tuple[Cell, Role]]
    ) -> list[list[tuple[Cell, Role]]]:
        """Return the launches of a round in starting order. Launches that run at the same time are in one list.

        If the launches of a group need more memory than is available, each block has the group's control cell, so that
        its ratios don't depend on the block.
        """
        ordered = order(self.plan.seed, group.name, number, slots)
        if not number:
            return self._pilots(group, ordered, ledger)
        if not ledger.in_turns(group):
            return [[slot] for slot in ordered]
        peaks = [launch.resources.get("max_rss_bytes", 0.0) for launch in ledger.launches]
        usual = max(peaks, default=0.0) or USUAL_MEMORY
        held = {cell: ledger.peak(cell) or usual for cell, _ in slots}
        shared = [slot for slot in ordered if slot[0] == group.control]
        unshared = [slot for slot in ordered if slot[0] != group.control]
        room = self.memory - sum(held[cell] for cell, _ in shared)
        parts = split(unshared, [held[cell] for cell, _ in unshared], room)
        again = [(cell, Role.CONTROL) for cell, _ in shared[:1]]
        blocks = [[*(again if at else shared), *part] for at, part in enumerate(parts)]
        return [order(self.plan.seed, f"{group.name}/{at}", number, block) for at, block in enumerate(blocks)]

    def _pilots(
        self, group: Group, ordered: Sequence[tuple[Cell, Role]], ledger: RoundLog
    ) -> list[list[tuple[Cell, Role]]]:
        """Return the pilots in this order; pilots that start together are in one list, one of each environment.

        These are needed in any case. How much memory they use isn't known yet, so as many start as there are CPUs for,
        and as there is memory for if they use the usual amount.
        """
        first: dict[str, tuple[Cell, Role]] = {}
        later: list[list[tuple[Cell, Role]]] = []
        for cell, role in ordered:
            if cell.environment not in first and ledger.is_to_pilot(group, cell):
                first[cell.environment] = cell, role
            else:
                later.append([(cell, role)])
        beside = list(first.values())
        most = max(1, int(min(len(self._starts(group, len(beside))), self.memory / USUAL_MEMORY)))
        return [*(beside[at : at + most] for at in range(0, len(beside), most)), *later]

    def _starts(self, group: Group, launches: int) -> Sequence[int]:
        """Return the CPUs on which launches of the group start at the same time; none if they start one by one.

        A launch whose phases or peak memory are compared starts alone.
        """
        starts = () if group.of else self.starts[:launches]
        return starts if len(starts) > 1 else ()

    def _launching(
        self,
        slot: LaunchSlot,
        cell: Cell,
        sampling: Sampling,
        *,
        thorough: bool = False,
        starts: Sequence[int] = (),
        place: int = 0,
    ) -> Launching:
        """Return a launch to start; `thorough` adds checks that are needed once per cell.

        It is the one at this `place` of those that start on the CPUs `starts`; without any, it starts where it is
        measured.
        """
        job = replace(self.job(cell, sampling), thorough=thorough, profile_calls=self.plan.profile_calls)
        measured = job.limits.cpus or ()
        if starts:
            # as in `_start`: the first starts on the measured CPU, and each other one on the CPU that it is moved away
            # from
            own = starts[1 + (place - 1) % (len(starts) - 1)] if place else starts[0]
            job = replace(job, limits=replace(job.limits, cpus=(own,)), waits=True)
        hold = partial(self.backend.hold, self.requirements[cell.environment], job)
        companions = max(0, len(starts) - 1)
        return Launching(slot, cell, hold, self.watch, self.clock, others=companions, cpus=measured)

    def _together(
        self,
        launchings: Sequence[Launching],
        turns: Sequence[Sequence[int]] = (),
        longest: float = 0.0,
        at_once: int = 1,
    ) -> list[Launch]:
        """Start launches, interleave them, and end them; each is stored when it ends.

        `at_once` launches start at the same time, and then warm up one after the other. A turn has the indexes of
        launches in order. Turns end when the slowest launch has taken `longest` seconds. If a launch fails, the others
        continue.
        """
        with ExitStack() as stack:
            left: list[Launching] = []
            ended: list[Launch] = []

            def end(launching: Launching) -> None:
                ended.append(launching.stored(self.folder))
                left.remove(launching)
                self.listener.end(ended[-1])

            def begin(launching: Launching) -> None:
                self.listener.begin(launching.cell, launching.slot.round)
                left.append(stack.enter_context(launching))

            try:
                _start(launchings, at_once, begin, end)
                taken = self._turns(launchings, turns, longest, end)
                stretches = STRETCHES if taken > FEW_TURNS else 1
                for turn in turns[:stretches]:
                    for member in [launchings[at] for at in turn if launchings[at].waits]:
                        member.alone(max(1, int(ALONE_SHARE * taken / stretches)))
                        if not member.waits:
                            end(member)
                for member in list(left):
                    member.end()
                    end(member)
            except (KeyboardInterrupt, CannotRunHereError):
                for member in left:
                    member.interrupted(self.folder)
                raise
            return ended

    def _turns(
        self,
        launchings: Sequence[Launching],
        turns: Sequence[Sequence[int]],
        longest: float,
        end: Callable[[Launching], None],
    ) -> int:
        """Interleave launches, and return the number of turns."""
        for number, turn in enumerate(turns):
            waiting = [launchings[at] for at in turn if launchings[at].waits]
            slowest = max((member.turn_seconds for member in waiting), default=math.inf)
            if not waiting or (number >= FEWEST_TURNS and slowest >= longest):
                return number
            self.listener.turn(number + 1, len(turns))
            for place, launching in enumerate(waiting):
                launching.turn(place)
                if not launching.waits:
                    end(launching)
        return len(turns)

    def _samplings(self, number: int, ledger: RoundLog) -> dict[str, Sampling]:
        """Return the sampling by group.

        In round 0, it is the sampling of pilots. Later, it is the plan's sampling, completed by the pilots.
        """
        names = [group.name for group in self.plan.groups]
        if number == 0:
            return dict.fromkeys(names, self.plan.sampling.of_pilots)
        return sizing.samplings(self.plan.sampling, names, ledger.launches)


def _start(
    launchings: Sequence[Launching],
    at_once: int,
    begin: Callable[[Launching], None],
    end: Callable[[Launching], None],
) -> None:
    """Start launches, up to `at_once` at the same time, until each has warmed up and waits, or has ended.

    The backend starts them, and this thread follows one after the other, so that interruptions stay in one thread. The
    launch that is followed is on the measured CPU, wherever it started: so the other CPUs can only help, however busy
    they are. Warm-ups follow after all have started, one at a time, because they affect what is measured.
    """
    for place, launching in enumerate(launchings):
        if place and at_once > 1:
            launching.move()
        # the launches before this one have started, and so have those that start together with it
        for later in launchings[place + at_once - 1 if place else 0 : place + at_once]:
            begin(later)
            if at_once > 1:
                later.start()
        launching.follow()
        if not launching.waits:
            end(launching)
    if at_once > 1:
        waiting = [member for member in launchings if member.waits]
        share_seconds(waiting)
        for launching in waiting:
            launching.warm_up()
            if not launching.waits:
                end(launching)


def _sized(sampling: Sampling, number: int, ledger: RoundLog, cell: Cell, *, alone: bool) -> Sampling:
    """Return how a launch of the cell samples in round `number`; alone, it takes all samples without a break."""
    sized = replace(sampling, calls_per_sample=ledger.calls_per_sample(cell)) if number else sampling
    return replace(sized, turns=None) if alone else sized
