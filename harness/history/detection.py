"""Where a series of log ratios changes its level: change points, in the presence of spikes.

The values are those of nights, each with a standard error. A level is fitted to the nights between two changes by a
loss that counts a night for at most `CAP` standard deviations, so that a single night that is far off is a spike, and
only several nights that agree with one another are a level. The best levels of all numbers of changes are found
together, by dynamic programming over a grid of levels. Source: P. Fearnhead and G. Rigaill, "Changepoint detection in
the presence of outliers", Journal of the American Statistical Association 114, 2019 (the biweight loss, and its
functional pruning, of which the grid is a simple form).

What is found is then tested, as in M. Fleming et al., "Hunter: using change point detection to hunt for performance
regressions", ICPE 2023: the weakest change is taken away, and its neighbours tested anew, until each that is left is
significant and large enough. docs/simulation.md says how often that is right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.statistics import Floats, exp, student

#: A night counts for at most so many standard deviations.
CAP = 3.5

#: A change has this many nights on either side at least.
FEWEST = 3

#: The chance that noise alone shows a change in a series, above which none is told.
P = 1e-5

#: A change is larger than this, on the log scale: the margin below which two cells count as the same.
LEAST = math.log1p(0.03)

#: What a change has to gain to be looked at (the square of standard deviations): more than two nights can. It is tested
#: after.
_PENALTY = 20.0

#: Levels lie on a grid of this many points a standard deviation, at most so many in all.
_FINE, _MOST = 4.0, 1500

#: The standard deviation of normal values is so many times the median of their distances from the middle.
_MAD = 1.4826

#: Errors below it are taken for it: clocks tell no less.
_RESOLUTION = 1e-6


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of level between the nights `index - 1` and `index`.

    `before` and `after` are the levels (log ratios) of the nights on either side, up to the next changes; `ratio` is
    exp(after - before), with its 95 % interval from `low` to `high`; `p` is the chance that noise alone shows as much
    anywhere in these nights.
    """

    index: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p: float


def change_points(
    values: Sequence[float],
    errors: Sequence[float],
    *,
    fewest: int = FEWEST,
    p: float = P,
    least: float = LEAST,
) -> list[ChangePoint]:
    """The changes of level in a series, in order.

    `values` are log ratios, `errors` their standard errors (0 where that is not known), both of shape (nights,) and
    finite. A change has `fewest` nights on either side, is by chance with a probability below `p`, and is larger than
    `least` (log scale). Raises ValueError for lists that differ in length, and for a value that is not finite.
    """
    y, given = np.asarray(values, np.float64), np.asarray(errors, np.float64)
    if y.shape != given.shape or not (np.isfinite(y).all() and np.isfinite(given).all() and (given >= 0.0).all()):
        raise ValueError("change_points takes as many standard errors (0 or more) as values, all of them finite.")
    fewest = max(2, fewest)
    # levels are means of values: where these are as close as that, no two levels are farther apart
    if y.size < 2 * fewest or float(np.ptp(y)) <= least:
        return []
    # a change or a spike moves one difference or two: their median does not mind
    spread = _spreads(given, (_MAD * float(np.median(np.abs(np.diff(y))))) ** 2 / 2.0)
    for _ in range(2):
        places = _segmented(y, spread, fewest)
        spread = _spreads(given, _residual(y, spread, places))
    return _tested(y, spread, _segmented(y, spread, fewest), p, least)


def _spreads(errors: Floats, variance: float) -> Floats:
    """Each night's standard deviation: of its own error, and of what moves whole nights; shape (nights,).

    An error is of few rounds: half of its square is the series' median one. What `variance`, which is all of a night's,
    has beyond that is between nights.
    """
    within = (errors**2 + float(np.median(errors)) ** 2) / 2.0
    between = max(0.0, variance - float(np.median(within)))
    return np.maximum(np.sqrt(within + between), _RESOLUTION)


def _residual(y: Floats, spread: Floats, places: Sequence[int]) -> float:
    """The variance of nights around their levels, spikes left out."""
    parts = _between(places, y.size)
    residuals = np.concatenate([y[a:b] - _level(y[a:b], spread[a:b]) for a, b in parts])
    near: Floats = residuals[np.abs(residuals) < CAP * spread]
    return float(near @ near) / max(1, near.size - len(parts))


