"""Stop rules: a group ends after its number of rounds, or when its intervals are narrow enough."""

import math
from collections.abc import Callable, Mapping, Sequence

from harness.analysis.looks import FIRST_LOOK, find_first_check
from harness.model.launch import Launch
from harness.model.run import Group, Plan, Stop, StopReason
from harness.runner.rounds import RoundLog

#: A function that returns the width of each group's widest interval: half of the interval's length on the log scale. It
#: is 0 if every verdict is clear, and infinite before intervals are first checked. In a run of claims without a
#: precision, it is divided by the width that the claims need.
Widths = Callable[[Sequence[Launch]], Mapping[str, float]]


def open_groups(plan: Plan, ledger: RoundLog, number: int, widths: Widths) -> frozenset[str]:
    """Return the names of the groups that are measured in round `number`."""
    precise = _find_precise_groups(plan, ledger, widths) if number > 1 else frozenset()
    groups = [group for group in plan.groups if ledger.slots(group, number) and group.name not in precise]
    return frozenset(group.name for group in groups)


def find_stops(plan: Plan, ledger: RoundLog, widths: Widths, *, interrupted: bool) -> dict[str, Stop]:
    """Return how each group ended, by name."""
    precise = _find_precise_groups(plan, ledger, widths)
    return {group.name: _find_stop(plan, group, ledger, precise, interrupted=interrupted) for group in plan.groups}


def _find_stop(plan: Plan, group: Group, ledger: RoundLog, precise: frozenset[str], *, interrupted: bool) -> Stop:
    rounds = ledger.rounds(group)
    if rounds >= plan.settled.get(group.name, plan.rounds):
        return Stop(StopReason.ROUNDS, rounds)
    if not ledger.slots(group, rounds + 1):
        pilots = [pilot for cell in group.cells if (pilot := ledger.pilot(cell))]
        is_observed = any(pilot.only_observed for pilot in pilots)
        return Stop(StopReason.OBSERVED if is_observed else StopReason.NO_NUMBERS, rounds)
    if group.name in precise:
        return Stop(StopReason.PRECISION, rounds)
    if rounds >= plan.rounds:
        return Stop(StopReason.ROUNDS, rounds)
    return Stop(StopReason.INTERRUPTED if interrupted else StopReason.BUDGET, rounds)


def _find_precise_groups(plan: Plan, ledger: RoundLog, widths: Widths) -> frozenset[str]:
    """Return the names of the groups whose intervals were narrow enough after their own last round.

    Later rounds of other groups also change the intervals of a finished group. These changes are ignored, so a finished
    group never continues. Otherwise, groups would continue if their intervals became wider, and stop if they became
    narrower, which would reduce the coverage of the intervals.
    """
    if not plan.ends_early:
        return frozenset()
    if plan.is_spent_by_group:
        return frozenset(group.name for group in plan.groups if is_precise(plan, group, ledger, widths))
    rounds_by_group = {group.name: rounds for group in plan.groups if (rounds := ledger.rounds(group))}
    for rounds in {rounds for name, rounds in rounds_by_group.items() if (name, rounds) not in ledger.widths}:
        widths_by_group = widths([launch for launch in ledger.launches if launch.round <= rounds])
        new_widths = {
            (name, rounds): widths_by_group.get(name, math.inf)
            for name, own_rounds in rounds_by_group.items()
            if own_rounds == rounds
        }
        ledger.widths = new_widths | ledger.widths
    largest = find_largest_width(plan)
    return frozenset(name for name, rounds in rounds_by_group.items() if ledger.widths[name, rounds] <= largest)


def rounds_needed(plan: Plan, group: Group, ledger: RoundLog) -> int:
    """Return the expected number of rounds after which a group ends.

    The width of an interval is assumed to be inversely proportional to the square root of the number of rounds. A group
    never ends before its verdicts are first checked. If they aren't clear then, it continues at least until the widths
    of intervals are first checked.
    """
    rounds = ledger.rounds(group)
    width = ledger.widths.get((group.name, rounds), math.inf)
    if not plan.ends_early:
        return plan.rounds
    if math.isinf(width):
        first_check = find_first_check(plan)
        return min(plan.rounds, max(first_check if rounds < first_check else FIRST_LOOK, rounds + 1))
    return min(plan.rounds, max(rounds + 1, math.ceil(rounds * (width / find_largest_width(plan)) ** 2)))


def is_precise(plan: Plan, group: Group, ledger: RoundLog, widths: Widths) -> bool:
    """Return whether the complete rounds of a group have the plan's precision. Other groups don't affect the result."""
    rounds = ledger.rounds(group)
    if not plan.ends_early or not rounds:
        return False
    if (group.name, rounds) not in ledger.widths:  # computing a width takes some time
        launches = [launch for launch in ledger.launches if launch.group == group.name and launch.round <= rounds]
        ledger.widths[group.name, rounds] = widths(launches).get(group.name, math.inf)
    return ledger.widths[group.name, rounds] <= find_largest_width(plan)


def find_largest_width(plan: Plan) -> float:
    """Return the largest width (see `Widths`) at which a group ends."""
    return math.log1p(plan.precision) if plan.precision is not None else 1.0
