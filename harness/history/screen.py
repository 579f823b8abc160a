"""The screen of nightly runs: which series are slower in the newest runs, so that they are measured again tonight.

A suspicion of the screen opens no issue. It only costs a confirmation, in which both sides run side by side. So the
screen is loose: its threshold follows from the number of confirmations that a person allows per month. The changes of
`detection` are for people, and need far more evidence. Others also let an algorithm propose and a person decide
(Daly, "The use of change point detection to identify software performance regressions in a continuous integration
system", ICPE 2020). Here, a new measurement decides. bench/replay/README.md compares this rule with others.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from harness.analysis.distributions import Floats, student_cdf
from harness.analysis.statistics import exp_limited
from harness.history.detection import ChangePoint
from harness.history.levels import MAD, compute_median
from harness.model.defaults import CONFIRMATIONS, MARGIN

#: The number of points before a window that show the usual level, at most and at least.
_LEVEL_POINTS, _FEWEST_POINTS = 30, 5

#: Increases up to this size (log scale) are ignored. It is below the margin, because a step fills a window only later.
_LEAST = math.log1p(MARGIN) * 2.0 / 3.0

#: An increase after a refuted one has to exceed the level since then by this many standard errors. Otherwise, it is the
#: same increase.
_NEW = 0.5

#: The limits of the threshold, in standard errors.
_LOWEST, _HIGHEST = 1.5, 4.5

#: The days of a month, and the number of independent windows per run.
_DAYS, _WINDOWS = 30.0, 1.5

#: The efficiency of the median absolute deviation: n values of it are worth this share of them in a standard deviation.
#: Source: P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation", JASA 88, 1993.
_EFFICIENCY = 0.37

#: The half width of a 95 % interval, in standard errors.
_NORMAL = 1.96

#: The variance of a median, as a multiple of the variance of a mean.
_MEDIAN_VARIANCE = math.pi / 2.0


class Window(NamedTuple):
    """The newest `points`, compared with the level until `gap` points earlier.

    `factor` multiplies the threshold. Single points have spikes, so windows of one and two points need more.
    """

    points: int
    gap: int
    factor: float


#: A step is seen in the first window that it fills. The last one is for a drift: it compares a week with the month that
#: ended a month earlier.
WINDOWS = (Window(1, 0, 2.0), Window(2, 0, 1.3), Window(3, 0, 1.0), Window(7, 30, 1.3))


class Suspicion(NamedTuple):
    """An increase: its `change` starts at the end of the earlier level, and `is_drift` if it took a month.

    `errors` is its size in standard errors. `score` is the normal value that is as unlikely as this many errors,
    divided by the factor of the window.
    """

    change: ChangePoint
    errors: float
    score: float
    is_drift: bool


class Past(NamedTuple):
    """What is known of a series: the points of its present level start at `level`.

    A measurement side by side saw all points before `fresh`. If it refuted an increase, that one started at `refuted`.
    """

    level: int = 0
    fresh: int = 0
    refuted: int | None = None


def find_threshold(series: int, per_month: float = CONFIRMATIONS) -> float:
    """Return the threshold (in standard errors) at which `series` unchanged series have this many suspicions per month.

    It assumes one run per day.
    """
    share = per_month / (_WINDOWS * _DAYS * max(1, series))
    return min(_HIGHEST, max(_LOWEST, -NormalDist().inv_cdf(min(0.5, share))))


def screen(values: Sequence[float], threshold: float, past: Past) -> Suspicion | None:
    """Return the increase in the newest of these log ratios, or None. It starts where it is the clearest."""
    y = np.asarray(values, np.float64)
    suspicions = [found for window in WINDOWS if (found := _compare(y, window, past)) and found.score > threshold]
    return max(suspicions, key=lambda found: found.errors, default=None)


def _compare(y: Floats, window: Window, past: Past) -> Suspicion | None:
    start = y.size - window.points
    end = start - window.gap
    # a drift that was refuted once is only seen again in points that came later
    first = max(past.level, past.fresh if window.gap else 0, end - _LEVEL_POINTS)
    all_before = y[max(0, end - _LEVEL_POINTS) : max(0, end)]
    if all_before.size < _FEWEST_POINTS or first >= end or start < past.fresh:
        return None
    before, newest = y[first:end], y[start:]
    usual = before if before.size > _FEWEST_POINTS else all_before
    deviation = _estimate_deviation(usual)
    change, error = _compare_levels(before, newest, end, deviation)
    step = change.after - change.before
    if step <= _LEAST:
        return None
    if past.refuted is not None and past.refuted < start:
        other, other_error = _compare_levels(y[past.refuted : start], newest, start, deviation)
        if other.after - other.before <= _NEW * other_error:
            return None
    p = float(student_cdf(max(2.0, _EFFICIENCY * usual.size), -step / error / window.factor))
    return Suspicion(change, step / error, -NormalDist().inv_cdf(max(p, 1e-300)), window.gap > 0)


def measure_step(values: Sequence[float], start: int, index: int, end: int) -> ChangePoint:
    """Return the change at point `index` of a series, between the levels from `start` and up to `end`."""
    y = np.asarray(values, np.float64)
    before, after = y[max(start, index - _LEVEL_POINTS) : index], y[index:end]
    return _compare_levels(before, after, index, _estimate_deviation(before))[0]


def _compare_levels(before: Floats, after: Floats, index: int, deviation: float) -> tuple[ChangePoint, float]:
    """Return the change between the median of the points before and the mean of those after, and its standard error."""
    level, newest = compute_median(before), float(after.mean())
    error = deviation * math.sqrt(1.0 / after.size + _MEDIAN_VARIANCE / before.size)
    ratio, low, high = (exp_limited(newest - level + k * error) for k in (0.0, -_NORMAL, _NORMAL))
    return ChangePoint(index, level, newest, ratio, low, high, 1.0), error


def _estimate_deviation(values: Floats) -> float:
    """Return the standard deviation of values, without spikes; at least 0.1 %."""
    return max(1e-3, MAD * compute_median(np.abs(values - compute_median(values))))
