"""Estimates, differences that are not paired, and their intervals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from bench.simulation.machine import Table, launches
from harness.analysis.statistics import (
    RESOLUTION,
    Estimate,
    Logs,
    combine,
    exp_limited,
    half_widths,
    log_ratios,
    means,
    medians,
    percent,
    student,
    subtract,
    subtract_others,
)
from harness.analysis.verdicts import Verdict, judge
from harness.model.defaults import ALPHA


def test_a_number_is_the_geometric_mean_with_a_t_interval_of_the_rounds_that_pair():
    assert (student(4), student(1)) == (pytest.approx(2.776, abs=1e-3), pytest.approx(12.706, abs=1e-3))
    estimate = combine([0.01, 0.02, 0.04])
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert estimate.value == pytest.approx(0.02)
    assert estimate.interval.low == pytest.approx(0.02 * math.exp(-half), rel=1e-6)
    assert estimate.interval.high == pytest.approx(0.02 * math.exp(half), rel=1e-6)
    assert [percent(ratio) for ratio in (2.76, 1.0, 0.5)] == pytest.approx([176.0, 0.0, -100.0])
    # one launch and two have none, and rounds that are worlds apart a finite one
    assert combine([0.01]).interval is combine([0.01, 0.02]).interval is None
    assert math.isfinite(combine([1e-300, 1.0, 1e300]).interval.high)
    assert log_ratios({4: 0.04, 1: 0.02, 2: 0.5}, {1: 0.01, 3: 0.7, 4: 0.01}) == pytest.approx(
        [math.log(2.0), math.log(4.0)]
    )
    assert log_ratios({1: 0.02}, {2: 0.01}) == []


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e6))
def test_no_log_is_too_large_to_be_a_number_with_an_inverse(mean, half):
    ends = Estimate.from_log(mean, 5, half).interval
    assert all(0.0 < value < math.inf and 1.0 / value < math.inf for value in (ends.low, ends.high, exp_limited(mean)))
    assert exp_limited(mean) in ends


@given(st.floats(-9.0, 9.0), st.floats(0.0, 9.0))
def test_the_ratio_seen_from_the_other_side(mean, half):
    back = Estimate.from_log(mean, 5, half).inverse
    assert back.value == pytest.approx(exp_limited(-mean))
    assert (back.interval.low, back.interval.high) == pytest.approx(
        (exp_limited(-mean - half), exp_limited(-mean + half))
    )
    assert Estimate(2.0, 1).inverse == Estimate(0.5, 1)


logs = st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=8)


def well_known(values, error=0.01):
    """Means with one error each, well known."""
    count = len(values)
    return Logs(np.array(values), np.full(count, error**2), np.ones(count), np.full(count, 8.0))


@given(logs, logs)
def test_a_difference_is_welchs_and_the_other_way_round_it_is_turned_over(one, other):
    there, back = (subtract(means([a]), means([b])) for a, b in ((one, other), (other, one)))
    assert (there.mean, there.error, there.freedom) == (-back.mean, back.error, back.freedom)
    # scipy warns of values that hardly differ
    assume(min(np.ptp(one), np.ptp(other)) > 1e-3)
    expected = ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    half = half_widths(there, ALPHA)
    assert [float((there.mean - half)[0]), float((there.mean + half)[0])] == pytest.approx(
        [expected.low, expected.high], abs=1e-6
    )


def test_launches_that_all_agree_are_known_to_what_clocks_resolve():
    differences = subtract(means([[0.1] * 4]), means([[0.0] * 4]))
    assert differences.error[0] == pytest.approx(RESOLUTION / math.sqrt(2.0))
    assert differences.freedom[0] == pytest.approx(6.0)


def test_the_middle_is_the_median_and_cells_are_set_beside_the_others():
    tame = well_known([-0.01, 0.0, 0.01, 0.02, 0.03])
    wild = replace(tame, mean=tame.mean * [1, 1, 1, 1, 300], variance=tame.variance * [1, 1, 1, 1, 9999])
    for cells_ in (tame, wild):
        differences = medians(cells_, [np.arange(5)])
        assert (differences.mean[0], differences.freedom[0]) == (0.01, 40.0)
        assert differences.error[0] == pytest.approx(0.01 * math.sqrt(math.pi / 2.0 / 5.0))
    differences = subtract_others(well_known([0.0, 0.0, 0.0, 0.0, 0.0, 0.9]), base=np.arange(6))
    assert differences.mean == pytest.approx([0.0] * 5 + [0.9])
    differences = subtract_others(well_known([0.1, 0.1, 0.1, 0.1, 0.1, 0.9]), base=np.arange(5))
    assert differences.mean == pytest.approx([0.0] * 5 + [0.8])
    assert differences.error[5] == pytest.approx(0.01 * math.sqrt(1.0 + math.pi / 2.0 / 5.0))


@pytest.mark.slow
def test_on_a_slower_machine_the_one_cell_that_changed_by_itself_is_found():
    draw, changed, others = np.random.default_rng(4), 0, 0
    for _ in range(300):
        one, other = (launches(Table(1, 8, 0.02), 5, draw)[0][0, :8] for _ in range(2))
        other = other + 0.06
        other[3] += math.log(1.20)
        differences = subtract_others(subtract(means(other.tolist()), means(one.tolist())), np.arange(8))
        verdicts = judge(differences, math.log1p(0.03)).verdicts
        changed += verdicts.pop(3) is Verdict.SLOWER
        others += bool({Verdict.FASTER, Verdict.SLOWER} & set(verdicts))
    assert changed > 0.9 * 300
    # 5 %, and three standard errors of so many tables
    assert others <= 0.088 * 300
