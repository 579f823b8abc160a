"""The budget of a run with claims. It is spent group by group, so that the first claims get enough rounds.

Cells of different groups aren't compared, so drift only matters within a group. First, each group gets the rounds that
a verdict needs. The group that needs the shortest time for them comes first. Groups for which the remaining budget is
too small aren't started. Then the groups whose intervals are still too wide for their claims continue, again starting
with the group that needs the shortest time.
"""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Launch
from harness.model.run import Group, Plan
from harness.runner.rounds import RoundLog
from harness.runner.stop_rules import Widths, find_largest_width, is_precise

#: Assumed seconds of a launch, if few launches have ended.
USUAL_SECONDS = 4.0

#: If its share of the budget is small, a group may still use this multiple of the usual time of its launches.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """The next part of a group: continue to round `rounds`, as long as all its launches take at most `seconds`."""

    group: Group
    rounds: int
    seconds: float


class Spending:
    """Decides which group continues, from the launches so far and the budget of a run with claims.

    `widths` and `looks` are by group, as in analysis/sizing.py.
    """

    def __init__(self, plan: Plan, widths: Widths, looks: Mapping[str, int], launches: Iterable[Launch] = ()) -> None:
        assert plan.budget_seconds is not None
        self._plan, self._looks = plan, looks
        self._measured, self._known_widths = widths, dict[tuple[str, int], Mapping[str, float]]()
        self._budget = plan.budget_seconds
        self._groups = {group.name: group for group in plan.groups}
        self.ledgers = {name: RoundLog(replace(plan, groups=[group])) for name, group in self._groups.items()}
        for launch in launches:
            self.ledgers[launch.group].add(launch)

    def next(self) -> RoundRequest | None:
        """Return the next rounds to measure; None if nothing more fits into the budget."""
        free = [group for group in self._groups.values() if self._is_open(group)]
        short = [group for group in free if self._rounds(group) < self._fewest(group)]
        # first started groups that stay within their share, then the groups that settle a claim soonest
        for group in sorted(short, key=lambda candidate: (not self._is_fair(candidate, short), self._price(candidate))):
            if errand := self._first(group, short):
                return errand
        begun = [group for group in free if group not in short and self._last(group) <= self._left]
        if not begun:
            return None
        nearest = min(begun, key=self._seconds_to_go)  # if several are equal, the first one in the plan
        rounds = self._rounds(nearest) + self._rounds_to_go(nearest)
        return RoundRequest(nearest, rounds, self._spent(nearest) + self._left)

    def rounds_left(self) -> int:
        """Return the number of launches in the rounds that weren't started."""
        return self._of_rounds(lambda group, number: number > self._rounds(group))

    def rounds_done(self) -> int:
        """Return the number of launches in complete rounds."""
        return self._of_rounds(lambda group, number: number <= self._rounds(group))

    def _of_rounds(self, counts: Callable[[Group, float], bool]) -> int:
        return sum(
            len(self._plan.slots(group, number))
            for name, group in self._groups.items()
            for number in range(self._plan.rounds + 1)
            if counts(group, number if self.ledgers[name].launches else math.inf)
        )

    def _widths(self, launches: Sequence[Launch]) -> Mapping[str, float]:
        """Return the result of `widths`, from a cache if possible, because computing it takes some time."""
        key = launches[0].group, len(launches)
        if key not in self._known_widths:
            self._known_widths[key] = self._measured(launches)
        return self._known_widths[key]

    def _first(self, group: Group, short: Collection[Group]) -> RoundRequest | None:
        """Return the rounds that a verdict of the group needs, if they probably fit into the budget; otherwise None.

        A new group stops after its share of the budget, if it is more expensive than expected. Then other groups may
        finish sooner.
        """
        spent, left = self._spent(group), self._left
        # the first group is always started, because a run without a result is useless
        if self._price(group) > left and any(ledger.launches for ledger in self.ledgers.values()):
            return None
        allowed = spent + left
        if not self._rounds(group):
            usual = self._usual() * self._launches(group, self._fewest(group))
            allowed = min(allowed, spent + max(self._share(group, short), PATIENCE * usual))
        return RoundRequest(group, self._target(group), allowed)

    def _is_fair(self, group: Group, short: Collection[Group]) -> bool:
        """Return whether a group was started and needs at most its share, so that it continues before new groups."""
        return self._rounds(group) > 0 and self._price(group) <= self._share(group, short)

    def _share(self, group: Group, short: Collection[Group]) -> float:
        """Return the group's share of the remaining seconds, in proportion to its launches."""
        return self._left * len(group.slots) / sum(len(other.slots) for other in short)

    def _target(self, group: Group) -> int:
        """Return the round that settles a group or, if unknown, the first round with a verdict."""
        look = self._looks.get(group.name, 0)
        return min(look if self._rounds(group) < look else self._fewest(group), self._plan.rounds)

    def _price(self, group: Group) -> float:
        """Return the expected seconds of the rounds up to the group's target."""
        rounds = self._target(group) - self._rounds(group)
        return rounds * self._last(group) if self._rounds(group) else self._usual() * self._launches(group, rounds)

    def _usual(self) -> float:
        """Return the usual seconds of a launch: the median over groups, which one slow group doesn't change."""
        seconds = [ledger.seconds() / len(ledger.launches) for ledger in self.ledgers.values() if ledger.launches]
        return statistics.median_low([USUAL_SECONDS, *seconds])

    def _launches(self, group: Group, rounds: int) -> int:
        return sum(len(self._plan.slots(group, number)) for number in range(rounds + 1))

    def _seconds_to_go(self, group: Group) -> float:
        return self._rounds_to_go(group) * self._last(group)

    def _rounds_to_go(self, group: Group) -> int:
        """Return the expected number of rounds until the group's claims are settled; at least one."""
        rounds, ledger = self._rounds(group), self.ledgers[group.name]
        width = self._widths(ledger.launches).get(group.name, math.inf) / find_largest_width(self._plan)
        # the width of an interval falls with the square root of the number of rounds
        needed = math.ceil(rounds * width**2 - 1e-9) if math.isfinite(width) else self._fewest(group)
        return min(max(1, needed - rounds), self._plan.rounds - rounds)

    def _is_open(self, group: Group) -> bool:
        ledger, rounds = self.ledgers[group.name], self._rounds(group)
        return (
            rounds < self._plan.rounds
            and bool(ledger.slots(group, rounds + 1))
            and not is_precise(self._plan, group, ledger, self._widths)
        )

    def _fewest(self, group: Group) -> int:
        return min(self._plan.rounds, max(FEWEST_ROUNDS, self._looks.get(group.name, 0)))

    def _rounds(self, group: Group) -> int:
        return self.ledgers[group.name].rounds(group)

    def _last(self, group: Group) -> float:
        """Return the seconds of the group's last round, including its repetitions."""
        ledger = self.ledgers[group.name]
        return ledger.seconds(self._rounds(group), [group])

    def _spent(self, group: Group) -> float:
        return self.ledgers[group.name].seconds()

    @property
    def _left(self) -> float:
        """The remaining seconds of the budget."""
        return self._budget - sum(ledger.seconds() for ledger in self.ledgers.values())
