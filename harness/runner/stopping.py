"""When a group has enough rounds: by how many there are, and how wide the intervals are."""

import math
from collections.abc import Callable, Mapping, Sequence

from harness.model.launch import Launch
from harness.model.run import Group, Plan, Stop, StopReason
from harness.runner.rounds import Ledger

#: By group, half the width of its widest interval on the log scale, in a run of claims without a precision in terms of
#: what they need; infinite before it may be looked at.
Widths = Callable[[Sequence[Launch]], Mapping[str, float]]


def open_groups(plan: Plan, ledger: Ledger, number: int, widths: Widths) -> frozenset[str]:
    """The names of the groups that go into round `number`: those that have something to launch and are not done."""
    precise = _precise(plan, ledger, widths, number) if number > 1 else frozenset()
    groups = [group for group in plan.groups if ledger.slots(group, number) and group.name not in precise]
    return frozenset(group.name for group in groups)


def stops(plan: Plan, ledger: Ledger, widths: Widths, *, interrupted: bool) -> dict[str, Stop]:
    """How each group ended."""
    most = _most(plan, ledger)
    precise = _precise(plan, ledger, widths, most if interrupted else most + 1)
    return {group.name: _stop(plan, group, ledger, precise, interrupted=interrupted) for group in plan.groups}


def _stop(plan: Plan, group: Group, ledger: Ledger, precise: frozenset[str], *, interrupted: bool) -> Stop:
    rounds = ledger.rounds(group)
    if not ledger.slots(group, rounds + 1):
        return Stop(StopReason.OBSERVED if _observes(group, ledger) else StopReason.NO_NUMBERS, rounds)
    if group.name in precise:
        return Stop(StopReason.PRECISION, rounds)
    if rounds >= plan.rounds:
        return Stop(StopReason.ROUNDS, rounds)
    return Stop(StopReason.INTERRUPTED if interrupted else StopReason.BUDGET, rounds)


def _observes(group: Group, ledger: Ledger) -> bool:
    """Whether some cell of the group had nothing to time and has told what it observed."""
    return any(pilot.only_observed for cell in group.cells if (pilot := ledger.pilot(cell)))


def _precise(plan: Plan, ledger: Ledger, widths: Widths, number: int) -> frozenset[str]:
    """The groups that need no round `number`: those that are known well enough, and those that ended before.

    An end is final: what other groups measure later moves a group's intervals too, and who goes on where they have
    become wider, and stops where narrower, has intervals that cover less than they say.
    """
    if not plan.ends_early:
        return frozenset()
    if plan.is_spent_by_group:
        return frozenset(group.name for group in plan.groups if is_known(plan, group, ledger, widths))
    ended = max(number, _most(plan, ledger)) - 1
    before = {group.name for group in plan.groups if 0 < ledger.rounds(group) < ended}
    return frozenset(before.union(name for name, width in widths(ledger.launches).items() if width <= narrow(plan)))


def is_known(plan: Plan, group: Group, ledger: Ledger, widths: Widths) -> bool:
    """Whether a group has whole rounds, and is known by these alone as well as the plan asks: so this never changes."""
    rounds = ledger.rounds(group)
    if not plan.ends_early or not rounds:
        return False
    own = [launch for launch in ledger.launches if launch.group == group.name and launch.round <= rounds]
    return widths(own).get(group.name, math.inf) <= narrow(plan)


def narrow(plan: Plan) -> float:
    """How wide the widest interval of a group may be at which it ends, in terms of `Widths`."""
    return math.log1p(plan.precision) if plan.precision is not None else 1.0


def _most(plan: Plan, ledger: Ledger) -> int:
    return max((ledger.rounds(group) for group in plan.groups), default=0)
