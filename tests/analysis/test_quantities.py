"""One value a launch: phases, peak memory, traces, and growth, which may be of any sign."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.cell_index import lookup
from harness.analysis.comparisons import compare
from harness.analysis.quantities import (
    growth,
    growth_difference,
    growth_estimate,
    growths,
    launches_of,
    slope,
    value,
)
from harness.analysis.rounds import compute_mean, compute_subtracted_share, has_mean
from harness.analysis.statistics import Interval
from harness.analysis.verdicts import Verdict
from harness.model.launch import Clock, Role, Sample, Status
from tests.factories import PHASES, RESOURCES, broken, cell, in_turns, launch, run

GRAPH, EAGER = cell(mode="graph"), cell(mode="eager")
CALLS = range(0, 1001, 50)


def told(**changes):
    return launch(GRAPH, phases=PHASES, phases_cpu={"import": 1.1}, resources=RESOURCES, **changes)


def leaking(bytes_a_call, number=1, of=GRAPH, points=CALLS, **changes):
    memory = [(calls, 10**8 + round(bytes_a_call * calls)) for calls in points]
    return launch(of, number=number, memory=memory, **changes)


def test_a_launch_has_one_sample_of_its_value():
    for quantity, clock, expected in [
        ("first call", Clock.WALL, PHASES["first call"]),
        ("import", Clock.CPU, 1.1),
        ("peak memory", Clock.WALL, RESOURCES["max_rss_bytes"]),
        ("traces", Clock.WALL, 7.0),
    ]:
        (made,) = launches_of(quantity, [told(observations={"traces": 7})], clock)
        assert [(sample.seconds, sample.steps) for sample in made.samples] == [(expected, 1)], (
            quantity,
            clock,
            expected,
        )
        assert has_mean(made), (quantity, clock, expected)


SINGLE = [Sample(at / 1000.0, 1, at / 2000.0) for at in range(1, 201)]


def test_a_percentile_is_that_of_a_launchs_single_steps():
    for quantity, clock, expected in [
        ("p50", Clock.WALL, 0.1005),
        ("p95", Clock.WALL, 0.19005),
        ("p99", Clock.WALL, 0.19801),
        ("p99", Clock.CPU, 0.099005),
    ]:
        (made,) = launches_of(quantity, [told(samples=random.Random(1).sample(SINGLE, 200))], clock)
        assert [sample.seconds for sample in made.samples] == [pytest.approx(expected)], (quantity, clock, expected)
        assert compute_subtracted_share(made) == 0.0, (quantity, clock, expected)


def test_a_launch_with_few_steps_or_with_several_in_a_sample_has_no_percentile():
    for samples, error in [
        (SINGLE[:99], "p99 needs at least 100 steps, but this launch has 99."),
        ([*SINGLE, Sample(1.0, 40)], "Percentiles need single steps, but a sample of this launch has 40 steps."),
    ]:
        (made,) = launches_of("p99", [told(samples=samples)])
        assert (made.status, made.error, has_mean(made)) == (Status.NOT_AVAILABLE, error, False), (samples, error)
        assert "--measure" in made.advice, (samples, error)


def test_percentiles_are_judged_like_every_time():
    slow = [Sample(sample.seconds * (3.0 if sample.seconds > 0.19 else 1.0), 1) for sample in SINGLE]
    launches = [
        launch(of, number=number, samples=samples)
        for number in range(1, 4)
        for of, samples in ((GRAPH, SINGLE), (EAGER, slow))
    ]
    verdicts = []
    for quantity in ("p50", "p99"):
        index = lookup(run([GRAPH, EAGER]), launches_of(quantity, launches))
        verdicts += [compared.verdict for compared in compare([(EAGER, GRAPH)], index, 0.03) if compared]
    assert verdicts == [Verdict.SAME, Verdict.SLOWER]


def test_of_the_step_launches_stay_as_they_are():
    launches = [told(), broken(EAGER, Status.OOM)]
    assert launches_of("step", launches) == launches


def test_a_launch_that_has_no_such_value_is_not_available():
    for changes, said in [
        ({"phases": {}}, "No first call was recorded."),
        ({"phases": {"first call": 0.0}}, "A ratio isn't possible: the first call is 0."),
    ]:
        (made,) = launches_of("first call", [replace(told(observations={"seen": 1}), **changes)])
        assert (made.status, made.error, has_mean(made)) == (Status.NOT_AVAILABLE, said, False), (changes, said)
        assert not made.only_observed, (changes, said)


def test_what_is_no_number_is_no_count_of_traces():
    for seen in (True, "3", [1, 2], None, 10**400):
        assert value("traces", told(observations={"traces": seen})) is None


def test_a_broken_launch_and_a_pilot_keep_what_they_are():
    failed, pilot = broken(GRAPH, Status.TIMEOUT, 1), told(number=0)
    assert [entry.status for entry in launches_of("import", [failed, pilot])] == [Status.TIMEOUT, Status.OK]
    assert launches_of("import", [pilot]) == [pilot]


def test_nothing_is_taken_off_a_value_that_is_not_of_the_timed_steps():
    busy = {**RESOURCES, "steady_cpu_seconds": 0.5}
    launched = launch(GRAPH, phases=PHASES, resources=busy)
    assert compute_subtracted_share(launched) > 0.0
    (made,) = launches_of("import", [launched])
    assert (compute_subtracted_share(made), compute_mean(made)) == (0.0, PHASES["import"])


def test_launches_that_took_turns_have_no_turns_in_another_value():
    launches = in_turns({GRAPH: 0.01, EAGER: 0.02}, phases=PHASES)
    for made in launches_of("import", launches):
        assert (made.places, made.alone) == ((), ())


def test_counts_that_never_vary_give_a_ratio_without_width():
    launches = [
        launch(of, number=number, role=role, observations={"traces": count})
        for number in range(1, 6)
        for of, count, role in ((GRAPH, 3, Role.MEASURE), (GRAPH, 3, Role.CONTROL), (EAGER, 300, Role.MEASURE))
    ]
    found = lookup(run([GRAPH, EAGER], controlled=True), launches_of("traces", launches))
    (compared,) = compare([(EAGER, GRAPH)], found, 0.03)
    assert compared.ratio.value == pytest.approx(100.0)
    assert compared.ratio.interval.high / compared.ratio.interval.low == pytest.approx(1.0, abs=1e-6)
    assert compared.verdict == "slower"


def test_growth_is_the_slope_over_the_calls():
    assert growth(leaking(1000)) == pytest.approx(1000)
    assert growth(leaking(-30)) == pytest.approx(-30)
    assert growth(leaking(0)) == 0.0


def test_without_two_points_there_is_no_growth():
    for points in [[], [0], [5, 5]]:
        assert growth(leaking(1000, points=points)) is None
        assert growth_estimate([leaking(1000, points=points)]) is None


def test_a_pool_that_fills_in_the_first_half_is_no_growth():
    points = [(calls, 10**8 + 4096 * min(calls, 450)) for calls in CALLS]
    assert growth(launch(GRAPH, memory=points)) == 0.0


def test_of_few_points_two_at_least_tell():
    for points in [[0, 5], [0, 5, 10]]:
        assert growth(leaking(1000, points=points)) == pytest.approx(1000)


def test_what_is_allocated_once_is_hardly_a_growth():
    once = [(calls, 10**8 + (2**22 if calls > 700 else 0)) for calls in CALLS]
    assert slope(once) == 0.0


@given(
    points=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**40)), max_size=12),
    rise=st.integers(-(10**5), 10**5),
    seed=st.integers(),
)
def test_the_slope_depends_on_no_order_and_follows_a_line_that_is_added(points, rise, seed):
    found = slope(points)
    shuffled = random.Random(seed).sample(points, len(points))
    assert slope(shuffled) == found
    added = slope([(calls, held + rise * calls) for calls, held in points])
    assert (added is None) == (found is None)
    if found is not None:
        assert added == pytest.approx(found + rise, rel=1e-9, abs=1e-3)


def test_a_cells_growth_is_the_mean_over_its_rounds_with_an_interval():
    launches = [leaking(each, number) for number, each in enumerate([990, 1000, 1010], 1)]
    estimate = growth_estimate(launches)
    # t of two degrees of freedom is 4.303, and the standard deviation 10
    half = 4.302653 * 10 / math.sqrt(3)
    assert (estimate.value, estimate.rounds) == (pytest.approx(1000), 3)
    assert estimate.interval.low == pytest.approx(1000 - half, rel=1e-6)
    assert estimate.interval.high == pytest.approx(1000 + half, rel=1e-6)
    narrow = growth_estimate(launches, level=0.5)
    assert narrow.interval.high < estimate.interval.high


def test_one_round_has_no_interval_and_launches_of_one_round_are_one_value():
    launches = [leaking(900), leaking(1100, role=Role.CONTROL)]
    assert growths(launches) == {1: pytest.approx(1000)}
    assert growth_estimate(launches).interval is None


def test_equal_growths_have_an_interval_of_no_width():
    estimate = growth_estimate([leaking(0, number) for number in range(1, 4)])
    assert (estimate.value, estimate.interval) == (0.0, Interval(0.0, 0.0))


def test_a_difference_is_of_the_rounds_that_both_have():
    one = {1: 1010.0, 2: 1020.0, 3: 5.0}
    other = {1: 10.0, 2: 20.0, 4: 7.0}
    found = growth_difference(one, other)
    assert (found.value, found.rounds, found.interval) == (1000.0, 2, Interval(1000.0, 1000.0))
    turned = found.inverse
    assert (turned.value, turned.rounds, turned.interval) == (-1000.0, 2, Interval(-1000.0, -1000.0))
    assert growth_difference(one, {}) is None


def test_launches_that_failed_tell_no_growth():
    assert growths([leaking(1000, status=Status.OOM)]) == {}


def test_growth_has_no_logarithm():
    with pytest.raises(ValueError, match="growth_estimate"):
        launches_of("memory growth", [leaking(1000)])