def _segmented(y: Floats, spread: Floats, fewest: int) -> list[int]:
    """Where the best levels change: indices of the first nights of each level but the first."""
    levels = _levels(y, spread)
    losses = np.minimum(((y[:, None] - levels) / spread[:, None]) ** 2, CAP**2)  # (nights, levels)
    sums = np.vstack([np.zeros(levels.size), losses.cumsum(axis=0)])
    # the least loss of the first t nights that end in each level, and where that level began
    best, began = sums[fewest].copy(), np.zeros(levels.size, np.intp)
    least = {0: 0.0, fewest: float(best.min())}  # by nights: what any level ends in
    start = {fewest: 0}
    for t in range(fewest + 1, y.size + 1):
        best += losses[t - 1]
        since = t - fewest
        if since in start:
            anew = least[since] + _PENALTY + sums[t] - sums[since]
            better = anew < best
            best[better], began[better] = anew[better], since
        at = int(best.argmin())
        least[t], start[t] = float(best[at]), int(began[at])
    found, t = [], y.size
    while start[t]:
        t = start[t]
        found.append(t)
    return found[::-1]


def _levels(y: Floats, spread: Floats) -> Floats:
    """The grid: levels that three nights in a row could have."""
    trios = np.median(np.lib.stride_tricks.sliding_window_view(y, min(3, y.size)), axis=-1)
    step = float(np.median(spread))
    low, high = float(trios.min()) - step, float(trios.max()) + step
    return np.linspace(low, high, min(_MOST, 2 + math.ceil(_FINE * (high - low) / step)))


def _between(places: Sequence[int], nights: int) -> list[tuple[int, int]]:
    return list(pairwise([0, *places, nights]))


def _level(y: Floats, spread: Floats) -> float:
    """The level of some nights that has the least loss, from the best night or their median on."""
    weights = spread**-2.0
    starts = np.append(y, np.median(y))
    level = float(starts[int(_losses(y, spread, starts).argmin())])
    for _ in range(10):
        near = np.abs(y - level) < CAP * spread
        if not near.any():
            break
        moved = float(np.average(y[near], weights=weights[near]))
        if moved == level:
            break
        level = moved
    return level


def _losses(y: Floats, spread: Floats, levels: Floats) -> Floats:
    """What each level loses over some nights; shape (levels,)."""
    lost: Floats = np.minimum(((y - levels[:, None]) / spread) ** 2, CAP**2).sum(axis=1)
    return lost


def _tested(y: Floats, spread: Floats, places: list[int], p: float, least: float) -> list[ChangePoint]:
    """The changes that hold, after the weakest that do not were taken away one by one."""
    places = list(places)
    while places:
        freedom = max(1, y.size - len(places) - 1)
        parts = _between(places, y.size)
        found = [_change(y[a:b], spread[a:b], a, at, freedom) for (a, at), (_, b) in pairwise(parts)]
        failed = [each for each in found if not (each.p < p and abs(each.after - each.before) > least)]
        if not failed:
            return found
        places.remove(max(failed, key=lambda each: (each.p, -abs(each.after - each.before))).index)
    return []


def _change(y: Floats, spread: Floats, first: int, at: int, freedom: int) -> ChangePoint:
    """The change at night `at`, of nights from `first` on."""
    from scipy.special import stdtr

    cut = at - first
    before, one = _fitted(y[:cut], spread[:cut])
    after, other = _fitted(y[cut:], spread[cut:])
    step, error = after - before, math.sqrt(one + other)
    # the most of many places, of which neighbours share nearly all: as good as 2 ln n of them are apart
    p = min(1.0, 2.0 * float(stdtr(freedom, -abs(step) / error)) * 2.0 * math.log(y.size))
    # a slope is no step
    if _lost(y, spread, np.where(np.arange(y.size) < cut, before, after)) >= _lost(y, spread, _line(y, spread)):
        p = 1.0
    half = student(freedom) * error
    return ChangePoint(at, before, after, exp(step), exp(step - half), exp(step + half), p)


def _fitted(y: Floats, spread: Floats) -> tuple[float, float]:
    """The level of some nights, and its variance."""
    level = _level(y, spread)
    return level, 1.0 / float((spread[np.abs(y - level) < CAP * spread] ** -2.0).sum())


def _lost(y: Floats, spread: Floats, fitted: Floats) -> float:
    return float(np.minimum(((y - fitted) / spread) ** 2, CAP**2).sum())


def _line(y: Floats, spread: Floats) -> Floats:
    """The straight line through some nights, spikes left out."""
    nights = np.arange(y.size, dtype=np.float64)
    near, line = np.ones(y.size, bool), y.copy()
    for _ in range(5):
        line = np.asarray(np.polyval(np.polyfit(nights[near], y[near], 1, w=1.0 / spread[near]), nights), np.float64)
        near = np.abs(y - line) < CAP * spread
        if near.sum() < 3:
            break
    return line
