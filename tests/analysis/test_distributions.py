"""The distributions agree with SciPy."""

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import example, given
from hypothesis import strategies as st

from harness.analysis import distributions

FREEDOM = st.one_of(st.floats(0.5, 1e4), st.just(math.inf))
#: A probability and its complement must both be far from 0, because 1 - p is rounded.
PROBABILITY = st.floats(1e-9, 1.0 - 1e-9)


@given(FREEDOM, st.floats(-1e3, 1e3))
@example(3.0, 0.0)
@example(3.0, math.inf)
@example(3.0, -math.inf)
@example(math.inf, -math.inf)
def test_probabilities_of_t(freedom, t):
    probability = float(distributions.student_cdf(freedom, t))
    assert probability == pytest.approx(scipy.special.stdtr(freedom, t), rel=1e-9, abs=1e-300)


@given(FREEDOM, PROBABILITY)
@example(4.0, 0.5)
@example(math.inf, 0.5)
def test_quantiles_of_t(freedom, probability):
    quantile = float(distributions.student_quantile(freedom, probability))
    assert quantile == pytest.approx(scipy.special.stdtrit(freedom, probability), rel=1e-8, abs=1e-8)


@given(st.floats(1.0, 1e3), st.floats(1.0, 1e3), st.floats(0.0, 1e3))
def test_probabilities_of_f(numerator, denominator, value):
    survival = float(distributions.f_survival(numerator, denominator, value))
    assert survival == pytest.approx(scipy.special.fdtrc(numerator, denominator, value), rel=1e-7, abs=1e-11)


@given(st.floats(1e-3, 1e6))
def test_polygamma_functions(x):
    assert float(distributions.digamma(x)) == pytest.approx(scipy.special.digamma(x), rel=1e-11, abs=1e-11)
    assert float(distributions.trigamma(x)) == pytest.approx(scipy.special.polygamma(1, x), rel=1e-12)
    assert float(distributions.tetragamma(x)) == pytest.approx(scipy.special.polygamma(2, x), rel=1e-12)


def test_shapes_are_broadcast_and_unknown_numbers_stay_unknown():
    freedom, t = np.array([3.0, math.inf]), np.array([[0.5], [math.nan], [2.0]])
    probabilities = distributions.student_cdf(freedom, t)
    assert probabilities.shape == (3, 2)
    assert np.isnan(probabilities[1]).all()
    np.testing.assert_allclose(probabilities, scipy.special.stdtr(freedom, t))
