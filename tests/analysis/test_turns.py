"""What launches that take turns do to one another."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.cell_index import lookup
from harness.analysis.results import Results
from harness.analysis.turns import alone, is_bias, turns
from harness.analysis.verdicts import Verdict
from harness.model.launch import Role, Sample
from tests.factories import broken, cell, cells, in_turns, launch, rounds, run

MARGIN = math.log(1.03)
MEMBERS = cells()
OLD, OLD_EAGER, NEW, NEW_EAGER = MEMBERS
TIMES = dict.fromkeys(MEMBERS, 0.01)
RUN = run(MEMBERS, controlled=True)


def found(launches):
    return turns(launches, [], MARGIN)


def compared(times=TIMES, **planted):
    """The run's comparisons by their two cells."""
    results = Results(RUN, in_turns(times, **planted))
    values = [value for row in results.tables[0].rows for value in row.values]
    return {(value.compared.cell, value.compared.other): value.compared for value in values if value.compared}


def test_launches_one_after_the_other_take_no_turns():
    assert found(rounds(TIMES)) is None
    assert Results(RUN, rounds(TIMES)).turns is None


def test_how_many_turns_there_were_and_how_many_launches_in_them():
    told = found(in_turns(TIMES, 3, turns=12))
    assert (told.launches, told.others, told.turns, told.alive, told.blocks) == (15, 0, [12], 5, 1)


def test_launches_that_took_none_blocks_and_unequal_numbers_of_turns_are_counted():
    made = in_turns(TIMES, 1, turns=12)
    short = [replace(each, samples=each.samples[:9], places=each.places[:9]) for each in made[:1]]
    other = [replace(each, block=1) for each in in_turns(dict.fromkeys((OLD, NEW), 0.01), 1, turns=12)]
    told = found([*short, *made[1:], *other, launch(cell("tf2.1"))])
    assert (told.launches, told.others, told.turns, told.alive, told.blocks) == (8, 1, [9, 12], 5, 2)


# Alone against turns.


def test_without_a_bias_alone_is_what_turns_are():
    assert not any(each.bias for each in compared().values())


def test_a_cell_that_is_slower_alone_is_found_in_its_comparisons_and_in_no_other():
    by_pair = compared(alone={NEW: 1.1})
    assert {pair for pair, each in by_pair.items() if each.bias} == {pair for pair in by_pair if NEW in pair}
    assert 1.1 in by_pair[NEW, OLD].bias.interval


def test_what_is_found_widens_the_interval_on_both_sides_by_as_much():
    plain, biased = (compared(alone=by)[NEW, OLD] for by in ({}, {NEW: 1.1}))
    assert plain.ratio.value == biased.ratio.value
    wider = abs(math.log(biased.bias.value))
    for end, sign in (("high", 1.0), ("low", -1.0)):
        before, after = (math.log(getattr(each.ratio.interval, end)) for each in (plain, biased))
        assert after - before == pytest.approx(sign * wider)


def test_a_verdict_nearer_to_the_margin_than_the_bias_is_withheld_and_one_beyond_it_stands():
    near, far = {**TIMES, NEW: 0.0112}, {**TIMES, NEW: 0.02}
    assert compared(near)[NEW, OLD].verdict is Verdict.SLOWER
    withheld = compared(near, alone={NEW: 1.1})[NEW, OLD]
    assert (withheld.verdict, withheld.settling.is_likely) == (Verdict.UNCLEAR, False)
    assert compared(far, alone={NEW: 1.1})[NEW, OLD].verdict is Verdict.SLOWER


def test_one_round_and_launches_without_a_stretch_alone_tell_nothing():
    assert {each.alone for each in compared(count=1).values()} == {None}
    made = [replace(each, alone=()) for each in in_turns(TIMES)]
    assert alone([(NEW, OLD)], lookup(RUN, made)) == [None]
    assert alone([], lookup(RUN, made)) == []
    unmeasured = [replace(each, alone=[Sample(0.0, 1)]) for each in in_turns(TIMES)]
    assert alone([(NEW, OLD)], lookup(RUN, unmeasured)) == [None]


