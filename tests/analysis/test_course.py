"""How a run went."""

from dataclasses import replace

from harness.analysis.course import ended, samplings_used
from harness.analysis.disturbance import disturbance
from harness.analysis.lookup import lookup
from harness.model.launch import Sampling
from harness.model.run import Stop, StopReason
from tests.factories import RESOURCES, cell, cells, groups, launch, rounds, run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch"), modes=["graph"]), [0.01] * 4, strict=True))
NOISY = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
FIRST, SECOND = (f"step cpu call={call} dtype=float32" for call in ("fit", "train_on_batch"))


def test_groups_that_ended_alike_are_counted_together():
    members = cells(calls=("fit", "train_on_batch", "predict"), modes=["graph"])
    ends = [Stop(StopReason.PRECISION, 11), Stop(StopReason.PRECISION, 8), Stop(StopReason.BUDGET, 6)]
    stops = {group.name: end for group, end in zip(groups(members), ends, strict=True)}
    found = ended(run(members, stops=stops, asked={"precision": 0.02, "budget_seconds": 600.0}))
    assert [(stop.reason, stop.groups, stop.rounds, stop.early) for stop in found.stops] == [
        (StopReason.PRECISION, 2, [8, 11], 0),
        (StopReason.BUDGET, 1, [6], 8),
    ]


def test_groups_that_have_not_ended_are_counted():
    found = ended(run(TIMES, stops={FIRST: Stop(StopReason.ROUNDS, 5)}))
    assert (found.groups, found.going) == (2, 1)
    assert ended(run(TIMES)).stops == []


def test_without_a_precision_nothing_was_looked_at_early():
    (stop,) = ended(run(TIMES, stops={FIRST: Stop(StopReason.BUDGET, 3)})).stops
    assert stop.early == 0


def measured_for(launches, sampling):
    asked = run(TIMES, asked={"sampling": sampling})
    return [
        (each.warmup_seconds, each.measure_seconds) for each in samplings_used(asked, launches, lookup(asked, launches))
    ]


def test_lengths_that_the_plan_gives():
    assert measured_for(rounds(TIMES), Sampling(warmup_seconds=0.5, measure_seconds=1.0)) == [(0.5, 1.0)]


def test_lengths_that_each_groups_pilot_asked_for():
    launches = [
        replace(each, phases={"warm up": 0.4 if each.group == FIRST else 1.1}) if each.round == 0 else each
        for each in rounds(TIMES, took=4.0)
    ]
    assert [warmup for warmup, _ in measured_for(launches, Sampling())] == [0.4, 1.1]


def test_one_length_of_the_plan_and_one_of_the_pilots():
    assert set(measured_for(rounds(TIMES), Sampling(warmup_seconds=2.0))) == {(2.0, 0.25)}


def test_without_a_number_no_length_is_known():
    assert measured_for([], Sampling()) == []


def test_a_disturbed_round_whose_repetition_counts():
    launches = [*rounds(TIMES, count=2, resources=RESOURCES)]
    launches[-1] = replace(launches[-1], resources=NOISY)
    again = [replace(each, attempt=1, resources=RESOURCES) for each in launches if each.round == 2]
    found = disturbance(run(TIMES), [*launches, *(each for each in again if each.group == SECOND)])
    assert (found.told, found.rounds, found.repeated) == (True, 5, 1)
    (each,) = found.disturbed
    assert (each.group, each.round, each.repeated) == (SECOND, 2, True)
    assert each.reason == f"{launches[-1].cell}: other processes used 0.61 of its CPUs"


def test_a_disturbed_round_that_counts():
    launches = [replace(each, resources=NOISY) for each in rounds(TIMES, count=2)]
    found = disturbance(run(TIMES), launches)
    assert (len(found.disturbed), found.rounds, found.repeated) == (4, 4, 0)


def test_a_disturbed_pilot_disturbs_nothing():
    assert not disturbance(run(TIMES), [launch(cell(), number=0, resources=NOISY)]).disturbed


def test_old_launches_cannot_tell():
    assert not disturbance(run(TIMES), rounds(TIMES)).told
    assert disturbance(run(TIMES), rounds(TIMES, resources=RESOURCES)).told
