"""Estimates and their intervals."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.statistics import (
    Estimate,
    Interval,
    combine,
    exp,
    log_ratios,
    percent,
    student,
    variance,
)

seconds = st.floats(1e-6, 1e3)
centres = st.lists(seconds, min_size=2, max_size=12)
pairs = st.lists(st.tuples(seconds, seconds), min_size=1, max_size=12)


def numbered(values):
    return dict(enumerate(values, 1))


def test_students_quantile_is_the_tables():
    assert student(4) == pytest.approx(2.776, abs=1e-3)
    assert student(1) == pytest.approx(12.706, abs=1e-3)


def test_a_cells_number_is_the_geometric_mean_with_a_t_interval_on_the_log_scale():
    estimate = combine([0.01, 0.02, 0.04])
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert estimate.value == pytest.approx(0.02)
    assert estimate.interval.low == pytest.approx(0.02 * math.exp(-half), rel=1e-6)
    assert estimate.interval.high == pytest.approx(0.02 * math.exp(half), rel=1e-6)


def test_one_launch_has_no_interval():
    assert combine([0.01]).interval is None


def test_only_rounds_that_have_both_are_paired():
    assert log_ratios({1: 0.02, 2: 0.5, 4: 0.02}, {1: 0.01, 3: 0.7, 4: 0.01}) == pytest.approx([math.log(2.0)] * 2)
    assert log_ratios({1: 0.02}, {2: 0.01}) == []


def test_rounds_are_paired_by_number_whatever_their_order():
    assert log_ratios({2: 0.04, 1: 0.02}, {1: 0.01, 2: 0.01}) == pytest.approx([math.log(2.0), math.log(4.0)])


def test_two_rounds_that_are_worlds_apart_have_a_finite_interval():
    assert math.isfinite(combine([1e-9, 1e9]).interval.high)


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e6))
def test_no_log_is_too_large_to_be_a_number_with_an_inverse(mean, half):
    ends = Estimate.from_log(mean, 5, half).interval
    assert all(0.0 < value < math.inf and 1.0 / value < math.inf for value in (ends.low, ends.high, exp(mean)))
    assert exp(mean) in ends


def test_an_interval_of_logs_is_turned_into_one_of_ratios():
    assert Estimate.from_log(math.log(2.0), 5, math.log(4.0)).interval == Interval(
        pytest.approx(0.5), pytest.approx(8.0)
    )


@given(pairs)
def test_swapping_the_two_sides_turns_the_logs_over(values):
    one, other = numbered(a for a, _ in values), numbered(b for _, b in values)
    assert log_ratios(one, other) == [-log for log in log_ratios(other, one)]


@given(st.floats(-9.0, 9.0), st.floats(0.0, 9.0))
def test_the_ratio_seen_from_the_other_side(mean, half):
    back = Estimate.from_log(mean, 5, half).inverse
    assert back.value == pytest.approx(exp(-mean))
    assert (back.interval.low, back.interval.high) == pytest.approx((exp(-mean - half), exp(-mean + half)))
    assert Estimate(2.0, 1).inverse == Estimate(0.5, 1)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_the_variance_is_that_of_a_sample(values):
    assert variance(values) == pytest.approx(statistics.variance(values), rel=1e-9, abs=1e-9)


@given(st.floats(1e-3, 1e3))
def test_the_percentage_changes_its_sign_with_the_sides(value):
    assert percent(1.0 / value) == pytest.approx(-percent(value), abs=1e-9)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_the_percentage_is_monotone(one, other):
    assert (percent(one) <= percent(other)) == (one <= other) or percent(one) == pytest.approx(percent(other))


@pytest.mark.parametrize(("time_ratio", "expected"), [(2.76, 176.0), (1.0, 0.0), (0.5, -100.0)])
def test_the_percentage_is_the_sources(time_ratio, expected):
    assert percent(time_ratio) == pytest.approx(expected)


@given(centres, st.floats(1e-3, 1e3))
def test_a_unit_scales_the_number_and_its_interval(values, scale):
    before, after = combine(values), combine([value * scale for value in values])
    assert after.value == pytest.approx(before.value * scale)
    if before.interval.high < 1e100:
        assert after.interval.high == pytest.approx(before.interval.high * scale, rel=1e-6)


@given(pairs, st.lists(st.floats(0.01, 100.0), min_size=12, max_size=12))
def test_what_slows_a_whole_round_cancels(values, slowness):
    one, other = numbered(a for a, _ in values), numbered(b for _, b in values)
    slowed = [{number: value * slowness[number - 1] for number, value in side.items()} for side in (one, other)]
    assert log_ratios(*slowed) == pytest.approx(log_ratios(one, other), abs=1e-9)


@pytest.mark.parametrize("launches", [3, 5, 10])
def test_the_interval_covers_the_true_value_95_times_in_100(launches):
    draw, trials, truth = random.Random(launches), 4000, 0.013
    seen = ([truth * math.exp(draw.gauss(0.0, 0.05)) for _ in range(launches)] for _ in range(trials))
    covered = sum(truth in combine(each).interval for each in seen)
    # three standard errors of a share of 95 % in 4,000 trials are 1 %
    assert covered / trials == pytest.approx(0.95, abs=0.011)


def test_an_interval_holds_its_ends():
    assert 1.0 in Interval(1.0, 2.0)
    assert 2.1 not in Interval(1.0, 2.0)