def test_the_mean_is_over_rounds_of_the_mean_of_a_rounds_launches():
    def measured(of, number, times, role=Role.MEASURE):
        return launch(of, 0.01, number, role=role, places=[0], alone=[Sample(0.01 * times, 1)])

    made = [
        *(measured(OLD, 1, 1.0), measured(OLD, 1, 1.21, Role.CONTROL), measured(NEW, 1, 1.0)),
        *(measured(OLD, 2, 1.1), measured(OLD, 2, 1.1, Role.CONTROL), measured(NEW, 2, 1.0)),
    ]
    (told,) = alone([(NEW, OLD)], lookup(run([OLD, NEW], controlled=True), made))
    assert (told.value, told.rounds) == (pytest.approx(1.0 / 1.1), 2)


def test_where_others_took_the_cpu_cpu_time_is_set_against_cpu_time():
    shared = {
        "steady_seconds": 1.0,
        "steady_cpu_seconds": 0.5,
        "steady_own_cpus": 1.0,
        "steady_own_cpus_busy_seconds": 1.0,
    }
    steps = [Sample(0.1, 5, 0.05)] * 10

    def told(stretch):
        made = [
            launch(of, number=number, samples=steps, places=[0], alone=stretch, resources=shared if of is NEW else {})
            for number in (1, 2)
            for of in (OLD, NEW)
        ]
        return alone([(OLD, NEW)], lookup(run([OLD, NEW]), made))[0].value

    # of the one that shared, 0.01 s of CPU a step; the other has its 0.02 s
    assert told([Sample(0.1, 5, 0.1)]) == pytest.approx(0.5)
    # where the CPU time is not told, less what others took
    assert told([Sample(0.1, 5)]) == pytest.approx(0.5)


def test_a_clean_table_has_a_bias_in_about_one_of_twenty_runs():
    draw, count = np.random.default_rng(5), 200
    pairs = [(each, OLD) for each in MEMBERS[1:]]
    biased = 0
    for _ in range(count):
        made = [
            launch(of, 0.01, number, role=role, places=[0], alone=[Sample(0.01 * math.exp(draw.normal(0.0, 0.03)), 1)])
            for number in (1, 2, 3)
            for of, role in RUN.plan.groups[0].slots
        ]
        biased += any(map(is_bias, alone(pairs, lookup(RUN, made))))
    assert biased <= 0.07 * count


# Two launches of one cell, per turn.


def test_two_launches_of_a_cell_scatter_per_turn_beside_what_they_differ_by():
    def twins(logs, number=1, **changes):
        rates = [0.01 * math.exp(log) for log in logs]
        first = launch(OLD, [0.01] * len(logs), number, places=[0] * len(logs))
        return [first, launch(OLD, rates, number, role=Role.CONTROL, places=[1] * len(logs), **changes)]

    told = found([*twins([0.1, 0.3, 0.1, 0.3]), *twins([-0.5, -0.7], 2)])
    # sums of squares 0.04 with 3 degrees of freedom and 0.02 with 1, each value followed by its opposite
    assert told.scatter == pytest.approx(math.sqrt(0.06 / 4.0))
    assert told.correlation == pytest.approx(-0.04 / 0.06)
    apart = found(twins([0.1, 0.3, 0.1], block=1))
    assert (apart.scatter, apart.correlation) == (None, None)
    alike = found(twins([0.2, 0.2, 0.2]))
    assert (alike.scatter, alike.correlation) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.0, abs=1.0))


# Place and predecessor.


def test_a_place_that_is_slower_is_found_with_how_much():
    told = found(in_turns(TIMES, factor=lambda of, place, before: 1.05 if place == 2 else 1.0))
    assert (told.place.at, told.place.is_found) == (2, True)
    assert 1.05 in told.place.estimate.interval
    assert not told.predecessor.is_found


def test_a_cell_that_slows_the_next_one_is_found_with_how_much():
    told = found(in_turns(TIMES, factor=lambda of, place, before: 1.05 if before == NEW else 1.0))
    assert (told.predecessor.at, told.predecessor.is_found) == (NEW, True)
    assert 1.05 in told.predecessor.estimate.interval


