"""The schedule of a run: decides which rounds come next, and when the rounds, the precision or the budget end the run.

A verdict needs `FEWEST_ROUNDS` rounds. If the budget is large enough for these rounds of all groups, every group gets
round r before any group gets round r + 1. Otherwise, groups are finished one at a time, so that at least one group has
enough rounds.

The budget of a suite isn't strict: a slow machine exceeds it until every group has these rounds, the cheapest first. A
budget on the command line is strict, so groups may be left out. The groups that it allows are measured in the order of
the plan, which is the order of the scenario's header.

All decisions depend only on the launches and their durations. So a resumed run makes the same decisions as an
uninterrupted run.
"""

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis import sizing
from harness.analysis.rounds import budget_seconds
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Launch
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.runner.rounds import RoundLog
from harness.runner.stop_rules import Widths, open_groups, rounds_needed

#: A budget may be exceeded by this share to complete the rounds that a verdict needs.
TOLERANCE = 0.1

#: The duration of an interleaved launch as a multiple of its measurement time. The launch also makes untimed calls
#: between its samples, and takes more samples in some turns.
INTERLEAVED_FACTOR = 2.0

#: The smallest number of calls in a launch, even if calls are slow: three turns, one of which has two calls.
FEWEST_CALLS = 4

#: The compared pairs of cells, by group, in the order of the tables.
Pairs = Mapping[str, Sequence[tuple[Cell, Cell]]]


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """The next launches: round `number` of each group in `groups`."""

    number: int
    groups: Sequence[Group]


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimated duration of a run on this machine, from its launches so far.

    - `round_seconds`: the duration of one round of all groups, in seconds.
    - `rounds`: the number of rounds that each measured group will probably have. If groups can end early, they have
      at least this number.
    - `seconds`: the time from the first launch to the end, in seconds.
    - `needed`: if the budget is too small for a verdict on every comparison, a sufficient budget in seconds.
    - `left_out`: the cells that aren't measured because the budget is too small.
    - `launches`: the number of further launches. With a precision, it depends on the present widths of intervals.
    """

    round_seconds: float
    rounds: int
    seconds: float
    needed: float | None = None
    left_out: Collection[Cell] = ()
    launches: int = 0


class Schedule:
    """Decides which launches come next, unless the budget is spent by group. `spent` returns the seconds so far."""

    def __init__(self, plan: Plan, ledger: RoundLog, widths: Widths, spent: Callable[[], float]) -> None:
        self._plan, self._ledger, self._widths, self._get_spent_seconds = plan, ledger, widths, spent
        self._fewest_rounds = min(plan.rounds, FEWEST_ROUNDS)

    def next(self) -> ScheduleStep | None:
        """Return the next launches; None if the run has ended."""
        active = [group for group in self._plan.groups if self._can_continue(group)]
        unfinished = [group for group in active if self._count_rounds(group) < self._fewest_rounds]
        if not unfinished:
            return self._advance_all(active)
        # the cost of a group's rounds is only known after its first round
        is_unknown = self._plan.budget_is_wish and not all(map(self._count_rounds, unfinished))
        if is_unknown or sum(map(self._estimate_remaining, unfinished)) <= self._remaining_seconds:
            # the earliest round that is missing in any group, with the groups that need it
            number = min(map(self._count_rounds, unfinished)) + 1
            return ScheduleStep(number, [group for group in unfinished if self._count_rounds(group) + 1 == number])
        return self._advance_one(unfinished)

    def estimate(self) -> RunEstimate:
        """Estimate the duration and the number of rounds, from the durations of the launches so far."""
        plan, budget = self._plan, self._plan.budget_seconds
        active = [group for group in plan.groups if self._can_continue(group)]
        if plan.ends_early:
            names = open_groups(plan, self._ledger, 2, self._widths)
            active = [group for group in active if group.name in names]
        finished = min((self._count_rounds(group) for group in active), default=self._fewest_rounds)
        per_round, spent_seconds = sum(map(self._estimate_round_seconds, active)), self._get_spent_seconds()
        if budget is None:
            rounds = plan.rounds
        else:
            possible_rounds = finished + int(max(0.0, budget - spent_seconds) / per_round) if per_round else plan.rounds
            rounds = min(plan.rounds, max(self._fewest_rounds, possible_rounds))
        last_rounds = {group.name: min(rounds, rounds_needed(plan, group, self._ledger)) for group in active}
        missing_rounds = {group.name: max(0, last_rounds[group.name] - self._count_rounds(group)) for group in active}
        seconds = spent_seconds + sum(
            missing_rounds[group.name] * self._estimate_round_seconds(group) for group in active
        )
        next_slots = {group.name: self._ledger.slots(group, self._count_rounds(group) + 1) for group in active}
        launches = sum(missing_rounds[name] * len(slots) for name, slots in next_slots.items())
        rounds = max(last_rounds.values(), default=rounds)
        if budget is None or plan.budget_is_wish or seconds <= max(spent_seconds, budget * (1.0 + TOLERANCE)):
            return RunEstimate(per_round, rounds, seconds, launches=launches)
        share = max(0.0, budget - spent_seconds) / (seconds - spent_seconds)
        # the first round is always measured
        first_end = spent_seconds + (0.0 if any(map(self._count_rounds, plan.groups)) else per_round)
        return RunEstimate(
            per_round, rounds, max(budget, first_end), needed=seconds, launches=math.ceil(launches * share)
        )

    def _can_continue(self, group: Group) -> bool:
        rounds = self._count_rounds(group)
        return rounds < self._plan.rounds and bool(self._ledger.slots(group, rounds + 1))

    def _advance_all(self, active: Sequence[Group]) -> ScheduleStep | None:
        """Return the next round of all groups that haven't ended, if the budget is large enough; otherwise None."""
        rounds = sorted({self._count_rounds(group) for group in active})
        for number in (count + 1 for count in rounds):
            names = open_groups(self._plan, self._ledger, number, self._widths)
            chosen = [group for group in active if group.name in names and self._count_rounds(group) + 1 == number]
            if chosen:
                is_affordable = sum(map(self._estimate_round_seconds, chosen)) <= self._remaining_seconds
                return ScheduleStep(number, chosen) if is_affordable else None
        return None

    def _advance_one(self, unfinished: Sequence[Group]) -> ScheduleStep | None:
        """Return the next round of a single group; None if the budget is too small for each of these groups.

        With a suite's budget, it is the group that finishes soonest. With a strict budget, it is the first group in the
        plan for which the budget is large enough.
        """
        if self._plan.budget_is_wish:
            chosen = min(unfinished, key=self._estimate_remaining)  # if several are equal, the first one in the plan
        else:
            limit = self._remaining_seconds + TOLERANCE * (self._plan.budget_seconds or 0.0)
            fitting = [group for group in unfinished if self._estimate_remaining(group) <= limit]
            if not fitting and any(map(self._count_rounds, self._plan.groups)):
                return None
            chosen = (fitting or unfinished)[0]  # the first group is always measured
        return ScheduleStep(self._count_rounds(chosen) + 1, [chosen])

    def _estimate_remaining(self, group: Group) -> float:
        """Return the duration of the rounds that a verdict still needs, in seconds."""
        return (self._fewest_rounds - self._count_rounds(group)) * self._estimate_round_seconds(group)

    def _estimate_round_seconds(self, group: Group) -> float:
        """Return the duration of a round of the group in seconds, from its last round or from pilots."""
        rounds, ledger = self._count_rounds(group), self._ledger
        if not rounds:
            return round_seconds(self._plan, ledger, group)
        launch_seconds = ledger.seconds()
        # the time between launches isn't part of any launch, so it is added in proportion
        overhead = max(1.0, self._get_spent_seconds() / launch_seconds) if launch_seconds > 0.0 else 1.0
        return ledger.seconds(rounds, [group]) * overhead

    def _count_rounds(self, group: Group) -> int:
        return self._ledger.rounds(group)

    @property
    def _remaining_seconds(self) -> float:
        budget = self._plan.budget_seconds
        return math.inf if budget is None else budget - self._get_spent_seconds()


