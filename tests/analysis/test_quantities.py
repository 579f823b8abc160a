"""One value a launch: phases, peak memory, traces, and growth, which may be of any sign."""

import math
import random
from dataclasses import replace

import pytest

from harness.analysis.quantities import (
    growth,
    growth_difference,
    growth_estimate,
    growths,
    is_near_jump,
    launches_of,
    slope,
    value,
)
from harness.analysis.rounds import compute_mean, compute_subtracted_share, has_mean
from harness.analysis.statistics import Interval
from harness.model.launch import Clock, Role, Sample, Status
from tests.factories import PHASES, RESOURCES, broken, cell, in_turns, launch

GRAPH, EAGER = cell(mode="graph"), cell(mode="eager")
CALLS = range(0, 1001, 50)


def phased(**changes):
    return launch(GRAPH, phases=PHASES, phases_cpu={"import": 1.1}, resources=RESOURCES, **changes)


def leaking(bytes_a_call, number=1, member=GRAPH, points=CALLS, **changes):
    memory = [(calls, 10**8 + round(bytes_a_call * calls)) for calls in points]
    return launch(member, number=number, memory=memory, **changes)


def test_a_launch_has_one_sample_of_its_value():
    for quantity, clock, expected in (
        ("first call", Clock.WALL, PHASES["first call"]),
        ("import", Clock.CPU, 1.1),
        ("peak memory", Clock.WALL, RESOURCES["max_rss_bytes"]),
        ("traces", Clock.WALL, 7.0),
    ):
        (launch_,) = launches_of(quantity, [phased(observations={"traces": 7})], clock)
        assert [(sample.seconds, sample.steps) for sample in launch_.samples] == [(expected, 1)], quantity
        assert has_mean(launch_), quantity
    # of the step, launches stay as they are, and so do broken ones and pilots
    failed, pilot = broken(GRAPH, Status.TIMEOUT, 1), phased(number=0)
    assert launches_of("step", [phased(), failed]) == [phased(), failed]
    assert [launch_.status for launch_ in launches_of("import", [failed])] == [Status.TIMEOUT]
    assert launches_of("import", [pilot]) == [pilot]
    # nothing is taken off a value that is not of the timed steps
    shared = launch(GRAPH, phases=PHASES, resources={**RESOURCES, "steady_cpu_seconds": 0.5})
    assert compute_subtracted_share(shared) > 0.0
    (launch_,) = launches_of("import", [shared])
    assert (compute_subtracted_share(launch_), compute_mean(launch_)) == (0.0, PHASES["import"])
    # and it has no turns
    for launch_ in launches_of("import", in_turns({GRAPH: 0.01, EAGER: 0.02}, phases=PHASES)):
        assert (launch_.places, launch_.alone) == ((), ())


def test_a_launch_that_has_no_such_value_is_not_available(snapshot):
    cases = {
        "no phase": ("first call", {"phases": {}}),
        "a phase of 0": ("first call", {"phases": {"first call": 0.0}}),
        "no traces": ("traces", {}),
        "few steps": ("p99", {"samples": SINGLE[:99]}),
        "several steps in a sample": ("p99", {"samples": [*SINGLE, Sample(1.0, 40)]}),
    }
    messages = {}
    for case, (quantity, changes) in cases.items():
        (launch_,) = launches_of(quantity, [replace(phased(observations={"seen": 1}), **changes)])
        assert (launch_.status, has_mean(launch_), launch_.only_observed) == (Status.NOT_AVAILABLE, False, False), case
        messages[case] = [launch_.error, launch_.advice]
    assert messages == snapshot
    for count in (True, "3", [1, 2], None, 10**400):
        assert value("traces", phased(observations={"traces": count})) is None, count


SINGLE = [Sample(at / 1000.0, 1, at / 2000.0) for at in range(1, 201)]


def test_a_percentile_is_that_of_single_steps_and_near_a_jump_few_slow_steps_decide():
    for quantity, clock, expected in (
        ("p95", Clock.WALL, 0.19005),
        ("p99", Clock.WALL, 0.19801),
        ("p99", Clock.CPU, 0.099005),
    ):
        (launch_,) = launches_of(quantity, [phased(samples=random.Random(1).sample(SINGLE, 200))], clock)
        assert [sample.seconds for sample in launch_.samples] == [pytest.approx(expected)], (quantity, clock)
        assert compute_subtracted_share(launch_) == 0.0, (quantity, clock)
    for slow, quantity, is_near in ((2, "p99", True), (2, "p95", False), (0, "p99", False), (20, "p99", False)):
        seconds = [
            Sample(0.01 * random.Random(at).gauss(1.0, 0.02) * (5.0 if at < slow else 1.0), 1) for at in range(200)
        ]
        assert is_near_jump(quantity, [phased(samples=seconds)]) is is_near, (slow, quantity)
    assert not is_near_jump("p99", [])
    # two steps are the limits of every percentile
    assert is_near_jump("p50", [phased(samples=[Sample(1.0, 1), Sample(7.0, 1)])])


def test_growth_is_the_slope_over_the_calls_and_of_a_cell_the_mean_with_an_interval():
    assert [growth(leaking(growth_)) for growth_ in (1000, -30, 0)] == pytest.approx([1000, -30, 0.0])
    assert growth(leaking(1000, points=[0, 5])) == pytest.approx(1000)
    for points in ([], [0], [5, 5]):
        assert growth(leaking(1000, points=points)) is growth_estimate([leaking(1000, points=points)]) is None
    # a pool that fills in the first half is none, and what is allocated once hardly
    pool = [(calls, 10**8 + 4096 * min(calls, 450)) for calls in CALLS]
    assert growth(launch(GRAPH, memory=pool)) == 0.0
    assert slope([(calls, 10**8 + (2**22 if calls > 700 else 0)) for calls in CALLS]) == 0.0
    # it may be negative, and has no logarithm
    with pytest.raises(ValueError, match="growth_estimate"):
        launches_of("memory growth", [leaking(1000)])
    launches = [leaking(growth_, number) for number, growth_ in enumerate([990, 1000, 1010], 1)]
    estimate = growth_estimate(launches)
    # t of two degrees of freedom is 4.303, and the standard deviation 10
    half = 4.302653 * 10 / math.sqrt(3)
    assert (estimate.value, estimate.rounds) == (pytest.approx(1000), 3)
    assert estimate.interval.low == pytest.approx(1000 - half, rel=1e-6)
    assert estimate.interval.high == pytest.approx(1000 + half, rel=1e-6)
    narrow = growth_estimate(launches, level=0.5)
    assert narrow.interval.high < estimate.interval.high


def test_values_are_one_per_round_and_differences_of_the_rounds_that_both_have():
    launches = [leaking(900), leaking(1100, role=Role.CONTROL)]
    assert growths(launches) == {1: pytest.approx(1000)}
    assert growth_estimate(launches).interval is None
    equal = growth_estimate([leaking(0, number) for number in range(1, 4)])
    assert (equal.value, equal.interval) == (0.0, Interval(0.0, 0.0))
    assert growths([leaking(1000, status=Status.OOM)]) == {}
    one = {1: 1010.0, 2: 1020.0, 3: 5.0}
    other = {1: 10.0, 2: 20.0, 4: 7.0}
    difference = growth_difference(one, other)
    assert (difference.value, difference.rounds, difference.interval) == (1000.0, 2, Interval(1000.0, 1000.0))
    turned = difference.inverse
    assert (turned.value, turned.rounds, turned.interval) == (-1000.0, 2, Interval(-1000.0, -1000.0))
    assert growth_difference(one, {}) is None
