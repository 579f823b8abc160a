"""Side effects of interleaving."""

import math
from dataclasses import replace

import pytest

from harness.analysis.cell_index import lookup
from harness.analysis.interleaving import compare_sequential, describe_interleaving
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.launch import Role, Sample
from tests.factories import cells, in_turns, launch, run

MEMBERS = cells()
OLD, OLD_EAGER, NEW, NEW_EAGER = MEMBERS
TIMES = dict.fromkeys(MEMBERS, 0.01)
RUN = run(MEMBERS, controlled=True)


def describe_turns(launches):
    return describe_interleaving(launches, [])


def compared(times=TIMES, **planted):
    """Return the run's comparisons by their two cells."""
    results = Results(RUN, in_turns(times, **planted))
    values = [value for row in results.tables[0].rows for value in row.values]
    return {(value.compared.cell, value.compared.other): value.compared for value in values if value.compared}


def test_a_side_effect_is_found_and_widens_the_interval_and_withholds_what_is_near_the_margin():
    assert not any(value.bias for value in compared().values())
    by_pair = compared(alone={NEW: 1.1})
    assert {pair for pair, comparison in by_pair.items() if comparison.bias} == {
        pair for pair in by_pair if NEW in pair
    }
    assert 1.1 in by_pair[NEW, OLD].bias.interval
    plain, biased = (compared(alone=by)[NEW, OLD] for by in ({}, {NEW: 1.1}))
    assert plain.ratio.value == biased.ratio.value
    wider = abs(math.log(biased.bias.value))
    for end, sign in (("high", 1.0), ("low", -1.0)):
        before, after = (math.log(getattr(value.ratio.interval, end)) for value in (plain, biased))
        assert after - before == pytest.approx(sign * wider)
    near, far = {**TIMES, NEW: 0.0112}, {**TIMES, NEW: 0.02}
    assert compared(near)[NEW, OLD].verdict is Verdict.SLOWER
    withheld = compared(near, alone={NEW: 1.1})[NEW, OLD]
    assert (withheld.verdict, withheld.settling.is_likely) == (Verdict.UNCLEAR, False)
    assert compared(far, alone={NEW: 1.1})[NEW, OLD].verdict is Verdict.SLOWER


def test_one_round_and_launches_without_a_stretch_alone_tell_nothing():
    assert {value.alone for value in compared(count=1).values()} == {None}
    launches = [replace(turn, alone=()) for turn in in_turns(TIMES)]
    assert compare_sequential([(NEW, OLD)], lookup(RUN, launches)) == [None]
    assert compare_sequential([], lookup(RUN, launches)) == []
    # older runs took these samples at the end of a launch, which compared the machine's states
    older = [replace(turn, follows=()) for turn in in_turns(TIMES)]
    assert compare_sequential([(NEW, OLD)], lookup(RUN, older)) == [None]
    unmeasured = [replace(turn, alone=[Sample(0.0, 1)], follows=[2]) for turn in in_turns(TIMES)]
    assert compare_sequential([(NEW, OLD)], lookup(RUN, unmeasured)) == [None]


def test_the_mean_is_over_rounds_of_the_mean_of_a_rounds_launches():
    def measured(member, number, times, role=Role.MEASURE):
        return launch(member, 0.01, number, role=role, places=[0], alone=[Sample(0.01 * times, 1)], follows=[0])

    launches = [
        *(measured(OLD, 1, 1.0), measured(OLD, 1, 1.21, Role.CONTROL), measured(NEW, 1, 1.0)),
        *(measured(OLD, 2, 1.1), measured(OLD, 2, 1.1, Role.CONTROL), measured(NEW, 2, 1.0)),
    ]
    (bias,) = compare_sequential([(NEW, OLD)], lookup(run([OLD, NEW], controlled=True), launches))
    assert (bias.value, bias.rounds) == (pytest.approx(1.0 / 1.1), 2)


def test_where_others_took_the_cpu_cpu_time_is_set_against_cpu_time():
    shared = {"steady_seconds": 1.0, "steady_cpu_seconds": 0.5}
    shared |= {"steady_own_cpus": 1.0, "steady_own_cpus_busy_seconds": 1.0}
    steps = [Sample(0.1, 5, 0.05)] * 10

    def ratio_alone(stretch):
        fields = {"samples": steps, "places": [0], "alone": [stretch] * 2, "follows": [0, 4]}
        launches = [
            launch(member, number=number, resources=resources, **fields)
            for number in (1, 2)
            for member, resources in ((OLD, {}), (NEW, shared))
        ]
        return compare_sequential([(OLD, NEW)], lookup(run([OLD, NEW]), launches))[0].value

    # of the one that shared, 0.01 s of CPU a step; the other has its 0.02 s
    assert ratio_alone(Sample(0.1, 5, 0.1)) == pytest.approx(0.5)
    # where the CPU time is not told, wall-clock time is set against wall-clock time
    assert ratio_alone(Sample(0.2, 5)) == pytest.approx(1.0)


def test_a_drift_of_the_machine_between_turns_is_no_side_effect():
    turns = in_turns(TIMES, within=0.0005, between=0.0)
    slower = [
        replace(
            entry,
            samples=[replace(x, seconds=x.seconds * 3.0**at) for at, x in enumerate(entry.samples)],
            alone=[replace(x, seconds=x.seconds * 3.0**at) for x, at in zip(entry.alone, entry.follows, strict=True)],
        )
        for entry in turns
    ]
    (plain,), (drifting,) = (compare_sequential([(NEW, OLD)], lookup(RUN, entries)) for entries in (turns, slower))
    assert drifting.value == pytest.approx(plain.value)
    assert drifting.interval.high < 1.003


def test_the_cell_that_used_most_of_the_cpu_between_its_turns_is_told():
    def waited(member, cpu, seconds=10.0):
        return launch(member, places=[0], resources={"between_seconds": seconds, "between_cpu_seconds": cpu})

    launches = [waited(OLD, 0.01), waited(NEW, 0.4), waited(NEW_EAGER, 0.2), waited(OLD_EAGER, 0.0, 0.0)]
    turns = describe_turns(launches).waiting
    assert (turns.cell, turns.share, turns.is_found) == (NEW, pytest.approx(0.04), True)
    assert not describe_turns([waited(OLD, 0.05)]).waiting.is_found
    assert describe_turns([launch(OLD, places=[0])]).waiting is None
