"""Estimates and their intervals."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.statistics import Interval, combine, percent, ratio, student

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
    assert ratio({3: 0.02}, {3: 0.01}).interval is None


def test_only_rounds_that_have_both_are_paired():
    estimate = ratio({1: 0.02, 2: 0.5, 4: 0.02}, {1: 0.01, 3: 0.7, 4: 0.01})
    assert (estimate.value, estimate.rounds) == (pytest.approx(2.0), 2)
    assert ratio({1: 0.02}, {2: 0.01}) is None


def test_two_rounds_that_are_worlds_apart_have_a_finite_interval():
    assert math.isfinite(combine([1e-9, 1e9]).interval.high)


@given(pairs)
def test_swapping_the_two_sides_turns_the_ratio_over(values):
    one, other = numbered(a for a, _ in values), numbered(b for _, b in values)
    there, back = ratio(one, other), ratio(other, one).inverse
    assert there.value == pytest.approx(back.value)
    if there.interval and there.interval.high < 1e100 and there.interval.low > 1e-100:
        assert there.interval.low == pytest.approx(back.interval.low, rel=1e-6)
        assert there.interval.high == pytest.approx(back.interval.high, rel=1e-6)


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
    before, after = ratio(one, other), ratio(*slowed)
    assert after.value == pytest.approx(before.value)
    if before.interval:
        assert math.log(after.interval.low) == pytest.approx(math.log(before.interval.low), abs=1e-6)


@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_the_interval_covers_the_true_ratio_95_times_in_100(rounds):
    draw, trials, truth = random.Random(rounds), 4000, 1.3
    covered = 0
    for _ in range(trials):
        drift = [draw.gauss(0.0, 0.2) for _ in range(rounds)]
        one = numbered(truth * math.exp(d + draw.gauss(0.0, 0.03)) for d in drift)
        other = numbered(math.exp(d + draw.gauss(0.0, 0.05)) for d in drift)
        covered += truth in ratio(one, other).interval
    # three standard errors of a share of 95 % in 4,000 trials are 1 %
    assert covered / trials == pytest.approx(0.95, abs=0.011)


def test_an_interval_holds_its_ends():
    assert 1.0 in Interval(1.0, 2.0)
    assert 2.1 not in Interval(1.0, 2.0)
