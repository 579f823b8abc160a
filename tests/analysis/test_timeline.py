"""How a run went: its ends and its lengths."""

from dataclasses import replace

from harness.analysis.looks import describe_ends
from harness.analysis.results import Results
from harness.model.launch import Sampling
from harness.model.run import Stop, StopReason
from tests.factories import cells, groups, rounds, run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch"), modes=["graph"]), [0.01] * 4, strict=True))
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
