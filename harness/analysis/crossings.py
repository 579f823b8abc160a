"""Crossovers of two curves along a sweep, with their uncertainty.

At each size of the sweep, each round gives two times, and their log ratio. Between neighbouring sizes, a time is
assumed to be linear in the size, in every round. Ratios of such lines are curves. The curves are followed in small
steps (`refine_sizes`). Between these steps, they are linear in the log of the size (in the size itself, if a size isn't
above 0). A crossover is where the mean of the rounds' log ratios is 0.

Its interval contains the sizes at which a t test over the rounds doesn't reject "both take equally long". So the test
is inverted, as E. C. Fieller does for a ratio of means, "Some problems in interval estimation", Journal of the Royal
Statistical Society B 16, 1954. As in his method, the set can consist of several intervals, can be unbounded (it reaches
an end of the sweep), and can contain sizes where the mean doesn't cross. The result contains the whole set. So whatever
the number of crossovers is, the set contains each of them with 95 % confidence.

Sizes are paired by round: the test uses each round's own value on its line. This is exact for normal values, whatever
the correlation of two sizes in a round is. A round with interference at both sizes doesn't count as two independent
observations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.distributions import Floats
from harness.analysis.statistics import RESOLUTION, Interval, student
from harness.model.defaults import ALPHA

#: Steps from one measured size to the next. The error of a break-even is at most 0.06 % if the two sizes differ by a
#: factor of ten, and 0.23 % if they differ by a factor of a hundred.
STEPS = 32


@dataclass(frozen=True, slots=True)
class Crossing:
    """A crossover: its size `at`, the sizes of its interval, and whether the log ratio is above 0 after it.

    An interval ends where the test rejects. If the test doesn't reject up to an end of the sweep, `opens_low` or
    `opens_high` is true. The interval is None for a single round. If the mean crosses several times within one
    interval, `at` is the middle one.
    """

    at: float
    interval: Interval | None
    rises: bool
    opens_low: bool = False
    opens_high: bool = False


@dataclass(frozen=True, slots=True)
class SweepOrdering:
    """The log ratio from the sweep's first size to its last size.

    `above` and `below` are the ranges in which it is significantly above or below 0. `unclear` is the range in which
    neither is certain and the mean doesn't change its sign permanently.
    """

    crossings: Sequence[Crossing]
    above: Sequence[Interval]
    below: Sequence[Interval]
    unclear: Sequence[Interval]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The range from `low` to `high`, in the coordinate of the sweep.

    The sign is 1 if above 0, -1 if below 0, and 0 if neither is certain.
    """

    low: float
    high: float
    sign: int


def refine_sizes(sizes: Sequence[float], steps: int = STEPS) -> Floats:
    """Return the increasing sizes, and some sizes between neighbours.

    They have equal ratios, or equal distances if a size isn't above 0.
    """
    spaced = np.geomspace if sizes[0] > 0.0 else np.linspace
    inner = [spaced(low, high, steps, endpoint=False) for low, high in pairwise(sizes)]
    fine = np.concatenate([*inner, sizes[-1:]])
    # a measured size keeps its exact value, which roots and powers would round
    fine[::steps] = sizes
    return fine


def interpolate_times(sizes: Sequence[float], times: Floats) -> Floats:
    """Return times at `refine_sizes(sizes)`, of shape (rounds, sizes), on straight lines between measured sizes."""
    fine = refine_sizes(sizes)
    return np.array([np.interp(fine, sizes, row) for row in times], np.float64)