def limit_to_budget(plan: Plan, launches: Sequence[Launch], pairs: Pairs) -> Plan:
    """Return the plan with the groups and cells for which the budget allows the rounds that a verdict needs.

    The budget of a suite, or a budget that is spent on claims, removes nothing. A suite's budget becomes longer if a
    CPU quota slows down the launches. Groups are chosen in the order of the plan. A group that is too expensive loses
    its A/A control, and then cells until the others fit into the rest of the budget: its first `pairs` are kept. If the
    budget is too small for any pair, the first pair of the group with the cheapest rounds is kept. Costs are estimated
    only from the pilots, so that the result stays the same during the whole run.
    """
    pilots = [launch for launch in launches if launch.round == 0]
    if plan.budget_is_wish:
        return replace(plan, budget_seconds=budget_seconds(plan, pilots))
    if plan.budget_seconds is None or plan.is_spent_by_group or not pilots:
        return plan
    ledger, fewest_rounds = RoundLog(plan, pilots), min(plan.rounds, FEWEST_ROUNDS)
    remaining = plan.budget_seconds * (1.0 + TOLERANCE) - ledger.seconds()
    chosen: list[Group] = []
    for group in plan.groups:
        cost = fewest_rounds * round_seconds(plan, ledger, group)
        part: Group | None = group
        if cost > max(0.0, remaining):
            # the A/A control is the first launch that a group loses
            part = replace(group, controlled=False)
            cost = fewest_rounds * round_seconds(plan, ledger, part)
            if cost > max(0.0, remaining):
                part = _limit_group(part, pairs.get(group.name, ()), int(remaining / cost * len(part.slots)))
        if part:
            chosen.append(part)
            remaining -= fewest_rounds * round_seconds(plan, ledger, part)
    if not chosen:
        cheapest = min(plan.groups, key=lambda group: round_seconds(plan, ledger, group))
        reduced = _limit_group(replace(cheapest, controlled=False), pairs.get(cheapest.name, ()), 0, keeps_first=True)
        chosen = [reduced] if reduced else []
    return replace(plan, groups=chosen)


