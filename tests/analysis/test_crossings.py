"""Where curves cross, and how often the interval holds the truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.crossings import find_order, interpolate_times, refine_sizes

SIZES = (1.0, 32.0, 1024.0, 32768.0)
#: As if one size were measured: its test is at 95 %.
ONE = SIZES[-1:]
places = np.log(SIZES)


def logs(*means: float, spread: float = 0.0, rounds: int = 5, seed: int = 1) -> np.ndarray:
    """Log ratios of shape (rounds, sizes), scattered by `spread`."""
    draw = np.random.default_rng(seed)
    return np.asarray(means) + draw.normal(0.0, spread, (rounds, len(means)))


def test_a_line_crosses_where_it_is_zero_in_the_log_with_the_interval_of_a_t_test():
    (crossing,) = find_order((1.0, 100.0), logs(-1.0, 1.0)).crossings
    assert crossing.at == pytest.approx(10.0)
    assert (crossing.rises, crossing.opens_low, crossing.opens_high) == (True, False, False)
    assert (crossing.interval.low, crossing.interval.high) == pytest.approx((10.0, 10.0))
    # where a size is not above zero the line is straight in the size
    (crossing,) = find_order((0.0, 10.0), logs(-1.0, 3.0)).crossings
    assert crossing.at == pytest.approx(2.5)
    # one round has a point and no interval
    (crossing,) = find_order(SIZES, logs(-2.0, -1.0, 1.0, 2.0, rounds=1)).crossings
    assert (crossing.at, crossing.interval) == (pytest.approx(math.sqrt(32 * 1024)), None)
    (crossing,) = find_order((1.0, 2.0, 4.0), logs(-1.0, 0.0, 1.0, rounds=1)).crossings
    assert crossing.at == 2.0
    values = logs(-0.5, -0.1, 0.2, 0.6, spread=0.05, seed=3)
    (crossing,) = find_order(SIZES, values, ONE).crossings
    rounds = len(values)
    for end in (crossing.interval.low, crossing.interval.high):
        step_seconds = np.array([np.interp(math.log(end), places, row) for row in values])
        t = abs(step_seconds.mean()) / math.sqrt(step_seconds.var(ddof=1) / rounds)
        assert t == pytest.approx(2.7764451, rel=1e-5)


def test_a_curve_that_stays_on_one_side_or_nowhere_leaves_zero_crosses_nowhere():
    high = logs(1.0, 0.5, 0.6, 2.0, spread=0.01)
    near = logs(0.001, -0.001, 0.001, -0.002, spread=0.2)
    for values, name in ((high, "above"), (-high, "below"), (near, "unclear")):
        order = find_order(SIZES, values)
        assert [(part.low, part.high) for part in getattr(order, name)] == [(1.0, 32768.0)]
        assert not order.crossings
        assert len([*order.above, *order.below, *order.unclear]) == 1
    # one that only comes near is unclear there
    order = find_order(SIZES, logs(1.0, 0.02, 0.02, 1.0, spread=0.05))
    assert not order.crossings
    (unclear,) = order.unclear
    assert 1.0 < unclear.low < unclear.high < 32768.0
    assert len(order.above) == 2
    # between two sizes, their average may vary less than both
    (unclear,) = find_order((1.0, 100.0), 0.1 + np.array([[1.0, -1.0], [-1.0, 1.0]] * 3)).unclear
    assert (unclear.low, unclear.high) == (1.0, 100.0)


@given(st.floats(0.1, 1e3), st.floats(0.001, 10.0), st.floats(1.1, 100.0), st.floats(0.05, 0.95))
def test_a_break_even_of_straight_costs_is_found_between_two_sizes(before, step_seconds, dearer, share):
    """One way costs `before` and then `each`, the other `dearer` times `each`: n = before / (dearer - 1) / each."""
    truth = before / ((dearer - 1.0) * step_seconds)
    low = truth / 100.0**share
    sizes = (low, 100.0 * low)
    graph = np.array([[before + step_seconds * size for size in sizes]])
    eager = np.array([[dearer * step_seconds * size for size in sizes]])
    order = find_order(
        refine_sizes(sizes), np.log(interpolate_times(sizes, eager)) - np.log(interpolate_times(sizes, graph))
    )
    (crossing,) = order.crossings
    assert crossing.at == pytest.approx(truth, rel=0.003)
    assert crossing.rises


means = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=6)


@given(means, st.floats(0.0, 1.0), st.integers(1, 8), st.integers(0, 10**6))
def test_the_sweep_is_parted_without_gaps_and_turning_the_ratio_turns_the_answer(centres, spread, rounds, seed):
    sizes = tuple(2.0**index for index in range(len(centres)))
    values = logs(*centres, spread=spread, rounds=rounds, seed=seed)
    order, turned = find_order(sizes, values), find_order(sizes, -values)
    assert [(crossing.at, crossing.rises) for crossing in order.crossings] == [
        (crossing.at, not crossing.rises) for crossing in turned.crossings
    ]
    assert order.above == turned.below
    parts = sorted(
        [(value.low, value.high) for value in [*order.above, *order.below, *order.unclear]]
        + [(crossing.interval.low, crossing.interval.high) for crossing in order.crossings if crossing.interval]
    )
    if rounds > 1:
        assert parts[0][0] == sizes[0]
        assert parts[-1][1] == sizes[-1]
        for (_, before), (after, _) in itertools.pairwise(parts):
            assert after == pytest.approx(before)
    for crossing in order.crossings:
        assert sizes[0] <= crossing.at <= sizes[-1]
        if crossing.interval:
            assert crossing.interval.low <= crossing.at <= crossing.interval.high
