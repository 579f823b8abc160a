"""Student's t, the F distribution and polygamma functions, for arrays.

SciPy has all of these functions. But SciPy would be nearly half of an installation, and harness uses no other part of
SciPy. Tests compare these functions with SciPy's functions.

Formulas are from the NIST Digital Library of Mathematical Functions (DLMF), https://dlmf.nist.gov.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: With more degrees of freedom than this, the t distribution equals the normal distribution (up to rounding errors).
_NORMAL = 1e10
#: The number of terms of the continued fraction. With 60 terms, relative errors are below 1e-10 for degrees of freedom
#: from 0.5 to 10,000.
_TERMS = 60
#: The largest number of steps of Halley's method, which usually needs two or three.
_MOST_STEPS = 50


def student_cdf(freedom: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    """Return P(T ≤ t) for Student's t with `freedom` > 0, which may be infinite. The shapes are broadcast.

    The lower tail is I_x(ν/2, 1/2) / 2 with x = ν / (ν + t²). Its relative error is small, even if the tail is tiny.
    """
    nu, value = np.broadcast_arrays(np.asarray(freedom, np.float64), np.asarray(t, np.float64))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = value**2
        tail = 0.5 * _incomplete_beta(nu / 2.0, np.full_like(nu, 0.5), nu / (nu + square), 1.0 / (1.0 + nu / square))
    normal = 0.5 * _map_values(math.erfc, np.abs(value) / math.sqrt(2.0))
    tail = np.where(nu > _NORMAL, normal, tail)
    return np.where(value > 0.0, 1.0 - tail, tail)


def student_quantile(freedom: npt.ArrayLike, probability: npt.ArrayLike) -> Floats:
    """Return the t with P(T ≤ t) = `probability`, for 0 < `probability` < 1. The shapes are broadcast.

    This is Halley's method for the log of the tail as a function of log t. It starts from the first terms of the
    Cornish-Fisher expansion (Abramowitz and Stegun, 26.7.5).
    """
    nu, p = np.broadcast_arrays(np.asarray(freedom, np.float64), np.asarray(probability, np.float64))
    tail = np.minimum(p, 1.0 - p)
    # the quantile of 1/2 is 0, which has no log
    tail = np.where(tail < 0.5, tail, 0.25)
    z = -_map_values(NormalDist().inv_cdf, tail)
    is_normal = nu > _NORMAL
    finite = np.where(is_normal, 1.0, nu)
    log_scale = -0.5 * np.log(finite) - _log_beta(finite / 2.0, np.full_like(finite, 0.5))
    logs = np.log(z + (z**3 + z) / (4.0 * finite) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * finite**2))
    for _ in range(_MOST_STEPS):
        t = np.exp(logs)
        current_tail = student_cdf(finite, -t)
        density = np.exp(log_scale - (finite + 1.0) / 2.0 * np.log1p(t**2 / finite))
        # the first two derivatives of f = log(current_tail / tail) by log t are -slope and -slope * bend
        slope = density * t / current_tail
        bend = 1.0 + slope - (finite + 1.0) * t**2 / (finite + t**2)
        newton = np.log(current_tail / tail) / slope
        # far from the root, the correction could reverse the step
        step = newton / np.maximum(1.0 + newton * bend / 2.0, 0.5)
        logs = logs + step
        # the size of the next step would be about the cube of this step
        if not np.any(np.abs(step[~is_normal]) > 1e-5):
            break
    t = np.where(is_normal, z, np.exp(logs))
    return np.where(p == 0.5, 0.0, np.where(p > 0.5, t, -t))


def f_survival(numerator: npt.ArrayLike, denominator: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Return P(F > value) for the F distribution with the degrees of freedom `numerator` and `denominator`.

    The shapes are broadcast. The result is I_x(d2/2, d1/2) with x = d2 / (d2 + d1 F) (DLMF 8.17).
    """
    d1, d2, f = np.broadcast_arrays(*(np.asarray(argument, np.float64) for argument in (numerator, denominator, value)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _incomplete_beta(d2 / 2.0, d1 / 2.0, d2 / (d2 + d1 * f), 1.0 / (1.0 + d2 / (d1 * f)))


def digamma(x: npt.ArrayLike) -> Floats:
    """Return ψ(x) for x > 0: its asymptotic series at x + 10 (DLMF 5.11.2), and the recurrence down to x (5.5.2)."""
    value = np.asarray(x, np.float64)
    z = value + 10.0
    series = np.log(z) - 1 / (2 * z) - 1 / (12 * z**2) + 1 / (120 * z**4) - 1 / (252 * z**6) + 1 / (240 * z**8)
    return np.asarray(series - 5 / (660 * z**10) - sum(1.0 / (value + k) for k in range(10)))


def trigamma(x: npt.ArrayLike) -> Floats:
    """Return ψ'(x) for x > 0, by the derivatives of the formulas of `digamma`."""
    value = np.asarray(x, np.float64)
    z = value + 10.0
    series = 1 / z + 1 / (2 * z**2) + 1 / (6 * z**3) - 1 / (30 * z**5) + 1 / (42 * z**7) - 1 / (30 * z**9)
    return np.asarray(series + 5 / (66 * z**11) + sum((value + k) ** -2.0 for k in range(10)))


def tetragamma(x: npt.ArrayLike) -> Floats:
    """Return ψ''(x) for x > 0, by the derivatives of the formulas of `trigamma`."""
    value = np.asarray(x, np.float64)
    z = value + 10.0
    series = -1 / z**2 - 1 / z**3 - 1 / (2 * z**4) + 1 / (6 * z**6) - 1 / (6 * z**8) + 3 / (10 * z**10)
    return np.asarray(series - 5 / (6 * z**12) - 2.0 * sum((value + k) ** -3.0 for k in range(10)))


def _incomplete_beta(a: Floats, b: Floats, x: Floats, y: Floats) -> Floats:
    """Return the regularized incomplete beta function I_x(a, b).

    `y` is 1 - x. It is an argument because its value may be smaller than the rounding error of 1 - x. The continued
    fraction DLMF 8.17.22 converges fast for x < (a + 1) / (a + b + 2). Otherwise, the result is 1 - I_y(b, a).
    """
    is_swapped = x > (a + 1.0) / (a + b + 2.0)
    a, b, x, y = np.where(is_swapped, (b, a, y, x), (a, b, x, y))
    log_front = a * np.log(x) + np.where(y < 1.0, b * np.log(y), 0.0) - _log_beta(a, b)
    part = np.exp(log_front) / (a * _continued_fraction(a, b, x))
    return np.where(is_swapped, 1.0 - part, part)


def _continued_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Return the continued fraction 1 + d1/(1 + d2/(1 + …)) of DLMF 8.17.22, evaluated from its last term."""
    m = np.arange(_TERMS // 2, dtype=np.float64).reshape(-1, *[1] * x.ndim)
    bases = a + 2.0 * m
    odd_terms = -(a + m) * (a + b + m) * x / (bases * (bases + 1.0))
    even_terms = m * (b - m) * x / ((bases - 1.0) * bases)
    value = np.ones_like(x)
    for index in range(_TERMS // 2 - 1, -1, -1):
        value = 1.0 + odd_terms[index] / value
        if index:
            value = 1.0 + even_terms[index] / value
    return value


def _log_beta(a: Floats, b: Floats) -> Floats:
    """Return log B(a, b). If an argument is large, the result uses a difference of Stirling's series (DLMF 5.11.1)."""
    large, small = np.maximum(a, b), np.minimum(a, b)
    correction = small - (large - 0.5) * np.log1p(small / large) - small * np.log(large + small)
    correction = correction + _stirling(large) - _stirling(large + small)
    exact_value = _map_values(math.lgamma, large) - _map_values(math.lgamma, large + small)
    return _map_values(math.lgamma, small) + np.where(large > 100.0, correction, exact_value)


def _stirling(x: Floats) -> Floats:
    return np.asarray(1.0 / (12.0 * x) - 1.0 / (360.0 * x**3) + 1.0 / (1260.0 * x**5))


def _map_values(function: Callable[[float], float], values: Floats) -> Floats:
    """Apply a function of `math` to each value."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)
