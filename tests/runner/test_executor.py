"""The whole walk with a backend that answers at once: no clock, no process."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from harness.analysis.rounds import select_counted
from harness.model.environment import Requirement
from harness.model.launch import LONG, Job, Launch, Outcome, Role, Sample, Sampling, Status
from harness.model.run import Plan
from tests import runs
from tests.runner.stage import Answered, Backstage, Shelf, Silent, interrupted_at, last_attempt, staged, walk


def plan(rounds: int = 2, groups: int = 1) -> Plan:
    """Return a plan that leaves its lengths to the pilot, as users' do."""
    return replace(runs.plan(rounds, groups), sampling=Sampling())


BROKEN = [status for status in Status if status not in {Status.OK, Status.INTERRUPTED}]


def test_a_launch_that_breaks_says_what_to_do(snapshot):
    outcomes = {status.value: Outcome(status) for status in [Status.OK, *BROKEN]}
    outcomes["missing module"] = Outcome(Status.FAILED, error="ModuleNotFoundError: No module named 'some.module'")
    outcomes["missing module in time"] = Outcome(Status.TIMEOUT, error="No module named 'some.module'")
    outcomes["lost GPU"] = Outcome(Status.FAILED, resources={"gpu_lost": 1.0})
    advice = {}
    for case, outcome in outcomes.items():
        launches = walk(Shelf(), Backstage(lambda *_, outcome=outcome: outcome), plan(rounds=0))
        (advice[case],) = {launch.advice.replace(launch.cell.environment, "ENVIRONMENT") for launch in launches}
    assert advice == snapshot


def test_a_cell_that_times_no_step_is_launched_once_unless_a_phase_of_it_is_compared():
    shelf = Shelf()

    def answer(_: int, job: Job) -> Outcome:
        if job.cell.environment == "new":
            return Outcome(Status.OK, observations={"traces": 3})
        return Outcome(Status.OK, samples=[Sample(1, 1)])

    launches = walk(shelf, Backstage(answer), plan(rounds=3))
    (only,) = [launch for launch in launches if launch.cell.environment == "new"]
    assert (only.role, only.status) == (Role.PILOT, Status.OK)
    assert len([launch for launch in launches if launch.cell.environment == "old"]) == 4
    assert len(walk(shelf, Backstage(answer), plan(rounds=3), shelf.read_launches())) == len(launches)
    shelf = Shelf()

    def answer(_: int, job: Job) -> Outcome:
        phases = {"load": 1.0} if job.cell.environment == "old" else {"save": 1.0}
        return Outcome(Status.OK, observations={"traces": 3}, phases=phases)

    planned = plan(rounds=3)
    compared = replace(planned, groups=[replace(group, of=["load"]) for group in planned.groups])
    launches = walk(shelf, Backstage(answer), compared)
    assert [launch.round for launch in launches if launch.cell.environment == "old"] == [0, 1, 2, 3]
    assert [launch.round for launch in launches if launch.cell.environment == "new"] == [0]
    assert {launch.round for launch in select_counted(compared, launches)} == {1, 2, 3}
    assert len(walk(shelf, Backstage(answer), compared, shelf.read_launches())) == len(launches)


def test_one_failure_in_a_round_is_forjob_and_two_in_a_row_are_not():
    def answer(_: int, job: Job) -> Outcome:
        pilot = job.sampling == LONG
        return Outcome(Status.OK if pilot or job.cell.environment == "old" else Status.FAILED)

    launches = walk(Shelf(), Backstage(answer), plan(rounds=5))
    assert len([launch for launch in launches if launch.cell.environment == "new"]) == 1 + 2


def test_a_resumed_run_does_the_interrupted_round_again_whole_and_the_rest_once():
    planned = plan(rounds=2, groups=2)
    for killed_at in range(1, 13):
        shelf = Shelf()
        with pytest.raises(KeyboardInterrupt):
            walk(shelf, interrupted_at(killed_at), planned)
        before = shelf.read_launches()
        assert [launch.status for launch in before] == [Status.OK] * (killed_at - 1) + [Status.INTERRUPTED]
        after = walk(shelf, Backstage(), planned, before)
        assert after[: len(before)] == before
        assert shelf.launches == after
        for group in planned.groups:
            for number in range(3):
                last = last_attempt(after, group, number)
                assert {launch.cell for launch in last} == set(group.cells)
                assert all(launch.status is Status.OK for launch in last)
        assert walk(shelf, Backstage(), planned, after) == after


