"""Moderated variances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import polygamma

from harness.analysis.moderation import FEWEST, _inverse_trigamma, fit, moderate
from harness.analysis.statistics import Logs

#: With two degrees of freedom, and logs of the variances that lie ± this around their mean in a dozen of them, the logs
#: vary by π²/3, and that is 2 · ψ'(1): half is sampling, and half is d0 = 2.
TWO_EACH = math.sqrt(11.0 * math.pi**2 / 36.0)

spreads = arrays.arrays(np.float64, st.integers(FEWEST, 40), elements=st.floats(1e-9, 1e3))


def degrees(like, each=4.0):
    return np.full(like.shape, each)


def lent(variances, each=4.0):
    """The moderated variances, and their degrees of freedom."""
    found = moderate(Logs(np.zeros_like(variances), variances, np.ones_like(variances), degrees(variances, each)))
    return found.variance, found.freedom


def scattered(count, spread, middle=1e-4):
    """Variances whose logs lie alternately `spread` above and below that of `middle`."""
    return middle * np.exp(spread * np.resize([1.0, -1.0], count))


def test_a_prior_that_can_be_computed_by_hand():
    prior = fit(scattered(12, TWO_EACH), np.full(12, 2.0))
    assert prior.freedom == pytest.approx(2.0)
    assert prior.variance == pytest.approx(1e-4)


def test_a_variance_and_the_prior_meet_by_their_degrees_of_freedom():
    own = scattered(12, TWO_EACH)
    variances, freedom = lent(own, 2.0)
    assert variances == pytest.approx((2.0 * 1e-4 + 2.0 * own) / 4.0)
    assert freedom == pytest.approx(4.0)


def test_equal_variances_are_one_known_from_all_samples():
    prior = fit(np.full(12, 4e-4), np.full(12, 4.0))
    assert (prior.variance, prior.freedom) == (pytest.approx(4e-4), math.inf)
    variances, freedom = lent(np.full(12, 4e-4))
    assert variances == pytest.approx(4e-4)
    assert freedom.tolist() == [48.0] * 12


def test_variances_that_scatter_no_more_than_samples_do_are_pooled_by_their_degrees():
    own, freedom = scattered(12, 0.3), np.resize([3.0, 7.0], 12)
    prior = fit(own, freedom)
    assert prior.freedom == math.inf
    assert prior.variance == pytest.approx((3.0 * own[0] + 7.0 * own[1]) / 10.0)


def test_variances_of_all_sizes_lend_one_another_next_to_nothing():
    own = np.logspace(-12.0, 0.0, 13)
    variances, freedom = lent(own)
    assert fit(own, degrees(own)).freedom < 0.5
    assert (variances > 0.9 * own).all()
    assert (freedom < 4.5).all()


def test_fewer_than_a_dozen_stay_as_they_were_measured():
    own = scattered(FEWEST - 1, 0.1)
    variances, freedom = lent(own)
    assert (variances.tolist(), freedom.tolist()) == (own.tolist(), [4.0] * (FEWEST - 1))


@pytest.mark.parametrize(
    ("ordinary", "huge"), [(np.full(31, 4e-4), 4e-3), (np.full(31, 4e-4), 4.0), (scattered(31, 1.5), 4.0)]
)
def test_a_single_huge_variance_stays_its_own_and_the_others_are_lent(ordinary, huge):
    variances, freedom = lent(np.append(ordinary, huge))
    assert (variances[-1], freedom[-1]) == (huge, 4.0)
    assert (freedom[:-1] > 4.0).all()


def test_no_comparison_at_all_is_no_trouble():
    assert [part.size for part in lent(np.empty(0))] == [0, 0]


@pytest.mark.parametrize(("freedom", "variance"), [(4.0, 4e-4), (8.0, 1.0), (30.0, 1e-6)])
def test_the_prior_that_variances_were_drawn_from_is_found_again(freedom, variance):
    draw = np.random.default_rng(7)
    true = variance * freedom / draw.chisquare(freedom, 5000)
    prior = fit(true * draw.chisquare(4.0, 5000) / 4.0, np.full(5000, 4.0))
    assert prior.freedom == pytest.approx(freedom, rel=0.25)
    assert prior.variance == pytest.approx(variance, rel=0.05)


@given(spreads, st.floats(1.0, 30.0))
def test_degrees_are_never_fewer_than_measured_nor_more_than_all_have_together(own, each):
    _, freedom = lent(own, each)
    assert (freedom >= each).all()
    assert (freedom <= each * own.size * (1.0 + 1e-12)).all()


@given(spreads)
def test_a_variance_moves_towards_the_prior_or_not_at_all(own):
    prior, (variances, _) = fit(own, degrees(own)).variance, lent(own)
    assert (variances >= np.minimum(own, prior) * (1.0 - 1e-9)).all()
    assert (variances <= np.maximum(own, prior) * (1.0 + 1e-9)).all()


@given(spreads)
def test_a_larger_variance_stays_the_larger_one(own):
    variances = lent(np.sort(own))[0]
    assert (variances[1:] >= variances[:-1] * (1.0 - 1e-9)).all()


@given(arrays.arrays(np.float64, 12, elements=st.floats(1e-6, 1.0)), st.sampled_from([1e-4, 0.25, 1e3]))
def test_the_unit_of_the_variances_does_not_matter(own, unit):
    before, after = fit(own, degrees(own)), fit(own * unit, degrees(own))
    assert 1.0 / after.freedom == pytest.approx(1.0 / before.freedom, rel=1e-6, abs=1e-9)
    assert after.variance == pytest.approx(before.variance * unit, rel=1e-6)


@given(st.permutations(range(16)))
def test_the_order_of_the_comparisons_does_not_matter(order):
    own = np.logspace(-5.0, -2.0, 16)
    (variances, freedom), (turned, turned_freedom) = lent(own), lent(own[order])
    assert turned == pytest.approx(variances[order])
    assert turned_freedom == pytest.approx(freedom[order])


@given(st.floats(-14.0, 14.0))
def test_trigamma_is_inverted(exponent):
    value = 10.0**exponent
    assert polygamma(1, _inverse_trigamma(value)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("y", "trigamma"), [(0.5, math.pi**2 / 2), (1.0, math.pi**2 / 6), (2.0, math.pi**2 / 6 - 1)])
def test_known_values_of_trigamma(y, trigamma):
    assert _inverse_trigamma(trigamma) == pytest.approx(y)
