"""How the budget of a run is spent on machines that are fast, slow and very slow: on a simulated clock."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.launch import CPU_QUOTA, Job, Launch, Outcome, Protocol, Role, Sample, Sampling, Status
from harness.model.run import Group, Plan, Stop, StopReason
from harness.model.scenario import Cell
from harness.runner.rounds import RoundLog
from harness.runner.schedule import RunEstimate, limit_to_budget, round_seconds
from harness.runner.stop_rules import find_stops
from tests import runs
from tests.runner.stage import Backstage, Shelf, Silent, staged

#: What a launch takes until it measures, in seconds.
MACHINES = {"fast": 1.0, "slow": 2.3, "very slow": 12.0}

#: By a group's place, how many times as long its launches take there.
ALIKE: Mapping[str, float] = {}
ONE_DEAR: Mapping[str, float] = {"1": 10.0}
FIRST_DEAR: Mapping[str, float] = {"0": 4.0, "1": 2.0}


def plan(budget: float | None, *, is_wish: bool, rounds: int = 8, groups: int = 3) -> Plan:
    """Groups of four cells, of which the first is the control of the first group alone."""
    planned = [
        replace(group, cells=_cells(group), control=_cells(group)[0], controlled=not place)
        for place, group in enumerate(runs.plan(rounds, groups).groups)
    ]
    return replace(runs.plan(rounds), groups=planned, budget_seconds=budget, budget_is_wish=is_wish)


def _cells(group: Group) -> list[Cell]:
    return [replace(cell, axes={**cell.axes, "api": api}) for api in ("keras", "tf.keras") for cell in group.cells]


PAIRS = {
    group.name: [(other, group.cells[0]) for other in group.cells[1:]] for group in plan(None, is_wish=True).groups
}


@dataclass
class ScheduledMachine:
    """A run on a machine whose launches take `start` seconds, and so many times as long in some groups.

    A CPU quota allows them `quota` of a CPU.
    """

    start: float
    dear: Mapping[str, float] = field(default_factory=dict)
    quota: float = 1.0

    def cost(self, job: Job) -> float:
        sampling = job.sampling
        lengths = (sampling.warmup_seconds or 0.0) + (sampling.measure_seconds or 0.0)
        # lengths are by the clock
        return self.start * self.dear.get(job.cell.axes["mode"], 1.0) / self.quota + lengths

    def backstage(self, until: int | None = None) -> Backstage:
        def answer(count: int, job: Job) -> Outcome:
            if count == until:
                raise KeyboardInterrupt
            sampling = job.sampling
            sample = Sample(sampling.measure_seconds or 0.0, 100)
            warmup = sampling.warmup_seconds or 0.0
            return Outcome(
                Status.OK,
                phases={"warm up": warmup},
                samples=[sample],
                calls_per_sample=7,
                resources={CPU_QUOTA: self.quota, "steady_own_cpus": 1.0},
            )

        return Backstage(answer, cost=self.cost)

    def run(self, planned: Plan) -> "Ended":
        silent, backstage = Silent(), self.backstage()
        launches = staged(Shelf(), backstage, planned, silent, pairs=PAIRS).run([])
        assert len(launches) + silent.skipped == planned.all_launches
        return Ended(planned, launches, silent, backstage.clock.now)


def _describe(estimate: RunEstimate) -> str:
    needed = f", needs {estimate.needed:.0f} s" if estimate.needed else ""
    without = f", without {len(estimate.left_out)} cells" if estimate.left_out else ""
    expected = f"{estimate.rounds} rounds of {estimate.round_seconds:.1f} s in {estimate.seconds:.0f} s"
    return f"{expected}, {estimate.launches} launches{needed}{without}"


@dataclass
class Ended:
    plan: Plan
    launches: list[Launch]
    listener: Silent
    seconds: float

    @property
    def rounds(self) -> list[int]:
        """How many rounds each group has, of the cells that were chosen."""
        held = limit_to_budget(self.plan, self.launches, PAIRS)
        ledger = RoundLog(held, self.launches)
        by_name = {group.name: ledger.rounds(group) for group in held.groups}
        return [by_name.get(group.name, 0) for group in self.plan.groups]

    def __str__(self) -> str:
        first, second = self.listener.estimates[0], self.listener.estimates[min(1, len(self.listener.estimates) - 1)]
        return f"{self.rounds} in {self.seconds:.0f} s; {_describe(first)}; {_describe(second)}"

    @property
    def order(self) -> list[tuple[str, int]]:
        return list(dict.fromkeys((launch.group[-1], launch.round) for launch in self.launches if launch.round))


def test_how_a_budget_is_spent_on_each_machine(snapshot):
    """Rounds of each group, seconds, and what was expected after the pilots and after the first round."""
    runs_by_machine: dict[str, dict[str, str]] = {}
    # whatever groups cost, they are measured in the order of the header
    machines = (
        ("fast", ALIKE),
        ("slow", ONE_DEAR),
        ("slow", FIRST_DEAR),
        ("very slow", ALIKE),
        ("very slow", FIRST_DEAR),
    )
    for machine, dear in machines:
        case = f"{machine}{f', dear: {[*dear]}' if dear else ''}"
        budgets = [(120.0, True), (600.0, True), (30.0, False), (60.0, False), (120.0, False), (240.0, False)]
        runs_by_machine[case] = {
            f"{budget:.0f} s{' of a suite' if is_wish else ''}": str(
                ScheduledMachine(MACHINES[machine], dear).run(plan(budget, is_wish=is_wish, rounds=6))
            )
            for budget, is_wish in budgets
        }
    assert runs_by_machine == snapshot


GIVEN_MACHINES = st.builds(ScheduledMachine, st.floats(0.5, 15.0), st.sampled_from([ALIKE, ONE_DEAR, FIRST_DEAR]))


@given(GIVEN_MACHINES, st.floats(60.0, 300.0))
@settings(max_examples=12)
def test_a_suite_has_the_rounds_of_a_verdict_on_every_machine_in_the_time_that_was_announced(machine, budget):
    finished = machine.run(plan(budget, is_wish=True))
    assert min(finished.rounds) >= 3
    first, second, *_ = finished.listener.estimates
    assert finished.seconds == pytest.approx(second.seconds, rel=0.2)
    assert second.rounds == min(finished.rounds)
    assert second.needed is None
    if machine.dear is ALIKE:  # the pilots tell already how long it takes
        assert finished.seconds == pytest.approx(first.seconds, rel=0.2)


def test_a_suites_budget_is_for_whole_cpus_and_a_typed_one_for_what_a_quota_leaves_of_them():
    entire, half = ScheduledMachine(1.0), ScheduledMachine(1.0, quota=0.5)
    finished = entire.run(plan(170.0, is_wish=True))
    assert 3 < min(finished.rounds) < finished.plan.rounds
    assert half.run(plan(170.0, is_wish=True)).rounds == finished.rounds
    assert min(half.run(plan(170.0, is_wish=False)).rounds) < min(finished.rounds)


def test_with_a_precision_the_time_until_the_first_look_at_verdicts_is_announced():
    machine, silent = ScheduledMachine(MACHINES["slow"]), Silent()
    planned, backstage = replace(plan(None, is_wish=False, rounds=100), precision=0.02), machine.backstage()

    def clear_after_three(launches: Sequence[Launch]) -> dict[str, float]:
        rounds = max(launch.round for launch in launches)
        return {group.name: 0.0 if rounds > 2 else math.inf for group in planned.groups}

    staged(Shelf(), backstage, planned, silent, widths=clear_after_three).run([])
    for estimate in silent.estimates[:2]:
        assert (estimate.rounds, estimate.seconds) == (3, pytest.approx(backstage.clock.now, rel=0.2))


def test_a_budget_that_ended_is_no_error_and_a_wish_that_holds_nothing_is_exceeded():
    planned = replace(plan(10.0, is_wish=False), rounds=1)
    for status in (Status.OK, Status.FAILED):
        backstage = Backstage(lambda _, job, status=status: Outcome(status), cost=ScheduledMachine(20.0).cost)
        launches = staged(Shelf(), backstage, planned, Silent(), pairs=PAIRS).run([])
        limit_to_budget(planned, launches, PAIRS)
    finished = ScheduledMachine(MACHINES["slow"], ONE_DEAR).run(plan(120.0, is_wish=True))
    # the first round tells what a round of each costs; the first group has the control, so the third is the cheapest
    assert finished.order[3:] == [("2", 2), ("2", 3), ("0", 2), ("0", 3), ("1", 2), ("1", 3)]
    assert finished.rounds == [3, 3, 3]


@given(GIVEN_MACHINES, st.floats(20.0, 700.0))
@settings(max_examples=12)
def test_a_budget_that_was_passed_is_kept_or_the_one_that_is_needed_is_told(machine, budget):
    finished = machine.run(plan(budget, is_wish=False))
    first, *_ = finished.listener.estimates
    if finished.seconds > 1.1 * budget:  # one round of one pair, since a run without a result is worth nothing
        assert first.needed
        assert max(finished.rounds) == 1
        assert len({launch.cell for launch in finished.launches if launch.round}) == 2
    if 0 < max(finished.rounds) < 3 or 0 in finished.rounds:
        assert any(estimate.needed for estimate in finished.listener.estimates)
    assert max(finished.rounds) >= 1


def test_the_budget_that_is_needed_is_enough():
    machine = ScheduledMachine(MACHINES["slow"])
    short = machine.run(plan(60.0, is_wish=False))
    needed = short.listener.estimates[0].needed
    assert needed
    assert min(machine.run(plan(needed, is_wish=False)).rounds) == 3


def test_of_a_group_that_the_budget_does_not_hold_the_first_comparisons_are_measured():
    # three rounds of the first group's five launches are 58 s, and of two launches 23 s
    finished = ScheduledMachine(MACHINES["slow"]).run(plan(90.0, is_wish=False))
    first, second, _ = finished.plan.groups
    measured = {launch.cell for launch in finished.launches if launch.round}
    assert measured == {*first.cells, *second.cells[:2]}
    assert {*finished.listener.estimates[0].left_out} == {*finished.plan.cells} - measured
    held = limit_to_budget(finished.plan, finished.launches, PAIRS)
    stops = find_stops(held, RoundLog(held, finished.launches), lambda _: {}, interrupted=False)
    assert stops == {first.name: Stop(StopReason.BUDGET, 3), second.name: Stop(StopReason.BUDGET, 3)}


def test_an_interrupted_run_goes_on_as_if_it_had_not_been():
    machine = ScheduledMachine(MACHINES["slow"], ONE_DEAR)
    for is_wish in (True, False):
        planned = plan(300.0, is_wish=is_wish)
        uninterrupted = machine.run(planned)
        for until in (1, 3, 6, 9, 17, 23):
            shelf = Shelf()
            with pytest.raises(KeyboardInterrupt):
                staged(shelf, machine.backstage(until), planned, pairs=PAIRS).run([])
            before = shelf.read_launches()
            after = staged(shelf, machine.backstage(), planned, pairs=PAIRS).run(before)
            assert after[: len(before)] == before
            assert Ended(planned, after, Silent(), 0.0).rounds == uninterrupted.rounds


def test_without_a_budget_round_r_of_every_group_comes_before_the_next_of_any():
    finished = ScheduledMachine(MACHINES["very slow"], ONE_DEAR).run(plan(None, is_wish=False, rounds=4))
    assert [number for _, number in finished.order] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert finished.listener.estimates[-1].rounds == 4


def test_a_launch_without_a_warm_up_takes_as_long_as_its_pilot():
    """A plain script runs once per launch, however long it takes."""
    planned = plan(None, is_wish=False, groups=1)
    (group,) = planned.groups
    pilots = [
        runs.launch(cell=cell, group=group.name, round=0, role=Role.PILOT, seconds=3.5, samples=[Sample(3.0, 1)])
        for cell in group.cells
    ]
    assert round_seconds(planned, RoundLog(planned, pilots), group) == pytest.approx(3.5 * len(group.slots))
    # one that ended, by its clocks, before its steps did, started at once: its four calls are what it takes
    hasty = [replace(pilot, seconds=2.0, phases={"warm up": 1.0}) for pilot in pilots]
    assert round_seconds(planned, RoundLog(planned, hasty), group) == pytest.approx(5 * 3.0 * len(group.slots))
    # where the source says how many calls are made, no time is planned for them
    quick = [replace(pilot, seconds=2.0, samples=[Sample(0.1, 1)]) for pilot in hasty]
    document = replace(planned, sampling=Sampling(protocol=Protocol.DOCUMENT))
    assert round_seconds(document, RoundLog(document, quick), group) == pytest.approx(
        (0.9 + 5 * 0.1) * len(group.slots)
    )
