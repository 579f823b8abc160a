"""Execution of a plan with a backend, round by round. Each launch is stored when it ends."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from harness.analysis import sizing
from harness.model.backend import Backend
from harness.model.environment import Requirement, name_on
from harness.model.errors import CannotRunHereError
from harness.model.launch import BESIDE_STARTS, FEWEST_TURNS, SHORT, Job, Launch, Role, Sampling
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.plan.groups import order, order_turn
from harness.runner.blocks import choose_starts, plan_blocks
from harness.runner.budget import GroupBudget, RoundRequest
from harness.runner.launching import Launching, LaunchSlot, Watch, share_seconds
from harness.runner.rounds import RoundLog
from harness.runner.schedule import Pairs, RunEstimate, Schedule, limit_to_budget, needed_budget
from harness.runner.stop_rules import Widths, is_precise
from harness.store.folder import RunFolder

#: Interleaving ends early if the turns of the slowest launch have taken this multiple of the planned measurement time.
#: But there are at least three turns.
TURNS_PATIENCE = 2.0

#: In one of LONG_ONE_IN turns, from the second on, each launch takes LONG_TURN samples in succession. The first of
#: them is interleaved. The other has the caches for itself, and checks the interleaving. A machine's noise lasts about
#: 0.2 s, so a third sample would add little: three samples in every fourth turn have 1.5 times the error.
LONG_ONE_IN, LONG_TURN = 2, 2


class WalkListener:
    """Receives the progress of a run. The methods do nothing; override the methods that you need."""

    def begin(self, cell: Cell, number: int) -> None:
        """Receive the start of a launch in round `number`; round 0 is the pilot."""

    def end(self, launch: Launch) -> None:
        """Receive a finished launch, after it was stored."""

    def skip(self, launches: int) -> None:
        """Receive the number of skipped launches, which are stored already, not needed, or would fail again."""

    def turn(self, number: int, turns: int) -> None:
        """Receive the start of turn `number` of `turns`. In a turn, the running launches measure one after another."""

    def again(self, number: int, launches: int) -> None:
        """Receive the start of the repetition of round `number`, which was noisy, and its number of launches."""

    def estimate(self, estimate: RunEstimate) -> None:
        """Receive the estimated duration: after the pilots and each round, or between the groups of a run of claims."""


@dataclass(frozen=True, slots=True)
class RunExecutor:
    """Executes a plan: `run` measures its cells, and `profile` profiles them.

    `requirements` contains the environments by their names in the run (Requirement.name). If groups end when their
    intervals are narrow enough, `widths` returns the width of each group's widest interval, and `looks` contains the
    first round after which a group's intervals are checked. `gpu_watch`, if given, monitors each launch on GPUs from
    outside. Interleaved launches together use at most `memory` bytes, according
    to their pilots. `pairs` contains the compared cells: if the budget is too small for all pairs, the first pairs are
    measured. If `starts` contains several CPUs (see `machine.cpus.choose_starting_cpus`), one launch starts on each of
    them at the same time. `clock` returns seconds. `record_end` gets each estimate of the run's
    seconds, from the first launch to the end. `facts` are resources that each launch gets.
    """

    plan: Plan
    folder: RunFolder
    backend: Backend
    requirements: Mapping[str, Requirement]
    job: Callable[[Cell, Sampling], Job]
    listener: WalkListener
    widths: Widths
    memory: float = math.inf
    looks: Mapping[str, int] = field(default_factory=dict)
    pairs: Pairs = field(default_factory=dict)
    starts: Sequence[int] = ()
    clock: Callable[[], float] = time.monotonic
    gpu_watch: Watch | None = None
    record_end: Callable[[float], object] = float
    facts: Mapping[str, float] = field(default_factory=dict)

    def run(self, finished: list[Launch]) -> list[Launch]:
        """Execute the launches that `finished` doesn't contain, and return all launches, old and new.

        runner/schedule.py decides which launches come next. In a run of claims, the budget is spent on one group after
        the other (runner/budget.py). An interrupted round is repeated completely, because its cells are compared with
        each other.
        """
        start, earlier_seconds = self.clock(), sum(launch.seconds for launch in finished)

        def get_spent_seconds() -> float:
            return earlier_seconds + self.clock() - start

        if self.plan.is_spent_by_group:
            return self._run_by_group(finished, get_spent_seconds)
        ledger = RoundLog(self.plan, finished)
        for group in self.plan.groups:
            if ledger.is_complete(group, 0):
                self.listener.skip(len(self.plan.slots(group, 0)))
            else:
                self._run_round(group, 0, ledger, self.plan.sampling.of_pilots)
        plan = limit_to_budget(self.plan, ledger.launches, self.pairs)
        ledger = RoundLog(plan, ledger.launches)
        schedule = Schedule(plan, ledger, self.widths, get_spent_seconds)
        self.listener.skip(self.plan.rounds * (self.plan.launches(1) - plan.launches(1)))
        self._report_skipped(plan, lambda group, number: 0 < number <= ledger.rounds(group))
        self._estimate(plan, ledger, schedule)
        executor = replace(self, plan=plan)
        while step := schedule.next():
            samplings = executor._choose_samplings(step.number, ledger)
            # a random order, because drift within a round would otherwise look like a difference between groups
            for group in order(plan.seed, "", step.number, plan.groups):
                if group in step.groups:
                    executor._measure(group, step.number, ledger, samplings[group.name], get_spent_seconds)
            self._estimate(plan, ledger, schedule)
        self._report_skipped(plan, lambda group, number: number > ledger.rounds(group))
        return ledger.launches

    def _report_skipped(self, plan: Plan, is_skipped: Callable[[Group, int], bool]) -> None:
        """Notify the listener of the number of launches in skipped rounds."""
        rounds = ((group, number) for group in plan.groups for number in range(self.plan.rounds + 1))
        self.listener.skip(sum(len(plan.slots(group, number)) for group, number in rounds if is_skipped(group, number)))

    def _estimate(self, plan: Plan, ledger: RoundLog, schedule: Schedule) -> None:
        """Notify the listener of the estimated duration, if it can be estimated."""
        estimate = schedule.estimate()
        cells_in_plan = {*plan.cells}
        left_out = [cell for cell in self.plan.cells if cell not in cells_in_plan]
        if left_out:
            needed = needed_budget(self.plan, RoundLog(self.plan, ledger.launches))
            estimate = replace(estimate, needed=needed, left_out=left_out)
        if estimate.round_seconds:
            self._report(estimate)

    def _report(self, estimate: RunEstimate) -> None:
        self.record_end(estimate.seconds)
        self.listener.estimate(estimate)

    def _measure(
        self, group: Group, number: int, ledger: RoundLog, sampling: Sampling, get_spent_seconds: Callable[[], float]
    ) -> None:
        """Measure a round of a group, and repeat it once if it had interference."""
        self._run_round(group, number, ledger, sampling)
        if ledger.is_to_repeat(group, number) and self._can_repeat(group, number, ledger, get_spent_seconds()):
            self.listener.again(number, len(group.slots))
            self._run_round(group, number, ledger, sampling)

    def _run_by_group(self, finished: list[Launch], get_spent_seconds: Callable[[], float]) -> list[Launch]:
        """Execute the launches group by group (runner/budget.py), and notify the listener of skipped launches."""
        launches = list(finished)
        group_budget = GroupBudget(self.plan, self.widths, self.looks, finished, get_spent_seconds)
        self._report_skipped(self.plan, lambda group, number: number <= group_budget.find_last_round(group))
        while request := group_budget.next():
            ledger = group_budget.ledgers[request.group.name]
            count_before = len(ledger.launches)
            if any(round_log.ended for round_log in group_budget.ledgers.values()):
                self._report(group_budget.estimate())
            self._run_request(request, ledger, get_spent_seconds)
            launches += ledger.launches[count_before:]
        self._report_skipped(self.plan, lambda group, number: number > group_budget.find_last_round(group))
        return launches

    def _run_request(self, request: RoundRequest, ledger: RoundLog, get_spent_seconds: Callable[[], float]) -> None:
        """Continue a group up to the requested round, within the requested time. The first round is always measured.

        The requested time includes the time between launches.
        """
        start, earlier_seconds = get_spent_seconds(), ledger.seconds()
        group = request.group
        plan = replace(self.plan, groups=[group], rounds=request.rounds, budget_seconds=request.seconds)
        executor = replace(self, plan=plan)
        for number in range(request.rounds + 1):
            if ledger.is_complete(group, number):
                continue
            spent_seconds = earlier_seconds + get_spent_seconds() - start
            if number > 1 and spent_seconds + ledger.seconds(number - 1, [group]) > request.seconds:
                break
            if number == 2 and is_precise(self.plan, group, ledger, self.widths):
                break
            sampling = executor._choose_samplings(number, ledger)[group.name]
            executor._measure(group, number, ledger, sampling, ledger.seconds)

    def _can_repeat(self, group: Group, number: int, ledger: RoundLog, spent_seconds: float) -> bool:
        """Return whether the budget is large enough to repeat this round and to measure all later rounds."""
        if self.plan.budget_seconds is None:
            return True
        round_seconds = max(ledger.seconds(round_number, self.plan.groups) for round_number in (number - 1, number))
        later_seconds = (self.plan.rounds - number) * round_seconds
        return spent_seconds + ledger.seconds(number, [group]) + later_seconds <= self.plan.budget_seconds

    def profile(self) -> list[Launch]:
        """Launch every cell once with the profiler, and return these launches, which aren't used in results.

        The order of the cells is random, as in a round. If the machine becomes slower in between, the profiled seconds
        change, but their shares hardly change.
        """
        return [
            launch
            for group in self.plan.groups
            for position, cell in enumerate(order(self.plan.seed, group.name, 0, group.cells))
            for launch in self._run_together(
                [self._make_launching(LaunchSlot(group.name, 0, 0, position, Role.PROFILE), cell, SHORT)]
            )
        ]

    def _run_round(self, group: Group, number: int, ledger: RoundLog, sampling: Sampling) -> None:
        self.listener.skip(len(self.plan.slots(group, number)) - len(ledger.slots(group, number)))
        attempt = ledger.attempts(group, number)
        position = 0
        for index, block in enumerate(plan_blocks(ledger, group, number, self.memory, self.starts)):
            # earlier pilots can make a pilot unnecessary
            needed_slots = [(cell, role) for cell, role in block if number or ledger.is_to_pilot(group, cell)]
            self.listener.skip(len(block) - len(needed_slots))
            launchings: list[Launching] = []
            starts = choose_starts(group, self.starts, len(needed_slots))
            # pilots, and launches that aren't interleaved, have block 0
            block_number = index if number and len(block) > 1 else 0
            for cell, role in needed_slots:
                sized = _choose_sampling(sampling, number, ledger, cell, alone=len(block) == 1)
                slot = LaunchSlot(group.name, number, attempt, position, role, block_number)
                is_first = ledger.is_first(cell)
                launchings.append(
                    self._make_launching(slot, cell, sized, thorough=is_first, starts=starts, place=len(launchings))
                )
                position += 1
            turn_count = (sampling.turns or 0) if len(launchings) > 1 else 0
            turns = order_turn(self.plan.seed, f"{group.name}/{index}", number, len(launchings), turn_count)
            longest = TURNS_PATIENCE * turn_count * sampling.sample_seconds
            launches = self._run_together(launchings, turns, longest, at_once=max(1, len(starts)))
            for launch in launches:
                ledger.add(launch)
            for launch in [candidate for candidate in launches if candidate.ended_under_profiler]:
                # this launch isn't the cell's first launch, so it runs without TensorFlow's profiler
                slot = LaunchSlot(group.name, number, attempt, position, launch.role, block_number)
                sized = _choose_sampling(sampling, number, ledger, launch.cell, alone=True)
                ledger.add(*self._run_together([self._make_launching(slot, launch.cell, sized)]))
                position += 1

    def _make_launching(
        self,
        slot: LaunchSlot,
        cell: Cell,
        sampling: Sampling,
        *,
        thorough: bool = False,
        starts: Sequence[int] = (),
        place: int = 0,
    ) -> Launching:
        """Return a launch that can be started. `thorough` adds checks that are needed once per cell.

        `starts` contains the CPUs on which launches start at the same time, and `place` is the position of this launch
        among these launches. Without `starts`, the launch starts on the CPUs on which it is measured.
        """
        job = replace(self.job(cell, sampling), thorough=thorough, profile_calls=self.plan.profile_calls)
        if thorough:  # so that the counted calls don't depend on the order of sets
            job = replace(job, environ={"PYTHONHASHSEED": "0", **job.environ})
        measured_cpus = job.limits.cpus or ()
        if starts:
            # as in `_start`: the first launch starts on the measured CPU, and each other launch on a different CPU
            start_cpu = starts[1 + (place - 1) % (len(starts) - 1)] if place else starts[0]
            job = replace(job, limits=replace(job.limits, cpus=(start_cpu,)), waits=True)
        name = name_on(cell.environment, cell.device, self.requirements)
        hold = partial(self.backend.hold, self.requirements[name], job)
        beside = {BESIDE_STARTS: len(starts) - 1.0} if len(starts) > 1 else {}
        watch = self.gpu_watch if job.limits.gpus else None
        return Launching(slot, cell, hold, watch, self.clock, facts={**self.facts, **beside}, cpus=measured_cpus)

    def _run_together(
        self,
        launchings: Sequence[Launching],
        turns: Sequence[Sequence[int]] = (),
        longest: float = 0.0,
        at_once: int = 1,
    ) -> list[Launch]:
        """Start launches, interleave them, and end them. Each is stored when it ends. Return the stored launches.

        `at_once` launches start at the same time, and then warm up one after the other. `turns` contains, for each
        turn, the indices of `launchings` in the order in which they measure. Interleaving ends when the turns of the
        slowest launch have taken `longest` seconds in total. If a launch fails, the others continue.
        """
        with ExitStack() as stack:
            remaining: list[Launching] = []
            ended: list[Launch] = []

            def end(launching: Launching) -> None:
                ended.append(launching.store(self.folder))
                remaining.remove(launching)
                self.listener.end(ended[-1])

            def begin(launching: Launching) -> None:
                self.listener.begin(launching.cell, launching.slot.round)
                remaining.append(stack.enter_context(launching))

            try:
                _start(launchings, at_once, begin, end)
                self._run_turns(launchings, turns, longest, end)
                for member in list(remaining):
                    member.end()
                    end(member)
            except (KeyboardInterrupt, CannotRunHereError):
                for member in remaining:
                    member.store_interrupted(self.folder)
                raise
            return ended

    def _run_turns(
        self,
        launchings: Sequence[Launching],
        turns: Sequence[Sequence[int]],
        longest: float,
        end: Callable[[Launching], None],
    ) -> None:
        """Interleave launches."""
        for number, turn in enumerate(turns):
            waiting_launchings = [launchings[index] for index in turn if launchings[index].waits]
            slowest = max((member.turn_seconds for member in waiting_launchings), default=math.inf)
            if not waiting_launchings or (number >= FEWEST_TURNS and slowest >= longest):
                return
            self.listener.turn(number + 1, len(turns))
            samples = 1 if (number + 1) % LONG_ONE_IN else LONG_TURN
            for position, launching in enumerate(waiting_launchings):
                launching.turn(position, samples)
                if not launching.waits:
                    end(launching)

    def _choose_samplings(self, number: int, ledger: RoundLog) -> dict[str, Sampling]:
        """Return the sampling of each group.

        In round 0, it is the sampling of pilots. Later, it is the planned sampling, with lengths from the pilots.
        """
        names = [group.name for group in self.plan.groups]
        if number == 0:
            return dict.fromkeys(names, self.plan.sampling.of_pilots)
        return sizing.samplings(self.plan.sampling, names, ledger.launches, self.plan.single_steps)


def _start(
    launchings: Sequence[Launching], at_once: int, begin: Callable[[Launching], None], end: Callable[[Launching], None]
) -> None:
    """Start launches, up to `at_once` at the same time, until each has warmed up and waits, or has ended.

    The backend starts the launches. This thread then follows one launch after the other, so that interruptions arrive
    in one thread. It first moves the launch to the measured CPU. So a start is never slower than on the measured CPU,
    even if the other CPUs are busy. When all launches have started, they warm up one at a time on the measured CPU,
    because the warm-up affects the results.
    """
    for position, launching in enumerate(launchings):
        if position and at_once > 1:
            launching.move()
        # start the next launches, so that `at_once` launches start at the same time
        for next_launching in launchings[position + at_once - 1 if position else 0 : position + at_once]:
            begin(next_launching)
            if at_once > 1:
                next_launching.start()
        launching.follow()
        if not launching.waits:
            end(launching)
    if at_once > 1:
        waiting_launchings = [member for member in launchings if member.waits]
        share_seconds(waiting_launchings)
        for launching in waiting_launchings:
            launching.warm_up()
            if not launching.waits:
                end(launching)


def _choose_sampling(sampling: Sampling, number: int, ledger: RoundLog, cell: Cell, *, alone: bool) -> Sampling:
    """Return the sampling of a launch in round `number`. `alone`: the launch isn't interleaved."""
    calls = sampling.calls_per_sample or ledger.calls_per_sample(cell)
    with_calls = replace(sampling, calls_per_sample=calls) if number else sampling
    return replace(with_calls, turns=None) if alone else with_calls
