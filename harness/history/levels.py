"""The levels of a series of log ratios that also has spikes. `detection.py` tests the steps between them.

The values come from nightly runs, each with a standard error. Between two changes, a constant level is fitted to the
points. In the loss, a point counts for at most `CAP` standard deviations. So a single outlier is a spike, and only
several points that agree with each other are a level. Dynamic programming over a grid of levels finds the best levels
for all numbers of changes. Source: P. Fearnhead and G. Rigaill, "Changepoint detection in the presence of outliers",
Journal of the American Statistical Association 114, 2019. They describe the biweight loss and its functional pruning,
of which the grid is a simple form.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.analysis.distributions import Floats

#: The values of a series, and their standard errors (0 if unknown), both of shape (points,).
ValuesAndErrors = tuple[Sequence[float], Sequence[float]]

#: In the loss, a point counts for at most this many standard deviations.
CAP = 3.5

#: The smallest number of points on each side of a change.
FEWEST = 3

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
MAD = 1.4826

#: The smallest standard deviation of a point, because clocks have a limited resolution.
_RESOLUTION = 1e-6


@dataclass(frozen=True, slots=True)
class Segments:
    """The best levels of a series, before any test.

    `y` are the values, and `spread` their standard deviations, both of shape (points,). `places` are the indexes of the
    first points of all levels but the first.
    """

    y: Floats
    spread: Floats
    places: Sequence[int]


def fit_all_levels(series: Sequence[ValuesAndErrors], *, fewest: int, least: float) -> list[Segments]:
    """Return the best levels of several time series, of at least `fewest` points each.

    The values are log ratios, and must be finite, as their standard errors. A change of at most `least` (log scale) is
    ignored. Many series together take a fraction of the time, because most operations on one series are short. Raises
    ValueError for lists of different lengths, and for a value that isn't finite.
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
        fits.append(Segments(y, standard_errors, ()) if is_level else None)
        if not is_level:
            ys.append(y)
            all_errors.append(standard_errors)
    # a change affects one difference, and a spike two, which hardly affects the median
    variances = [(MAD * compute_median(np.abs(np.diff(y)))) ** 2 / 2.0 for y in ys]
    spreads = list(map(estimate_spreads, all_errors, variances))
    places = _find_places(ys, spreads, fewest)
    for _ in range(2):
        variances = list(map(compute_residual_variance, ys, spreads, places))
        spreads = list(map(estimate_spreads, all_errors, variances))
        places = _find_places(ys, spreads, fewest)
    found = map(Segments, ys, spreads, places)
    return [fit or next(found) for fit in fits]


def compute_median(values: Floats) -> float:
    """Return the median. For few values, np.median spends most of its time on checks."""
    sorted_values = np.sort(values)
    return float(sorted_values[(values.size - 1) // 2] + sorted_values[values.size // 2]) / 2.0


def estimate_spreads(errors: Floats, variance: float) -> Floats:
    """Return the standard deviation of each point, from its own error and the variation between runs; shape (points,).

    An error is uncertain, because it comes from few rounds. So its square is averaged with the square of the series'
    median error. `variance` is the total variance of a point. The part that errors don't explain is variation between
    runs.
    """
    error_variances = (errors**2 + compute_median(errors) ** 2) / 2.0
    run_variance = max(0.0, variance - compute_median(error_variances))
    return np.maximum(np.sqrt(error_variances + run_variance), _RESOLUTION)


def compute_residual_variance(y: Floats, spread: Floats, places: Sequence[int]) -> float:
    """Return the variance of points around their levels, without spikes."""
    parts = list_ranges(places, y.size)
    residuals = np.concatenate([y[a:b] - fit_level(y[a:b], spread[a:b]) for a, b in parts])
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
    step = compute_median(spread)
    low, high = float(medians.min()) - step, float(medians.max()) + step
    return np.linspace(low, high, min(_MOST_LEVELS, 2 + math.ceil(_LEVELS_PER_DEVIATION * (high - low) / step)))


def list_ranges(places: Sequence[int], nights: int) -> list[tuple[int, int]]:
    """Return the first point of each level, and the point after its last one."""
    return list(pairwise([0, *places, nights]))


def fit_level(y: Floats, spread: Floats) -> float:
    """Return the level with the least loss for some points, by iteration from the best point or the median."""
    weights = spread**-2.0
    sorted_values = np.sort(y)
    starts = sorted_values
    if y.size > _MOST_STARTS:
        starts = sorted_values[np.linspace(0, y.size - 1, _MOST_STARTS).astype(np.intp)]
    starts = np.append(starts, compute_median(y))
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
