"""The changes in a time series: the steps between its levels (`levels.py`) that pass a test.

The weakest change that fails is removed, and its neighbors are tested again, until each
remaining change is significant and large enough. Source: M. Fleming et al., "Hunter: using change point detection to
hunt for performance regressions", ICPE 2023. bench/simulation/nightly.md shows the error rates.

If something affects the machine for some days, the ratios of neighboring points are correlated. Then levels differ by
more than the errors of independent points explain. So the errors of levels are inflated by a factor that follows from
the lag-1 correlation of the residuals (see `_estimate_correlation` and `_compute_inflation`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from harness.analysis.distributions import Floats, student_cdf
from harness.analysis.statistics import exp_limited, student
from harness.history.levels import CAP, FEWEST, Segments, ValuesAndErrors, fit_all_levels, fit_level, list_ranges
from harness.model.defaults import MARGIN

#: A change is reported if the probability that noise alone shows such a change in the series is at most this.
P = 1e-5

#: Changes up to this size, on the log scale, are ignored. It is the margin below which two cells count as equal.
LEAST = math.log1p(MARGIN)

#: The largest lag-1 correlation for which errors are inflated, by a factor of 4.4. At 1, the factor would be infinite.
_MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of level between the points `index - 1` and `index`.

    `before` and `after` are the levels (log ratios) on both sides, up to the next changes. `ratio` is
    exp(after - before), with its 95 % interval from `low` to `high`. `p` is the probability that noise alone shows such
    a change anywhere in the series. The interval and `p` allow for the correlation of neighboring points, unless
    `keep_significant` treats the points as independent.
    """

    index: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p: float


def detect_changes(series: Sequence[ValuesAndErrors]) -> list[list[ChangePoint]]:
    """Return the changes of each series. Raises ValueError as `fit_all_levels` does."""
    fits = fit_all_levels(series, fewest=FEWEST, least=LEAST)
    return [keep_significant(fit, p=P, least=LEAST) for fit in fits]


def keep_significant(segments: Segments, *, p: float, least: float, is_independent: bool = False) -> list[ChangePoint]:
    """Repeatedly remove the weakest change that fails the tests, and return the changes that pass.

    A change passes if its p is below `p` and its size on the log scale is above `least`. The errors of levels are
    inflated for the correlation of neighboring points, unless `is_independent` is true.
    """
    places = list(segments.places)
    by_edges: dict[tuple[int, int, int], _Step] = {}  # removing a change only affects its neighbors
    while places:
        ranges = list_ranges(places, segments.y.size)
        for (a, cut), (_, b) in pairwise(ranges):
            if (a, cut, b) not in by_edges:
                by_edges[a, cut, b] = _fit_step(segments.y[a:b], segments.spread[a:b], cut - a)
        steps = [by_edges[a, cut, b] for (a, cut), (_, b) in pairwise(ranges)]
        # levels that follow a slow drift hide the correlation, so estimate it again after each removal
        inflation = 1.0 if is_independent else _compute_inflation(_estimate_correlation(segments, places, steps))
        freedom = max(1, segments.y.size - len(places) - 1)
        changes = [
            _make_change(step, cut, b - a, freedom, inflation)
            for step, ((a, cut), (_, b)) in zip(steps, pairwise(ranges), strict=True)
        ]
        failures = [change for change in changes if not (change.p < p and abs(change.after - change.before) > least)]
        if not failures:
            return changes
        places.remove(max(failures, key=lambda change: (change.p, -abs(change.after - change.before))).index)
    return []


def _estimate_correlation(segments: Segments, places: Sequence[int], steps: Sequence["_Step"]) -> float:
    """Return the lag-1 correlation of the points around their levels, from 0 to `_MOST_CORRELATION`, without spikes.

    `steps` are the steps between these levels, one at each place.

    The correlation of residuals around fitted levels is too low, by (1 + 3 phi)/n for each fitted mean. So this amount
    is added. The estimate itself serves as phi, which limits the correction if there are few points. A negative
    correlation counts as 0, so that errors never shrink. Sources: M. G. Kendall, "Note on bias in the estimation of
    autocorrelation", and F. H. C. Marriott and J. A. Pope, "Bias in the estimation of autocorrelations", both in
    Biometrika 41, 1954.
    """
    levels = [steps[0].before, *(step.after for step in steps)]
    residuals = (segments.y - np.repeat(levels, np.diff([0, *places, segments.y.size]))) / segments.spread
    is_inlier = np.abs(residuals) < CAP
    residuals = np.where(is_inlier, residuals, 0.0)
    squares = float(residuals @ residuals)
    if not squares:
        return 0.0
    pairs = residuals[1:] * residuals[:-1]
    pairs[[place - 1 for place in places]] = 0.0  # two points of different levels
    raw_correlation = float(pairs.sum()) / squares
    correlation = raw_correlation + (1.0 + 3.0 * raw_correlation) * len(levels) / np.count_nonzero(is_inlier)
    return min(_MOST_CORRELATION, max(0.0, correlation))


