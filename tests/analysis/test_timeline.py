"""How a run went: its ends, its lengths, and its launches in order of time."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.timeline import describe_ends
from harness.model.launch import Role, Sampling, Status
from harness.model.run import Stop, StopReason
from tests.factories import RESOURCES, broken, cell, cells, groups, launch, rounds, run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch"), modes=["graph"]), [0.01] * 4, strict=True))
NOISY = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
FIRST = "step cpu call=fit dtype=float32"


def test_groups_that_ended_alike_are_counted_together():
    members = cells(calls=("fit", "train_on_batch", "predict"), modes=["graph"])
    ends = [Stop(StopReason.PRECISION, 11), Stop(StopReason.PRECISION, 8), Stop(StopReason.BUDGET, 5)]
    stops = {group.name: end for group, end in zip(groups(members), ends, strict=True)}
    ended_groups = describe_ends(run(members, stops=stops, asked={"precision": 0.02, "budget_seconds": 600.0}))
    assert [(stop.reason, stop.groups, stop.rounds, stop.missed_check) for stop in ended_groups.stops] == [
        (StopReason.PRECISION, 2, [8, 11], None),
        (StopReason.BUDGET, 1, [5], None),
    ]


def measured_for(launches, sampling):
    planned = run(TIMES, asked={"sampling": sampling})
    return [(sampling.warmup_seconds, sampling.measure_seconds) for sampling in Results(planned, launches).samplings]


def test_lengths_are_those_of_the_plan_or_those_that_each_groups_pilot_asked_for():
    launches = [
        replace(entry, phases={"warm up": 0.4 if entry.group == FIRST else 1.1}) if entry.round == 0 else entry
        for entry in rounds(TIMES, took=4.0)
    ]
    assert measured_for(rounds(TIMES), Sampling(warmup_seconds=0.5, measure_seconds=1.0)) == [(0.5, 1.0)]
    assert [warmup for warmup, _ in measured_for(launches, Sampling())] == [0.4, 1.1]
    assert set(measured_for(rounds(TIMES), Sampling(warmup_seconds=2.0))) == {(2.0, 0.25)}
    assert measured_for([], Sampling()) == []


def moments(launches, planned=None):
    results = Results(planned or run([cell()]), launches)
    (table,) = results.tables
    return results.timeline(table)


def at(minute, seconds=0.01, number=1, **changes):
    return launch(cell(), seconds, number, started=f"2026-11-21T04:{minute:02}:00Z", **changes)


def test_launches_come_in_the_order_in_which_they_began():
    moments_ = moments([at(9, 0.04, 2), at(3, 0.01, 1), at(0, 0.01, 0), broken(cell(), Status.FAILED, 3)])
    # pilots and what gave no number are left out, and each is set against the mean of its cell
    assert [(moment.place, moment.launch.round) for moment in moments_] == [(1, 1), (2, 2)]
    assert [moment.factor for moment in moments_] == pytest.approx([0.5, 2.0])
    assert moments_[0].mean == moments_[1].mean
    # what disturbed a launch, whether it counts, and the control
    moments_ = moments([at(1, resources=NOISY), at(2, attempt=1, resources=RESOURCES)])
    assert [(moment.counted, moment.has_interference) for moment in moments_] == [(False, True), (True, False)]
    moments_ = moments([at(1), replace(at(2), role=Role.CONTROL)], run([cell()], controlled=True))
    assert [moment.launch.role for moment in moments_] == [Role.MEASURE, Role.CONTROL]