def test_what_is_less_than_a_third_of_the_margin_is_not_found_however_sure():
    told = found(in_turns(TIMES, within=0.001, factor=lambda of, place, before: 1.009 if place == 0 else 1.0))
    assert 1.0 not in told.place.estimate.interval
    assert not told.place.is_found


@pytest.mark.parametrize("kind", ["even", "held up"])
def test_clean_runs_have_a_place_or_a_predecessor_in_at_most_two_of_a_hundred(kind):
    draw, count = np.random.default_rng(3), 300
    slots = RUN.plan.groups[0].slots
    wrong = 0
    for _ in range(count):
        made = []
        for number in (1, 2, 3):
            logs = draw.normal(0.0, 0.05, (len(slots), 15)) + draw.normal(0.0, 0.1, 15)
            if kind == "held up":
                logs += 0.5 * (draw.random(logs.shape) < 0.05)
            places = np.array([draw.permutation(len(slots)) for _ in range(15)]).T.tolist()
            made += [
                launch(of, np.exp(row).tolist(), number, role=role, places=at)
                for (of, role), row, at in zip(slots, logs, places, strict=True)
            ]
        told = found(made)
        wrong += told.place.is_found or told.predecessor.is_found
    assert wrong <= 0.02 * count


@settings(max_examples=20)
@given(st.floats(1e-5, 1e2), st.integers(0, 50))
def test_what_is_found_does_not_depend_on_how_long_steps_take(unit, seed):
    slow = {of: unit * (place + 1) for place, of in enumerate(MEMBERS)}
    one, other = (found(in_turns(each, 2, seed=seed)) for each in (TIMES, slow))
    assert one.place.estimate.value == pytest.approx(other.place.estimate.value)
    assert one.predecessor.estimate.value == pytest.approx(other.predecessor.estimate.value)
    assert (one.scatter, one.correlation) == (pytest.approx(other.scatter), pytest.approx(other.correlation))


def test_only_turns_are_looked_at_of_which_all_have_a_sample():
    whole = in_turns(TIMES, 2, turns=20)
    longer = [
        replace(each, samples=[*each.samples, Sample(9.0, 10)], places=[*each.places, 0])
        for each in whole
        if each.cell == NEW
    ]
    torn = [*longer, *(each for each in whole if each.cell != NEW)]
    assert found(torn).place.estimate.value == pytest.approx(found(whole).place.estimate.value)
    silent = [replace(whole[0], samples=[Sample(0.0, 10), *whole[0].samples[1:]]), *whole[1:]]
    assert found(silent).place


@pytest.mark.parametrize(
    "made",
    [
        in_turns(TIMES, 1, turns=8),
        [each for each in in_turns(TIMES) if each.cell == NEW],
        in_turns(TIMES, 4, turns=1),
    ],
    ids=["few turns", "one launch", "one turn"],
)
def test_few_turns_and_launches_tell_nothing_of_places(made):
    told = found(made)
    assert (told.place, told.predecessor) == (None, None)


def test_two_launches_tell_of_places_and_not_of_predecessors():
    told = found(in_turns({OLD: 0.01}, 4))
    assert told.place
    assert told.predecessor is None


def test_launches_that_broke_are_in_nothing():
    results = Results(RUN, [*in_turns(TIMES, 3)[:-1], broken(OLD, "failed", 3, role=Role.CONTROL, places=[0])])
    assert results.turns.launches == 14


# Between turns.


def test_the_cell_that_used_most_of_the_cpu_between_its_turns_is_told():
    def waited(of, cpu, seconds=10.0):
        return launch(of, places=[0], resources={"between_seconds": seconds, "between_cpu_seconds": cpu})

    told = found([waited(OLD, 0.01), waited(NEW, 0.4), waited(NEW_EAGER, 0.2), waited(OLD_EAGER, 0.0, 0.0)]).waiting
    assert (told.cell, told.share, told.is_found) == (NEW, pytest.approx(0.04), True)
    assert not found([waited(OLD, 0.05)]).waiting.is_found
    assert found([launch(OLD, places=[0])]).waiting is None
