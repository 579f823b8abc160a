"""Change points in a series of log ratios that also has spikes.

The values come from nightly runs, each with a standard error. Between two changes, a constant level is fitted to the
points. In the loss, a point counts for at most `CAP` standard deviations. So a single outlier is a spike, and only
several points that agree with each other are a level. Dynamic programming over a grid of levels finds the best levels
for all numbers of changes. Source: P. Fearnhead and G. Rigaill, "Changepoint detection in the presence of outliers",
Journal of the American Statistical Association 114, 2019. They describe the biweight loss and its functional pruning,
of which the grid is a simple form.

Then the changes are tested. The weakest change that fails is removed, and its neighbors are tested again, until each
remaining change is significant and large enough. Source: M. Fleming et al., "Hunter: using change point detection to
hunt for performance regressions", ICPE 2023. docs/dev/validation/simulation-nightly.md shows the error rates.

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
from numpy.typing import NDArray

from harness.analysis.distributions import Floats, student_cdf, student_quantile
from harness.analysis.statistics import exp_limited, student
from harness.model.defaults import MARGIN

#: In the loss, a point counts for at most this many standard deviations.
CAP = 3.5

#: The smallest number of points on each side of a change.
FEWEST = 3

#: A change is reported if the probability that noise alone shows such a change in the series is at most this.
P = 1e-5

#: Changes up to this size, on the log scale, are ignored. It is the margin below which two cells count as equal.
LEAST = math.log1p(MARGIN)

#: The probability of finding a detectable change if the errors are known. In simulations that estimate the errors from
#: 10 to 90 points, it was 68 to 94 %, with a median of 86 %.
POWER = 0.9

#: The penalty per change, in squared standard deviations. Two outliers can't reduce the loss by that much. A change
#: that reduces the loss by more is tested later.
_PENALTY = 20.0

#: The number of levels per standard deviation in the grid, and the largest number of levels in the grid.
_LEVELS_PER_DEVIATION, _MOST_LEVELS = 4.0, 1500

#: The largest number of losses in a batch of series, which limits its memory to some megabytes.
_MOST_LOSSES = 1_000_000

#: The largest number of start values from which a level is fitted.
_MOST_STARTS = 200

#: The standard deviation of normal values as a multiple of their median absolute deviation.
_MAD = 1.4826

#: The smallest standard deviation of a point, because clocks have a limited resolution.
_RESOLUTION = 1e-6

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


@dataclass(frozen=True, slots=True)
class Segments:
    """The best levels of a series, before any test.

    `y` are the values, and `spread` their standard deviations, both of shape (points,). `places` are the indexes of the
    first points of all levels but the first. `shortest` is the length of the shortest level in any step of the fit. So
    the result stays the same if each level must have at least that many points.
    """

    y: Floats
    spread: Floats
    places: Sequence[int]
    shortest: int


def fit_levels(values: Sequence[float], errors: Sequence[float], *, fewest: int, least: float) -> Segments:
    """Return the best levels of a time series, of at least `fewest` points each.

    `values` are log ratios, `errors` their standard errors (0 if unknown), both of shape (points,) and finite. A change
    of at most `least` (log scale) is ignored. Raises ValueError for lists of different lengths, and for a value that
    isn't finite.
    """
    (segments,) = fit_all_levels([(values, errors)], fewest=fewest, least=least)
    return segments


def fit_all_levels(
    series: Sequence[tuple[Sequence[float], Sequence[float]]], *, fewest: int, least: float
) -> list[Segments]:
    """Return the best levels of several time series, as `fit_levels` does for one.

    Many series together take a fraction of the time, because most operations on one series are short.
    """
    fewest = max(2, fewest)
    fits: list[Segments | None] = []
    ys, all_errors = [], []
    for values, errors in series:
        y, standard_errors = np.asarray(values, np.float64), np.asarray(errors, np.float64)
        if y.shape != standard_errors.shape or not (
            np.isfinite(y).all() and np.isfinite(standard_errors).all() and (standard_errors >= 0.0).all()
        ):
            raise ValueError("A series needs one standard error (0 or more) per value, and all numbers must be finite.")
        # levels are means of values: if values are this close, so are levels
        is_level = y.size < 2 * fewest or float(np.ptp(y)) <= least
        fits.append(Segments(y, standard_errors, (), y.size) if is_level else None)
        if not is_level:
            ys.append(y)
            all_errors.append(standard_errors)
    # a change affects one difference, and a spike two, which hardly affects the median
    variances = [(_MAD * _compute_median(np.abs(np.diff(y)))) ** 2 / 2.0 for y in ys]
    spreads = list(map(_estimate_spreads, all_errors, variances))
    places_of_steps = [_find_places(ys, spreads, fewest)]
    for _ in range(2):
        variances = list(map(_compute_residual_variance, ys, spreads, places_of_steps[-1]))
        spreads = list(map(_estimate_spreads, all_errors, variances))
        places_of_steps.append(_find_places(ys, spreads, fewest))
    found = iter(
        Segments(y, spread, places[-1], min(b - a for step in places for a, b in _list_ranges(step, y.size)))
        for y, spread, places in zip(ys, spreads, zip(*places_of_steps, strict=True), strict=True)
    )
    return [fit or next(found) for fit in fits]


def _compute_median(values: Floats) -> float:
    """Return the median. For few values, np.median spends most of its time on checks."""
    sorted_values = np.sort(values)
    return float(sorted_values[(values.size - 1) // 2] + sorted_values[values.size // 2]) / 2.0


def _estimate_spreads(errors: Floats, variance: float) -> Floats:
    """Return the standard deviation of each point, from its own error and the variation between runs; shape (points,).

    An error is uncertain, because it comes from few rounds. So its square is averaged with the square of the series'
    median error. `variance` is the total variance of a point. The part that errors don't explain is variation between
    runs.
    """
    error_variances = (errors**2 + _compute_median(errors) ** 2) / 2.0
    run_variance = max(0.0, variance - _compute_median(error_variances))
    return np.maximum(np.sqrt(error_variances + run_variance), _RESOLUTION)


def _compute_residual_variance(y: Floats, spread: Floats, places: Sequence[int]) -> float:
    """Return the variance of points around their levels, without spikes."""
    parts = _list_ranges(places, y.size)
    residuals = np.concatenate([y[a:b] - _fit_level(y[a:b], spread[a:b]) for a, b in parts])
    inliers: Floats = residuals[np.abs(residuals) < CAP * spread]
    return float(inliers @ inliers) / max(1, inliers.size - len(parts))


def _find_places(ys: Sequence[Floats], spreads: Sequence[Floats], fewest: int) -> list[list[int]]:
    """Return, for each series, the indexes at which the levels of its best fit start, without the first level."""
    grids = [_make_grid(y, spread) for y, spread in zip(ys, spreads, strict=True)]
    order = sorted(range(len(ys)), key=lambda number: (ys[number].size, grids[number].size))
    places: list[list[int]] = [[] for _ in ys]
    while order:
        # a batch has series of one length, with similar numbers of levels, and a limited size
        first = order[0]
        points, most_levels = ys[first].size, 1.25 * grids[first].size
        most_series = max(1, int(_MOST_LOSSES / (points * most_levels)))
        batch = [
            number for number in order[:most_series] if ys[number].size == points and grids[number].size <= most_levels
        ]
        order = order[len(batch) :]
        levels = max(grids[number].size for number in batch)
        # the last level is repeated, which changes nothing, because the first one of equal losses counts
        padded_grids = np.array([np.pad(grids[number], (0, levels - grids[number].size), "edge") for number in batch])
        y, spread = (np.array([each[number] for number in batch]) for each in (ys, spreads))
        for number, found in zip(batch, _find_places_of_batch(y, spread, padded_grids, fewest), strict=True):
            places[number] = found
    return places


def _find_places_of_batch(y: Floats, spread: Floats, levels: Floats, fewest: int) -> list[list[int]]:
    """Return the result of `_find_places`. `y` has the shape (series, points), `levels` (series, levels)."""
    series, points = y.shape
    sums = np.zeros((points + 1, *levels.shape))  # the loss of the first t points to each level
    scaled = y.T[:, :, None] - levels
    scaled /= spread.T[:, :, None]
    np.cumsum(_cap_losses(scaled), axis=0, out=sums[1:])
    # for the first t points: the least loss if a new level starts after them, and their last level
    start_losses = np.full((points + 1, series), np.inf)
    last_levels = np.zeros((points + 1, series), np.intp)
    start_losses[0] = 0.0
    # for each level, the minimum over all starts of: the least loss before the start, minus the level's loss up to it
    offsets, losses, rows = np.zeros(levels.shape), np.empty(levels.shape), np.arange(series)
    for t in range(fewest, points + 1):
        start = t - fewest
        if start >= fewest:
            np.subtract(start_losses[start][:, None], sums[start], out=losses)
            np.minimum(offsets, losses, out=offsets)
        np.add(offsets, sums[t], out=losses)
        last_levels[t] = best = losses.argmin(axis=1)
        start_losses[t] = losses[rows, best] + _PENALTY
    return [_trace_back(start_losses[:, row], sums[:, row], last_levels[:, row], fewest) for row in rows]


def _trace_back(start_losses: Floats, sums: Floats, last_levels: NDArray[np.intp], fewest: int) -> list[int]:
    places, t = [], start_losses.size - 1
    while t := int((start_losses[: t - fewest + 1] - sums[: t - fewest + 1, last_levels[t]]).argmin()):
        places.append(t)
    return places[::-1]


def _make_grid(y: Floats, spread: Floats) -> Floats:
    """Return the grid of levels. It covers the medians of three successive points."""
    first, second, third = y[:-2], y[1:-1], y[2:]
    medians = np.maximum(np.minimum(first, second), np.minimum(np.maximum(first, second), third))
    step = _compute_median(spread)
    low, high = float(medians.min()) - step, float(medians.max()) + step
    return np.linspace(low, high, min(_MOST_LEVELS, 2 + math.ceil(_LEVELS_PER_DEVIATION * (high - low) / step)))


def _list_ranges(places: Sequence[int], nights: int) -> list[tuple[int, int]]:
    return list(pairwise([0, *places, nights]))


def _fit_level(y: Floats, spread: Floats) -> float:
    """Return the level with the least loss for some points, by iteration from the best point or the median."""
    weights = spread**-2.0
    sorted_values = np.sort(y)
    starts = sorted_values
    if y.size > _MOST_STARTS:
        starts = sorted_values[np.linspace(0, y.size - 1, _MOST_STARTS).astype(np.intp)]
    starts = np.append(starts, _compute_median(y))
    level = float(starts[int(_compute_losses(y, spread, starts).argmin())])
    for _ in range(10):
        inlier_weights = weights * (np.abs(y - level) < CAP * spread)
        total = float(inlier_weights.sum())
        if not total:
            break
        new_level = float(inlier_weights @ y) / total
        if new_level == level:
            break
        level = new_level
    return level


def _compute_losses(y: Floats, spread: Floats, levels: Floats) -> Floats:
    """Return the loss of some points for each level; shape (levels,)."""
    scaled = y - levels[:, None]
    scaled /= spread
    losses: Floats = _cap_losses(scaled).sum(axis=1)
    return losses


def _cap_losses(scaled: Floats) -> Floats:
    """Replace deviations, in standard deviations, with their losses, and return them.

    Without new arrays, the search for changes in a year of 500 series is 1.2 times as fast.
    """
    np.multiply(scaled, scaled, out=scaled)
    return np.minimum(scaled, CAP**2, out=scaled)


def keep_significant(segments: Segments, *, p: float, least: float, is_independent: bool = False) -> list[ChangePoint]:
    """Repeatedly remove the weakest change that fails the tests, and return the changes that pass.

    A change passes if its p is below `p` and its size on the log scale is above `least`. The errors of levels are
    inflated for the correlation of neighboring points, unless `is_independent` is true.
    """
    places = list(segments.places)
    by_edges: dict[tuple[int, int, int], _Step] = {}  # removing a change only affects its neighbors
    while places:
        ranges = _list_ranges(places, segments.y.size)
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


def compute_detectable_change(values: Sequence[float], errors: Sequence[float], nights: int = FEWEST) -> float | None:
    """Return the smallest change that is usually detected within `nights` more points, as a ratio above 1.

    The probability is near POWER. A change is detected if `keep_significant` returns it. The points after the last
    change determine the variability of the series. If there are fewer than `FEWEST` of them, the result is None. For
    the arguments and errors, see `fit_levels`.
    """
    segments = fit_levels(values, errors, fewest=FEWEST, least=LEAST)
    changes = keep_significant(segments, p=P, least=LEAST)
    start = changes[-1].index if changes else 0
    y, point_errors = segments.y[start:], np.asarray(errors, np.float64)[start:]
    if y.size < FEWEST:
        return None
    spread = _estimate_spreads(point_errors, (_MAD * _compute_median(np.abs(np.diff(y)))) ** 2 / 2.0)
    spread = _estimate_spreads(point_errors, _compute_residual_variance(y, spread, ()))
    level, variance = _fit_level_variance(y, spread)
    # with the change, there are two levels
    inflation = _compute_inflation(_compute_lag_correlation((y - level) / spread, (), 2))
    error = inflation * math.sqrt(variance + _compute_median(spread) ** 2 / nights)
    freedom = max(1, segments.y.size + nights - len(changes) - 2)
    # allow for many places, as in `_make_change`
    critical_size = float(student_quantile(freedom, 1.0 - P / (4.0 * math.log(y.size + nights)))) * error
    return exp_limited(max(LEAST, critical_size) + float(student_quantile(freedom, POWER)) * error)


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
    return _compute_lag_correlation(residuals, places, len(levels))


def _compute_lag_correlation(residuals: Floats, places: Sequence[int], levels: int) -> float:
    """Return the lag-1 correlation of residuals around some levels, as `_estimate_correlation` does."""
    is_inlier = np.abs(residuals) < CAP
    residuals = np.where(is_inlier, residuals, 0.0)
    squares = float(residuals @ residuals)
    if not squares:
        return 0.0
    pairs = residuals[1:] * residuals[:-1]
    pairs[[place - 1 for place in places]] = 0.0  # two points of different levels
    raw_correlation = float(pairs.sum()) / squares
    correlation = raw_correlation + (1.0 + 3.0 * raw_correlation) * levels / np.count_nonzero(is_inlier)
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
    level = _fit_level(y, spread)
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