def _limit_group(
    group: Group, pairs: Sequence[tuple[Cell, Cell]], launches: int, *, keeps_first: bool = False
) -> Group | None:
    """Return the group reduced to the cells of its first pairs, so that a round has at most `launches` launches.

    The result is None if no pair fits. If `keeps_first`, the first pair is always kept.
    """
    cells: set[Cell] = set()
    control = 1 if group.control and group.controlled else 0
    for pair in pairs or [(group.cells[0], group.cells[-1])]:
        if len(cells.union(pair)) + control > launches and (cells or not keeps_first):
            break
        cells |= {*pair}
    kept_cells = [cell for cell in group.cells if cell in cells]
    if not kept_cells:
        return None
    control_cell = group.control if group.control in cells else kept_cells[0]
    return replace(group, cells=kept_cells, control=control_cell if group.control and len(kept_cells) > 1 else None)


def needed_budget(plan: Plan, ledger: RoundLog) -> float:
    """Return the budget in seconds that verdicts on all comparisons need, including the pilots."""
    fewest = min(plan.rounds, FEWEST_ROUNDS)
    pilots = ledger.seconds(0, plan.groups)
    return pilots + sum(fewest * round_seconds(plan, ledger, group) for group in plan.groups)


def round_seconds(plan: Plan, ledger: RoundLog, group: Group) -> float:
    """Estimate the duration, in seconds, of a round of a group that wasn't measured yet, from the pilots.

    The estimate assumes that a launch starts as fast as a pilot in the same environment, preferably of its own group.
    After the start, it warms up and measures for the planned times, or for the smallest number of calls if that takes
    longer. A launch that doesn't warm up, such as a plain script, takes as long as its pilot.
    """
    pilots = [launch for launch in ledger.launches if launch.round == 0 and launch.samples]
    if not pilots:
        return 0.0
    sampling = sizing.samplings(plan.sampling, [group.name], ledger.launches, plan.single_steps)[group.name]
    planned = sampling.measure_seconds or 0.0
    planned *= INTERLEAVED_FACTOR if plan.in_turns(group) else 1.0

    def seconds(cell: Cell) -> float:
        own_pilots = [pilot for pilot in pilots if pilot.group == group.name] or pilots
        similar_pilots = [pilot for pilot in own_pilots if pilot.cell.environment == cell.environment] or own_pilots
        if all("warm up" not in pilot.phases for pilot in similar_pilots):
            return max(pilot.seconds for pilot in similar_pilots)
        startup = max(_estimate_startup(pilot) for pilot in similar_pilots)
        call = max(statistics.fmean(sample.seconds for sample in pilot.samples) for pilot in similar_pilots)
        return startup + max(sampling.warmup_seconds or 0.0, call) + max(planned, FEWEST_CALLS * call)

    return sum(seconds(cell) for cell, _ in group.slots)


def _estimate_startup(pilot: Launch) -> float:
    """Return the duration of a pilot in seconds, without its warm-up and measurement."""
    timed_seconds = pilot.phases.get("warm up", 0.0) + sum(sample.seconds for sample in pilot.samples)
    return max(0.0, pilot.seconds - timed_seconds)