def with_control(planned: Plan) -> Plan:
    return replace(planned, groups=[replace(group, control=group.cells[0]) for group in planned.groups])


def test_a_control_comes_twice_a_round_and_says_once_that_it_only_observes():
    planned = with_control(plan(rounds=2, groups=2))
    launches = walk(Shelf(), Backstage(), planned)
    for group in planned.groups:
        for number in range(3):
            launched = [
                (launch.cell, launch.role)
                for launch in launches
                if (launch.group, launch.round) == (group.name, number)
            ]
            roles = [Role.PILOT] * 3 if number == 0 else [Role.CONTROL, Role.MEASURE, Role.MEASURE]
            assert sorted(role for _, role in launched) == sorted(roles)
            assert [cell for cell, _ in launched].count(group.cells[0]) == 2
    planned = with_control(plan(rounds=2, groups=2))
    silent = Silent()
    backstage = Backstage(lambda _, job: Outcome(Status.OK, observations={"traces": 3}))
    launches = staged(Shelf(), backstage, planned, silent).run([])
    assert [launch.cell for launch in launches].count(planned.groups[0].cells[0]) == 1
    assert len(launches) == len(planned.cells)
    assert len(launches) + silent.skipped == planned.all_launches
    # ... and a run that goes on finds the pilot complete
    assert staged(Shelf(), backstage, planned, silent).run(launches) == launches


DISTURBED = {
    "steady_seconds": 1.0,
    "steady_cpu_seconds": 0.5,
    "steady_own_cpus": 1.0,
    "steady_own_cpus_busy_seconds": 1.0,
}


def attempts(launches: Sequence[Launch], rounds: int) -> dict[int, int]:
    return {number: 1 + max(x.attempt for x in launches if x.round == number) for number in range(rounds + 1)}


def test_a_disturbed_round_is_repeated_whole_and_at_most_one_in_five_is():
    bad = {1, 2, 6, 7, 11}
    folder_rounds = iter([0, 1, 1, *range(2, 7), 6, *range(7, 12), 11])
    of_launch = [number for number in folder_rounds for _ in range(2)]

    def answer(number: int, _: Job) -> Outcome:
        resources = DISTURBED if of_launch[number - 1] in bad else {}
        return Outcome(Status.OK, samples=[Sample(1.0, 100)], resources=resources)

    launches = walk(Shelf(), Backstage(answer), plan(rounds=11))
    assert {number for number, count in attempts(launches, 11).items() if count == 2} == {1, 6, 11}
    assert all(len([x for x in launches if (x.round, x.attempt) == (1, attempt)]) == 2 for attempt in (0, 1))


def always_disturbed(_: int, __: Job) -> Outcome:
    return Outcome(Status.OK, samples=[Sample(1.0, 100)], resources=DISTURBED)


def test_which_disturbed_rounds_are_repeated():
    launches = walk(Shelf(), Backstage(always_disturbed), plan(rounds=11))
    assert attempts(launches, 11) == {0: 1, 1: 2, **dict.fromkeys(range(2, 12), 1)}
    # a pilot and nine rounds of two launches take 40 s
    backstage = Backstage(always_disturbed, cost=lambda _: 2.0)
    launches = walk(Shelf(), backstage, replace(plan(rounds=9), budget_seconds=40.0))
    assert attempts(launches, 9) == dict.fromkeys(range(10), 1)
    assert attempts(walk(Shelf(), Backstage(always_disturbed), plan(rounds=1)), 1) == {0: 1, 1: 1}


def test_a_cell_without_another_one_to_compare_with_has_no_control():
    def answer(_: int, job: Job) -> Outcome:
        is_new = job.cell.environment == "new"
        return Outcome(Status.FAILED if is_new else Status.OK, samples=[] if is_new else [Sample(1.0, 100)])

    launches = walk(Shelf(), Backstage(answer), with_control(plan(rounds=2)))
    assert [launch.role for launch in launches if launch.round] == [Role.MEASURE] * 2