def _compute_inflation(correlation: float) -> float:
    """Return the factor by which correlation increases the error of a mean of points.

    n points of a first-order autoregression are worth n (1 - phi)/(1 + phi) independent ones. Source: G. V. Bayley and
    J. M. Hammersley, "The 'effective' number of independent observations in an autocorrelated time series", Supplement
    to the Journal of the Royal Statistical Society 8, 1946. The formula is for many points. For a level of few points,
    the factor is too large, which reduces the power but doesn't cause false changes.
    """
    return math.sqrt((1.0 + correlation) / (1.0 - correlation))


class _Step(NamedTuple):
    """The levels before and after a change, their difference's standard error, and whether it is a slope."""

    before: float
    after: float
    error: float
    is_slope: bool


def _fit_step(y: Floats, spread: Floats, cut: int) -> _Step:
    """Return the step between two levels, which are fitted to the points before `cut` and from `cut` on."""
    before, before_variance = _fit_level_variance(y[:cut], spread[:cut])
    after, after_variance = _fit_level_variance(y[cut:], spread[cut:])
    levels = np.where(np.arange(y.size) < cut, before, after)
    line = _fit_line(y, spread)
    # a line that treats the points of one side as spikes doesn't explain the change
    is_inlier = np.abs(y - line) < CAP * spread
    fits_both_sides = min(is_inlier[:cut].mean(), is_inlier[cut:].mean()) >= 0.5
    is_slope = fits_both_sides and _sum_loss(y, spread, levels) >= _sum_loss(y, spread, line)
    return _Step(before, after, math.sqrt(before_variance + after_variance), is_slope)


def _make_change(levels: _Step, index: int, nights: int, freedom: int, inflation: float) -> ChangePoint:
    """Return the change at point `index`. `nights` is the number of points in both levels, `inflation` is a factor."""
    step, error = levels.after - levels.before, levels.error * inflation
    # the largest of many places counts; neighboring places are nearly the same, so about 2 ln n are independent
    p = min(1.0, 2.0 * float(student_cdf(freedom, -abs(step) / error)) * 2.0 * math.log(nights))
    half_width = student(freedom) * error
    return ChangePoint(
        index,
        levels.before,
        levels.after,
        exp_limited(step),
        exp_limited(step - half_width),
        exp_limited(step + half_width),
        1.0 if levels.is_slope else p,
    )


def _fit_level_variance(y: Floats, spread: Floats) -> tuple[float, float]:
    """Return the level of some points, and its variance."""
    level = fit_level(y, spread)
    return level, 1.0 / float((spread[np.abs(y - level) < CAP * spread] ** -2.0).sum())


def _sum_loss(y: Floats, spread: Floats, model: Floats) -> float:
    return float(np.minimum(((y - model) / spread) ** 2, CAP**2).sum())


def _fit_line(y: Floats, spread: Floats) -> Floats:
    """Return the values of a straight line fitted to some points, without spikes; shape (points,)."""
    nights = np.arange(y.size, dtype=np.float64)
    weights = spread**-2.0
    inlier_weights, line = weights, y
    for _ in range(5):
        total = float(inlier_weights.sum())
        middle, level = float(inlier_weights @ nights) / total, float(inlier_weights @ y) / total
        deviations = nights - middle
        weighted_deviations = inlier_weights * deviations
        line = level + deviations * (float(weighted_deviations @ y) / float(weighted_deviations @ deviations))
        inlier_weights = weights * (np.abs(y - line) < CAP * spread)
        if np.count_nonzero(inlier_weights) < 3:
            break
    return line
