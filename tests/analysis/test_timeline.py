"""How a run went: its ends, its lengths, and its launches in order of time."""

from dataclasses import replace

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
    found = describe_ends(run(members, stops=stops, asked={"precision": 0.02, "budget_seconds": 600.0}))
    assert [(stop.reason, stop.groups, stop.rounds, stop.early) for stop in found.stops] == [
        (StopReason.PRECISION, 2, [8, 11], 0),
        (StopReason.BUDGET, 1, [5], 0),
    ]


def test_groups_that_have_not_ended_are_counted():
    found = describe_ends(run(TIMES, stops={FIRST: Stop(StopReason.ROUNDS, 5)}))
    assert (found.groups, found.going) == (2, 1)
    assert describe_ends(run(TIMES)).stops == []


def test_without_a_precision_nothing_was_looked_at_early():
    (stop,) = describe_ends(run(TIMES, stops={FIRST: Stop(StopReason.BUDGET, 3)})).stops
    assert stop.early == 0


def measured_for(launches, sampling):
    asked = run(TIMES, asked={"sampling": sampling})
    return [(sampling.warmup_seconds, sampling.measure_seconds) for sampling in Results(asked, launches).samplings]


def test_lengths_that_the_plan_gives():
    assert measured_for(rounds(TIMES), Sampling(warmup_seconds=0.5, measure_seconds=1.0)) == [(0.5, 1.0)]


def test_lengths_that_each_groups_pilot_asked_for():
    launches = [
        replace(entry, phases={"warm up": 0.4 if entry.group == FIRST else 1.1}) if entry.round == 0 else entry
        for entry in rounds(TIMES, took=4.0)
    ]
    assert [warmup for warmup, _ in measured_for(launches, Sampling())] == [0.4, 1.1]


def test_one_length_of_the_plan_and_one_of_the_pilots():
    assert set(measured_for(rounds(TIMES), Sampling(warmup_seconds=2.0))) == {(2.0, 0.25)}


def test_without_a_number_no_length_is_known():
    assert measured_for([], Sampling()) == []


def moments(launches, asked=None):
    results = Results(asked or run([cell()]), launches)
    (table,) = results.tables
    return results.timeline(table)


def at(minute, seconds=0.01, number=1, **changes):
    return launch(cell(), seconds, number, started=f"2026-11-21T04:{minute:02}:00Z", **changes)


def test_launches_come_in_the_order_in_which_they_began():
    made = moments([at(9, 0.02, 2), at(3, 0.01, 1)])
    assert [(entry.place, entry.launch.round) for entry in made] == [(1, 1), (2, 2)]


def test_a_launch_is_set_against_the_mean_of_its_cell():
    first, second = moments([at(1, 0.01, 1), at(2, 0.04, 2)])
    assert (first.mean, second.mean) == (second.mean, first.mean)
    assert round(first.factor, 9) == 0.5
    assert round(second.factor, 9) == 2.0


def test_pilots_and_what_gave_no_number_are_left_out():
    made = moments([at(0, 0.01, 0), at(1), broken(cell(), Status.FAILED, 2)])
    assert [entry.launch.round for entry in made] == [1]


def test_what_disturbed_a_launch_and_whether_it_counts_are_told():
    made = moments([at(1, resources=NOISY), at(2, attempt=1, resources=RESOURCES)])
    assert [(entry.counts, entry.disturbed) for entry in made] == [(False, True), (True, False)]


def test_the_control_is_among_them():
    asked = run([cell()], controlled=True)
    made = moments([at(1), replace(at(2), role=Role.CONTROL)], asked)
    assert [entry.launch.role for entry in made] == [Role.MEASURE, Role.CONTROL]
