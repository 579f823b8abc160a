"""Which group of claims is measured next, and how the budget is spent on it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.launch import Launch, Role, Status
from harness.model.run import Plan, Stop, StopReason
from harness.runner.budget import GroupBudget, RoundRequest
from harness.runner.rounds import RoundLog
from harness.runner.stop_rules import find_stops
from tests import runs
from tests.runner.stage import Backstage, Shelf, Silent, interrupted_at, staged

KNOWN = 0.5


def plan(budget: float, groups: int = 3) -> Plan:
    return replace(runs.plan(30, groups), claims=["T#1"], budget_seconds=budget, piloted=False)


class BudgetBench:
    """Does errands with launches of `seconds` each, by group; `needs` are the rounds that each is known after."""

    def __init__(self, planned: Plan, seconds: Mapping[str, float], needs: Mapping[str, int]) -> None:
        self.plan, self.seconds, self.needs = planned, seconds, needs
        self.spending = GroupBudget(planned, self.widths, dict.fromkeys(seconds, 2))
        self.errands: list[tuple[str, int]] = []

    def widths(self, launches: Sequence[Launch]) -> dict[str, float]:
        """As those of intervals: with the root of the number of rounds."""
        (name,) = {launch.group for launch in launches}
        rounds = max(launch.round for launch in launches)
        return {name: math.sqrt(self.needs[name] / rounds) if rounds > 1 else math.inf}

    def run(self, most: int = 1000) -> dict[str, int]:
        while len(self.errands) < most and (errand := self.spending.next()):
            self.errands.append((errand.group.name, errand.rounds))
            self.do(errand)
        return {name: ledger.rounds(group) for (name, ledger), group in self.ledgers}

    @property
    def ledgers(self):  # type: ignore[no-untyped-def]
        return zip(self.spending.ledgers.items(), self.plan.groups, strict=True)

    def do(self, errand: RoundRequest) -> None:
        group, ledger = errand.group, self.spending.ledgers[errand.group.name]
        rounds = ledger.rounds(group)
        for number in range(rounds + 1, errand.rounds + 1):
            cost = len(group.cells) * self.seconds[group.name]
            if number > 1 and ledger.seconds() + cost > errand.seconds:
                break
            for cell in group.cells:
                ledger.add(
                    runs.launch(
                        group=group.name, cell=cell, round=number, role=Role.MEASURE, seconds=self.seconds[group.name]
                    )
                )
        assert ledger.rounds(group) > rounds


ALIKE = {"step 0": 1.0, "step 1": 1.0, "step 2": 1.0}


def test_each_group_has_the_fewest_rounds_before_any_has_more_and_a_dear_one_waits():
    bench = BudgetBench(plan(1000.0), ALIKE, {"step 0": 4, "step 1": 2, "step 2": 20})
    assert bench.run() == {"step 0": 4, "step 1": 2, "step 2": 30}
    # a look after round 2 ends the second; the others go to three, and then to their next look
    firsts = [("step 0", 2), ("step 0", 3), ("step 1", 2), ("step 2", 2), ("step 2", 3)]
    looks = [("step 0", 4), *(("step 2", number) for number in (4, 8, 16, 30))]
    assert bench.errands == [*firsts, *looks]
    bench = BudgetBench(plan(66.0), {**ALIKE, "step 0": 9.0}, dict.fromkeys(ALIKE, 3))
    assert bench.run() == dict.fromkeys(ALIKE, 3)
    others = [("step 1", 2), ("step 1", 3), ("step 2", 2), ("step 2", 3)]
    assert bench.errands == [("step 0", 2), *others, ("step 0", 3)]


def test_the_end_of_a_budget_leaves_whole_groups_and_claims():
    # a round of a group takes 2 s; the guess of 4 s a launch is corrected by the first group
    bench = BudgetBench(plan(14.0), ALIKE, dict.fromkeys(ALIKE, 4))
    assert bench.run() == {"step 0": 4, "step 1": 3, "step 2": 0}
    assert sum(ledger.seconds() for ledger in bench.spending.ledgers.values()) <= 14.0
    # a round takes 32 s, and both are known after two: it does not end with one round of each
    for budget, rounds in {100.0: [2, 0], 140.0: [2, 2], 60.0: [0, 0]}.items():
        bench = BudgetBench(plan(budget, groups=2), {"step 0": 16.0, "step 1": 16.0}, {"step 0": 2, "step 1": 2})
        assert [count if count > 1 else 0 for count in bench.run().values()] == rounds


def test_what_is_left_goes_to_the_soonest_look_that_it_holds():
    seconds = {"step 0": 1.0, "step 1": 4.0, "step 2": 1.0}
    bench = BudgetBench(plan(1000.0), seconds, {"step 0": 30, "step 1": 8, "step 2": 16})
    bench.run()
    # from eight rounds to sixteen: 16 s each; from sixteen to thirty: 28 s; from four to eight: 32 s
    assert bench.errands[-4:] == [("step 0", 16), ("step 2", 16), ("step 0", 30), ("step 1", 8)]
    # a round takes 2 s. With five rounds, the intervals would be wider than at the look after four
    for budget, rounds in {8.0: 4, 10.0: 4, 12.0: 6, 15.0: 7, 16.0: 8}.items():
        bench = BudgetBench(plan(budget, groups=1), {"step 0": 1.0}, {"step 0": 8})
        assert bench.run() == {"step 0": rounds}


SECONDS, NEEDS = st.sampled_from([0.5, 1.0, 2.3, 9.0]), st.sampled_from([2, 3, 4, 8, 30])


@pytest.mark.slow
@given(st.floats(5.0, 500.0), st.lists(st.tuples(SECONDS, NEEDS), min_size=1, max_size=4))
def test_a_budget_is_kept_and_what_is_left_of_it_is_too_short_for_what_is_open(budget, groups):
    names = [f"step {number}" for number in range(len(groups))]
    seconds = {name: length for name, (length, _) in zip(names, groups, strict=True)}
    bench = BudgetBench(
        plan(budget, groups=len(groups)), seconds, {name: need for name, (_, need) in zip(names, groups, strict=True)}
    )
    rounds = bench.run()
    spent = sum(ledger.seconds() for ledger in bench.spending.ledgers.values())
    # the cost of a group's first round is only known after it
    assert spent <= budget + max(seconds[name] * 2 for name in names)
    for name, count in rounds.items():
        is_known = count > 1 and math.sqrt(bench.needs[name] / count) <= 1.0
        if count > 2 and not is_known:
            assert count == 30 or budget - spent < max(1, math.ceil(count / 2)) * 2 * seconds[name]


def test_after_the_first_group_the_run_tells_what_the_first_rounds_of_all_groups_take():
    # three groups of two cells with three rounds each: 18 launches of 2 s
    for budget, needed in {1000.0: None, 30.0: 36.0}.items():
        planned, silent = plan(budget), Silent()
        staged(Shelf(), Backstage(cost=lambda _: 2.0), planned, silent, widths=narrow_after_three).run([])
        first = silent.estimates[0]
        assert (first.round_seconds, first.rounds) == (pytest.approx(12.0), 3)
        assert (first.seconds, first.needed, first.launches) == (min(36.0, budget), needed, (budget - 12.0) / 2.0)


def walked(
    shelf: Shelf, planned: Plan, backstage: Backstage, finished: Sequence[Launch] = (), listener: Silent | None = None
) -> list[Launch]:
    return staged(shelf, backstage, planned, listener, widths=narrow_after_three).run(list(finished))


def narrow_after_three(launches: Sequence[Launch]) -> dict[str, float]:
    (name,) = {launch.group for launch in launches}
    rounds = max(launch.round for launch in launches if launch.status is not Status.INTERRUPTED)
    return {name: KNOWN if rounds > 2 else math.inf}


def test_a_run_of_claims_measures_one_group_after_the_other_until_it_is_settled():
    planned, silent = plan(1000.0), Silent()
    launches = staged(Shelf(), Backstage(), planned, silent, widths=narrow_after_three).run([])
    assert [(launch.group, launch.round) for launch in launches] == [
        (group.name, number) for group in planned.groups for number in (1, 2, 3) for _ in group.cells
    ]
    assert len(launches) + silent.skipped == planned.all_launches
    stops = find_stops(planned, RoundLog(planned, launches), narrow_after_three, interrupted=False)
    assert set(stops.values()) == {Stop(StopReason.PRECISION, 3)}
    planned = plan(1000.0)
    vast = planned.groups[0].name

    def widths(launches: Sequence[Launch]) -> dict[str, float]:
        return {**narrow_after_three(launches), vast: 0.0}

    launches = staged(Shelf(), Backstage(), planned, Silent(), widths=widths).run([])
    rounds = {name: max(entry.round for entry in launches if entry.group == name) for name in ALIKE}
    assert rounds == {**dict.fromkeys(ALIKE, 3), vast: 1}


def test_groups_that_a_budget_did_not_reach_say_so_and_time_between_launches_counts():
    planned = plan(1000.0, groups=2)
    first = [
        runs.launch(group="step 0", cell=cell, round=number, role=Role.MEASURE)
        for number in (1, 2, 3)
        for cell in planned.groups[0].cells
    ]
    stops = find_stops(planned, RoundLog(planned, first), narrow_after_three, interrupted=False)
    assert stops == {"step 0": Stop(StopReason.PRECISION, 3), "step 1": Stop(StopReason.BUDGET, 0)}
    bench = BudgetBench(plan(60.0, groups=1), {"step 0": 1.0}, {"step 0": 30})
    spending = GroupBudget(bench.plan, bench.widths, {"step 0": 2}, spent=lambda: 55.0)
    assert bench.spending.next().seconds == 60.0
    assert spending.next().seconds == 5.0


def test_an_interrupted_run_goes_on_where_it_was():
    planned = plan(1000.0)
    for killed_at in (1, 2, 7, 11):
        shelf = Shelf()
        with pytest.raises(KeyboardInterrupt):
            walked(shelf, planned, replace(interrupted_at(killed_at), cost=lambda _: 2.0))
        silent, stage = Silent(), Backstage(cost=lambda _: 2.0)
        walked(shelf, planned, stage, before := shelf.read_launches(), silent)
        # an interrupted launch, whose time isn't known, says nothing about the time of others
        assert silent.estimates[0].seconds > 0.0
        after = shelf.read_launches()
        assert after[: len(before)] == before
        ledger = RoundLog(planned, after)
        assert [ledger.rounds(group) for group in planned.groups] == [3, 3, 3]
        assert sum(launch.status is Status.OK for launch in after) <= 3 * 3 * 2 + 1
