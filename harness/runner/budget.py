"""The budget of a run with claims. It is spent group by group, so that at least some claims get enough rounds.

Cells of different groups aren't compared, so drift only matters within a group. First, each group gets the rounds that
a verdict needs, starting with the group that needs the shortest time for them. Groups for which the remaining budget is
too small aren't started. After that, groups with an unclear claim continue to their next look (analysis/looks.py),
again starting with the group that needs the shortest time.
"""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from harness.analysis.looks import WORTHWHILE, list_looks_at_claims
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.launch import Launch
from harness.model.run import Group, Plan
from harness.runner.rounds import RoundLog
from harness.runner.schedule import RunEstimate
from harness.runner.stop_rules import Widths, is_precise

#: The assumed duration of a launch in seconds, if few launches have ended.
USUAL_SECONDS = 4.0

#: A group may use this multiple of the usual duration of its launches, even if its share of the budget is smaller.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """A request to continue a group up to round `rounds`, as long as all its launches take at most `seconds`."""

    group: Group
    rounds: int
    seconds: float


class GroupBudget:
    """Decides which group of a run with claims continues, from the launches so far and the budget.

    `widths` computes the widths of intervals. `looks` contains the round after which each group's claims are first
    checked (analysis/looks.py). `spent` returns the seconds so far, including the time between launches.
    """

    def __init__(
        self,
        plan: Plan,
        widths: Widths,
        looks: Mapping[str, int],
        launches: Iterable[Launch] = (),
        spent: Callable[[], float] = float,
    ) -> None:
        assert plan.budget_seconds is not None
        self._plan, self._widths, self._looks = plan, widths, looks
        self._budget, self._get_total_seconds = plan.budget_seconds, spent
        self._groups = {group.name: group for group in plan.groups}
        self.ledgers = {name: RoundLog(replace(plan, groups=[group])) for name, group in self._groups.items()}
        for launch in launches:
            self.ledgers[launch.group].add(launch)

    def next(self) -> RoundRequest | None:
        """Return the next rounds to measure; None if nothing more fits into the budget."""
        open_groups = [group for group in self._groups.values() if self._is_open(group)]
        unfinished = [group for group in open_groups if self._count_rounds(group) < self._get_fewest_rounds(group)]
        # started groups that stay within their share come first, then the groups that need the shortest time
        for group in sorted(
            unfinished,
            key=lambda candidate: (not self._is_within_share(candidate, unfinished), self._estimate_cost(candidate)),
        ):
            if request := self._request_first_rounds(group, unfinished):
                return request
        started = [group for group in open_groups if group not in unfinished]
        # if several groups need the same time, the first one in the plan is continued
        for group in sorted(started, key=self._estimate_cost):
            made, target, seconds = self._count_rounds(group), self._find_target(group), self._get_last_seconds(group)
            remaining = self._remaining_seconds
            rounds = min(target, made + int(remaining / seconds)) if seconds else target
            if rounds == target or rounds >= WORTHWHILE * made:
                return RoundRequest(group, rounds, self.ledgers[group.name].seconds() + remaining)
        return None

    def estimate(self) -> RunEstimate:
        """Estimate the duration of the first rounds of all groups, from the ended launches so far (at least one)."""
        spent = self._budget - self._remaining_seconds
        mean = spent / sum(len(ledger.ended) for ledger in self.ledgers.values())
        groups = [group for group in self._groups.values() if self._count_rounds(group) or self._is_open(group)]
        rounds = min(map(self._get_fewest_rounds, groups), default=self._plan.rounds)
        total_seconds = spent + sum(
            self._estimate_seconds(group, self._get_fewest_rounds(group), mean)
            for group in filter(self._is_open, groups)
        )
        per_round = sum(self._get_last_seconds(group) or mean * len(group.slots) for group in groups)
        launches = math.ceil(max(0.0, self._remaining_seconds) / mean) if mean else 0
        return RunEstimate(
            per_round,
            rounds,
            min(total_seconds, self._budget),
            needed=total_seconds if total_seconds > self._budget else None,
            launches=launches,
        )

    def _estimate_seconds(self, group: Group, rounds: int, launch_seconds: float) -> float:
        """Return the seconds until the group has `rounds` rounds. Its first launches take `launch_seconds` each."""
        made = self._count_rounds(group)
        if made:
            return max(0, rounds - made) * self._get_last_seconds(group)
        return launch_seconds * self._count_round_launches(group, rounds)

    def find_last_round(self, group: Group) -> int:
        """Return the number of the group's last complete round; -1 if the group wasn't started."""
        return self._count_rounds(group) if self.ledgers[group.name].launches else -1

    def _request_first_rounds(self, group: Group, unfinished: Collection[Group]) -> RoundRequest | None:
        """Return the rounds that a verdict of the group needs, if they probably fit into the budget; otherwise None.

        If a new group is more expensive than expected, it stops after its share of the budget, because other groups may
        finish sooner.
        """
        spent_seconds, remaining = self.ledgers[group.name].seconds(), self._remaining_seconds
        # the first group is always started, because a run without a result is useless
        if self._estimate_cost(group) > remaining and any(ledger.ended for ledger in self.ledgers.values()):
            return None
        limit = spent_seconds + remaining
        if not self._count_rounds(group):
            usual = self._estimate_launch_seconds() * self._count_round_launches(group, self._get_fewest_rounds(group))
            limit = min(limit, spent_seconds + max(self._compute_share(group, unfinished), PATIENCE * usual))
        return RoundRequest(group, self._find_target(group), limit)

    def _is_within_share(self, group: Group, unfinished: Collection[Group]) -> bool:
        """Return whether a group was started and needs at most its share of the budget, so that it continues first."""
        return self._count_rounds(group) > 0 and self._estimate_cost(group) <= self._compute_share(group, unfinished)

    def _compute_share(self, group: Group, unfinished: Collection[Group]) -> float:
        """Return the group's share of the remaining budget in seconds, in proportion to its launches per round."""
        return self._remaining_seconds * len(group.slots) / sum(len(other.slots) for other in unfinished)

    def _find_target(self, group: Group) -> int:
        """Return the round after which the group's claims are next checked, or the first round with a verdict."""
        made, fewest = self._count_rounds(group), self._get_fewest_rounds(group)
        looks = list_looks_at_claims(self._looks.get(group.name, FEWEST_ROUNDS), self._plan.rounds)
        target = next(look for look in looks if look > made)
        return min(target, fewest) if made < fewest else target

    def _estimate_cost(self, group: Group) -> float:
        """Return the expected duration, in seconds, of the rounds up to the group's target round."""
        return self._estimate_seconds(group, self._find_target(group), self._estimate_launch_seconds())

    def _estimate_launch_seconds(self) -> float:
        """Return the usual duration of a launch in seconds: the median over groups, so one slow group has no effect."""
        seconds = [ledger.seconds() / len(ended) for ledger in self.ledgers.values() if (ended := ledger.ended)]
        return statistics.median_low([USUAL_SECONDS, *seconds])

    def _count_round_launches(self, group: Group, rounds: int) -> int:
        return sum(len(self._plan.slots(group, number)) for number in range(rounds + 1))

    def _is_open(self, group: Group) -> bool:
        ledger, rounds = self.ledgers[group.name], self._count_rounds(group)
        return (
            rounds < self._plan.rounds
            and bool(ledger.slots(group, rounds + 1))
            and not is_precise(self._plan, group, ledger, self._widths)
        )

    def _get_fewest_rounds(self, group: Group) -> int:
        return min(self._plan.rounds, max(FEWEST_ROUNDS, self._looks.get(group.name, 0)))

    def _count_rounds(self, group: Group) -> int:
        return self.ledgers[group.name].rounds(group)

    def _get_last_seconds(self, group: Group) -> float:
        """Return the duration of the group's last round in seconds, including its repetitions."""
        ledger = self.ledgers[group.name]
        return ledger.seconds(self._count_rounds(group), [group])

    @property
    def _remaining_seconds(self) -> float:
        """The remaining seconds of the budget."""
        launch_seconds = sum(ledger.seconds() for ledger in self.ledgers.values())
        return self._budget - max(launch_seconds, self._get_total_seconds())