def find_order(sizes: Sequence[float] | Floats, logs: Floats, measured: Sequence[float] | None = None) -> SweepOrdering:
    """Return which side takes less time, from log ratios of shape (rounds, sizes).

    There are at least two increasing sizes and one round.

    `measured` are the measured sizes. The default is all sizes. Each test has the level 1 - 0.05 divided by the number
    of tests. A crossover counts only if the order is certain at some measured size. Without this rule, equal curves
    would cross in 28 % of sweeps of five sizes in five rounds; with it, they do in 4 %.
    """
    tested = sizes if measured is None else measured
    level = 1.0 - ALPHA / len(tested)
    log = min(sizes) > 0.0
    places = np.log(sizes) if log else np.asarray(sizes, np.float64)
    mean = logs.mean(axis=0)
    between = [slice(index, index + 2) for index in range(len(sizes) - 1)]
    stretches = _merge_ranges([part for at in between for part in _segment(places[at], mean[at], logs[:, at], level)])
    roots = _find_sign_changes(places, mean)
    first, last = float(places[0]), float(places[-1])

    def interval(part: _Stretch) -> Interval:
        # the ends of the sweep as they were given, without what log and exp lose
        low, high = (_size(end, log) for end in (part.low, part.high))
        return Interval(float(sizes[0]) if part.low <= first else low, float(sizes[-1]) if part.high >= last else high)

    signed = [interval(part) for part in stretches if part.sign]
    is_shown = any(size in span for span in signed for size in tested)
    crossings, unclear = [], []
    for stretch in (part for part in stretches if part.sign == 0):
        inside = [root for root in roots if stretch.low <= root[0] <= stretch.high]
        opens_low, opens_high = stretch.low <= first, stretch.high >= last
        # an even number of zeros returns to the same side, and an interval that covers everything shows no crossover
        if len(inside) % 2 == 0 or (opens_low and opens_high) or not is_shown:
            unclear.append(interval(stretch))
            continue
        at, rises = inside[len(inside) // 2]
        crossings.append(
            Crossing(
                at=_size(at, log),
                interval=interval(stretch) if len(logs) > 1 else None,
                rises=rises,
                opens_low=opens_low,
                opens_high=opens_high,
            )
        )
    return SweepOrdering(
        crossings=crossings,
        above=[interval(part) for part in stretches if part.sign > 0],
        below=[interval(part) for part in stretches if part.sign < 0],
        unclear=unclear,
    )


def _size(place: float, log: bool) -> float:
    return math.exp(place) if log else float(place)


def _segment(ends: Floats, means: Floats, logs: Floats, level: float) -> list[_Stretch]:
    """Return the test's result between two sizes at `ends`, from the log ratios at both, of shape (rounds, 2).

    At the share w of the distance, the test rejects if mean² > t² · variance / rounds. Both sides are quadratic in w,
    so the range that isn't rejected ends at the zeros of a quadratic. It is expressed around the mean's own zero if
    that is in this segment: there it is below 0 however small the variance is, without loss of precision.
    """
    before, rise = float(means[0]), float(means[1]) - float(means[0])
    (root,) = _find_zeros(before, rise) or [math.nan]
    crosses = 0.0 <= root <= 1.0
    origin, mean = (root, 0.0) if crosses else (0.0, before)
    constant, linear, square = mean**2, 2.0 * mean * rise, rise**2
    rounds = len(logs)
    if rounds > 1:
        (one, both), (_, other) = np.cov(logs, rowvar=False).tolist()
        # clocks can't show a smaller variance
        one, other = max(one, RESOLUTION**2), max(other, RESOLUTION**2)
        bend, scale = one - 2.0 * both + other, student(rounds - 1, level) ** 2 / rounds
        constant -= scale * max(one + origin * (2.0 * (both - one) + origin * bend), RESOLUTION**2)
        linear -= scale * 2.0 * (both - one + origin * bend)
        square -= scale * bend
    zeros = [origin + zero for zero in _find_zeros(constant, linear, square)] + ([root] if crosses else [])
    marks = sorted(mark for mark in zeros if 0.0 < mark < 1.0)
    low, high = float(ends[0]), float(ends[1])
    places = [low, *(low + mark * (high - low) for mark in marks), high]
    stretches = []
    for (start, stop), (first, last) in zip(pairwise(places), pairwise([0.0, *marks, 1.0]), strict=True):
        way = 0.5 * (first + last) - origin
        rejected = rounds == 1 or constant + way * (linear + way * square) > 0.0
        value = mean + way * rise
        stretches.append(_Stretch(start, stop, int(math.copysign(1.0, value)) if rejected and value else 0))
    return [stretch for stretch in stretches if stretch.low < stretch.high]


def _find_zeros(constant: float, linear: float, square: float = 0.0) -> list[float]:
    """Return the real zeros of a polynomial, by the numerically stable quadratic formula."""
    if square == 0.0:
        return [-constant / linear] if linear else []
    inside = linear**2 - 4.0 * square * constant
    if inside < 0.0:
        return []
    half = -0.5 * (linear + math.copysign(math.sqrt(inside), linear))
    return [half / square, constant / half] if half else [0.0]


def _merge_ranges(stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """Merge neighbouring ranges of the same sign, and add a range without width between above and below."""
    merged: list[_Stretch] = []
    for stretch in stretches:
        last = merged[-1] if merged else None
        if last and last.sign == stretch.sign:
            merged[-1] = _Stretch(last.low, stretch.high, stretch.sign)
            continue
        if last and last.sign * stretch.sign < 0:
            merged.append(_Stretch(stretch.low, stretch.low, 0))
        merged.append(stretch)
    return merged


def _find_sign_changes(places: Floats, mean: Floats) -> list[tuple[float, bool]]:
    """Return where the piecewise linear mean changes its sign, in order, and whether it rises there."""
    nonzero = [index for index in range(len(mean)) if mean[index] != 0.0]
    roots = []
    for one, two in pairwise(nonzero):
        if (mean[one] > 0.0) != (mean[two] > 0.0):
            # the same operations as in a segment, so that a point without width is the same number
            (share,) = _find_zeros(float(mean[one]), float(mean[two]) - float(mean[one]))
            low, high = float(places[one]), float(places[two])
            # if the mean is exactly 0 in between, the line crosses there
            at = float(places[one + 1]) if two > one + 1 else low + share * (high - low)
            roots.append((at, bool(mean[two] > 0.0)))
    return roots