def test_groups_come_in_another_order_in_each_round_and_in_the_same_one_when_resumed():
    planned = plan(rounds=12, groups=3)
    launches = walk(Shelf(), Backstage(), planned)

    def orders(of: Sequence[Launch]) -> list[tuple[str, ...]]:
        return [tuple(dict.fromkeys(x.group for x in of if x.round == number)) for number in range(13)]

    pilot, *rounds = orders(launches)
    assert pilot == tuple(group.name for group in planned.groups)
    assert len(set(rounds)) > 1
    early = [launch for launch in launches if launch.round < 5]
    assert orders(walk(Shelf(), Backstage(), planned, early)) == [pilot, *rounds]


def test_the_pilot_sets_how_long_all_launches_of_a_group_measure():
    backstage = Backstage(
        lambda _, job: Outcome(Status.OK, phases={"warm up": 0.3}, samples=[Sample(0.05, 5)] * 30, calls_per_sample=5)
    )
    walk(Shelf(), backstage, plan(rounds=2, groups=2))
    pilots, rest = backstage.jobs[:4], backstage.jobs[4:]
    assert [job.sampling for job in pilots] == [LONG] * 4
    # it does not scatter, so more of it sharpens nothing
    samplings = {(at.warmup_seconds, at.measure_seconds, at.calls_per_sample) for at in (job.sampling for job in rest)}
    assert samplings == {(0.3, 0.25, 5)}


def test_a_group_that_is_precise_enough_gets_no_more_rounds_and_the_others_do():
    planned = replace(plan(rounds=12, groups=2), precision=0.02)
    narrow, wide = (group.name for group in planned.groups)

    def widths(launches: Sequence[Launch]) -> dict[str, float]:
        rounds = max(launch.round for launch in launches)
        return {narrow: 0.01 if rounds >= 9 else math.inf, wide: 0.5}

    silent = Silent()
    made = staged(Shelf(), Backstage(), planned, silent, widths=widths).run([])
    assert max(launch.round for launch in made if launch.group == narrow) == 9
    assert max(launch.round for launch in made if launch.group == wide) == 12
    assert silent.skipped == 3 * 2


class Outside:
    def __init__(self) -> None:
        self.around: list[str] = []

    @contextmanager
    def __call__(self) -> Iterator["Outside"]:
        self.around.append("begun")
        try:
            yield self
        finally:
            self.around.append("ended")

    def resources(self, reported: Mapping[str, float]) -> dict[str, float]:
        return {"gpu_samples": reported["steady_started"] + 1}


def test_what_was_seen_from_outside_stands_with_what_the_worker_told():
    watch = Outside()

    def answer(_: int, job: Job) -> Outcome:
        assert watch.around[-1] == "begun"
        return Outcome(Status.OK, resources={"steady_started": 4.0})

    launches = staged(Shelf(), Backstage(answer), plan(rounds=1), watch=watch).run([])
    assert watch.around == ["begun", "ended"] * len(launches)
    assert {tuple(launch.resources.items()) for launch in launches} == {(("steady_started", 4.0), ("gpu_samples", 5.0))}
    with pytest.raises(KeyboardInterrupt):
        staged(Shelf(), interrupted_at(1), plan(rounds=1), watch=watch).run([])
    assert watch.around == ["begun", "ended"] * (len(launches) + 1)


def test_a_run_without_pilots_begins_with_its_first_round_and_gives_up_what_breaks_in_it():
    planned = replace(runs.plan(3, 1), sampling=Sampling(warmup_seconds=0.1, measure_seconds=0.1), piloted=False)
    broken = planned.cells[1]

    def answer(_: int, job: Job) -> Outcome:
        if job.cell == broken:
            return Outcome(Status.FAILED, error="it does not import")
        return Outcome(Status.OK, samples=[Sample(1.0, 100)], calls_per_sample=7)

    launches = walk(Shelf(), Backstage(answer), planned)
    assert {launch.role for launch in launches} == {Role.MEASURE}
    assert [launch.round for launch in launches if launch.cell == planned.cells[0]] == [1, 2, 3]
    assert [launch.round for launch in launches if launch.cell == broken] == [1]


def test_a_launch_is_in_the_runs_folder_before_what_it_left_is_removed(folder):
    counts: list[int] = []

    class Slow(Backstage):
        """Counts, when a launch's container would be removed, what the run's folder has."""

        @contextmanager
        def hold(self, requirement: Requirement, job: Job) -> Iterator[Answered]:
            with super().hold(requirement, job) as held:
                yield held
            counts.append(len(folder.read_launches()))

    launches = walk(folder, Slow(), plan(rounds=1))
    assert counts == list(range(1, len(launches) + 1))
