"""Crossovers of two curves along a sweep, with their uncertainty.

At each size of the sweep, each round gives two times, and their log ratio. Between neighboring measured sizes, a time
is assumed to be linear in the size, in every round. The ratio of two such lines is a curve. This curve is computed at
intermediate sizes (`refine_sizes`). Between two of them, it is assumed to be linear in the log of the size (in the size
itself, if a size isn't above 0). A crossover is a size at which the mean of the rounds' log ratios is 0.

The confidence set contains all sizes at which a t test over the rounds doesn't reject equal times. So
the test is inverted, as E. C. Fieller does for a ratio of means, "Some problems in interval estimation", Journal of the
Royal Statistical Society B 16, 1954. As in his method, the set may consist of several intervals, may be unbounded (it
reaches an end of the sweep), and may contain sizes where the mean doesn't cross 0. The result contains the whole set.
So it contains each crossover with 95 % confidence, however many there are.

Sizes are paired by round: the test uses each round's own value on its line. This is exact for normal values, even if
the values of two sizes in a round are correlated. A round with interference at both sizes doesn't count as two
independent observations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.distributions import Floats
from harness.analysis.statistics import RESOLUTION, Interval, student
from harness.model.defaults import ALPHA

#: The number of steps from one measured size to the next. The error of a break-even point is at most 0.06 % if the two
#: sizes differ by a factor of 10, and 0.23 % if they differ by a factor of 100.
STEPS = 32


@dataclass(frozen=True, slots=True)
class Crossing:
    """A crossover at the size `at`, with its interval. `rises`: the log ratio is above 0 at larger sizes.

    The interval ends where the test rejects. If the test doesn't reject up to an end of the sweep, `opens_low` or
    `opens_high` is true. With a single round, the interval is None. If the mean crosses 0 several times within one
    interval, `at` is the middle crossing.
    """

    at: float
    interval: Interval | None
    rises: bool
    opens_low: bool = False
    opens_high: bool = False


@dataclass(frozen=True, slots=True)
class SweepOrdering:
    """The sign of the log ratio from the sweep's first size to its last size.

    `above` and `below` are the ranges in which it is significantly above or below 0. `unclear` contains the ranges in
    which neither is certain, and that don't show a crossover.
    """

    crossings: Sequence[Crossing]
    above: Sequence[Interval]
    below: Sequence[Interval]
    unclear: Sequence[Interval]


@dataclass(frozen=True, slots=True)
class _SizeRange:
    """The range from `low` to `high`: logs of sizes, or sizes if one isn't above 0.

    `sign` is 1 if the log ratio is significantly above 0, -1 if it is below, and 0 if neither is certain.
    """

    low: float
    high: float
    sign: int


def refine_sizes(sizes: Sequence[float], steps: int = STEPS) -> Floats:
    """Return the given sizes, which increase, with intermediate sizes between neighbors.

    Intermediate sizes have equal ratios, or equal distances if a size isn't above 0.
    """
    make_points = np.geomspace if sizes[0] > 0.0 else np.linspace
    segments = [make_points(low, high, steps, endpoint=False) for low, high in pairwise(sizes)]
    refined_sizes = np.concatenate([*segments, sizes[-1:]])
    # a measured size keeps its exact value, which roots and powers would round
    refined_sizes[::steps] = sizes
    return refined_sizes


def interpolate_times(sizes: Sequence[float], times: Floats) -> Floats:
    """Return the times at `refine_sizes(sizes)`, on straight lines between measured sizes; shape (rounds, sizes)."""
    refined_sizes = refine_sizes(sizes)
    return np.array([np.interp(refined_sizes, sizes, row) for row in times], np.float64)


def find_order(sizes: Sequence[float] | Floats, logs: Floats, measured: Sequence[float] | None = None) -> SweepOrdering:
    """Return which side takes less time at which sizes, from log ratios of shape (rounds, sizes).

    There must be at least two sizes, which increase, and one round. `measured` contains the measured sizes; by default,
    all sizes are measured. The significance level of 0.05 is divided by the number of measured sizes. If the order is
    certain at no measured size, it is unclear at all sizes. Without this rule, equal curves would cross in 28 % of
    sweeps of five sizes in five rounds; with it, they do in 4 %.
    """
    tested_sizes = sizes if measured is None else measured
    level = 1.0 - ALPHA / len(tested_sizes)
    is_log = min(sizes) > 0.0
    positions = np.log(sizes) if is_log else np.asarray(sizes, np.float64)
    ranges = _find_ranges(positions, logs, level)
    roots = _find_sign_changes(positions, logs.mean(axis=0))
    start, end = float(positions[0]), float(positions[-1])

    def interval(size_range: _SizeRange) -> Interval:
        # at the ends of the sweep, return the given sizes, without rounding errors of log and exp
        low, high = (_convert_to_size(limit, is_log) for limit in (size_range.low, size_range.high))
        return Interval(
            float(sizes[0]) if size_range.low <= start else low, float(sizes[-1]) if size_range.high >= end else high
        )

    above, below, unclear_ranges = ([found for found in ranges if found.sign == sign] for sign in (1, -1, 0))
    is_certain = any(size in interval(certain_range) for certain_range in (*above, *below) for size in tested_sizes)
    if not is_certain:
        return SweepOrdering(crossings=[], above=[], below=[], unclear=[Interval(float(sizes[0]), float(sizes[-1]))])
    crossings, unclear_intervals = [], []
    for unclear_range in unclear_ranges:
        inner_roots = [root for root in roots if unclear_range.low <= root[0] <= unclear_range.high]
        # after an even number of zeros, the mean is on the same side again
        if len(inner_roots) % 2 == 0:
            unclear_intervals.append(interval(unclear_range))
            continue
        position, rises = inner_roots[len(inner_roots) // 2]
        crossings.append(
            Crossing(
                at=_convert_to_size(position, is_log),
                interval=interval(unclear_range) if len(logs) > 1 else None,
                rises=rises,
                opens_low=unclear_range.low <= start,
                opens_high=unclear_range.high >= end,
            )
        )
    return SweepOrdering(
        crossings=crossings,
        above=list(map(interval, above)),
        below=list(map(interval, below)),
        unclear=unclear_intervals,
    )


def _convert_to_size(position: float, is_log: bool) -> float:
    return math.exp(position) if is_log else float(position)


def _find_ranges(positions: Floats, logs: Floats, level: float) -> list[_SizeRange]:
    """Return the ranges of positions in which the order is certain or unclear, in their order."""
    segments = [slice(index, index + 2) for index in range(len(positions) - 1)]
    mean = logs.mean(axis=0)
    return _merge_ranges(
        [part for ends in segments for part in _test_segment(positions[ends], mean[ends], logs[:, ends], level)]
    )


def _test_segment(ends: Floats, means: Floats, logs: Floats, level: float) -> list[_SizeRange]:
    """Return the test's result between two sizes at `ends`, from the log ratios at both, of shape (rounds, 2).

    Let w be the share of the distance between the two sizes. The test rejects if mean² > t² · variance / rounds. Both
    sides of this inequality are quadratic in w, so the range that isn't rejected ends at the zeros of a quadratic
    polynomial. If the mean is zero in this segment, w is measured from this zero. The polynomial is then certainly
    negative there, however small the variance is.
    """
    start_mean, rise = float(means[0]), float(means[1]) - float(means[0])
    (root,) = _find_zeros(start_mean, rise) or [math.nan]
    crosses = 0.0 <= root <= 1.0
    origin, mean = (root, 0.0) if crosses else (0.0, start_mean)
    constant, linear, square = mean**2, 2.0 * mean * rise, rise**2
    rounds = len(logs)
    if rounds > 1:
        (variance, covariance), (_, other_variance) = np.cov(logs, rowvar=False).tolist()
        # clocks can't resolve a smaller variance
        variance, other_variance = max(variance, RESOLUTION**2), max(other_variance, RESOLUTION**2)
        curvature, scale = variance - 2.0 * covariance + other_variance, student(rounds - 1, level) ** 2 / rounds
        constant -= scale * max(variance + origin * (2.0 * (covariance - variance) + origin * curvature), RESOLUTION**2)
        linear -= scale * 2.0 * (covariance - variance + origin * curvature)
        square -= scale * curvature
    zeros = [origin + zero for zero in _find_zeros(constant, linear, square)] + ([root] if crosses else [])
    cuts = sorted(cut for cut in zeros if 0.0 < cut < 1.0)
    low, high = float(ends[0]), float(ends[1])
    positions = [low, *(low + cut * (high - low) for cut in cuts), high]
    ranges = []
    for (start, stop), (start_share, stop_share) in zip(pairwise(positions), pairwise([0.0, *cuts, 1.0]), strict=True):
        distance = 0.5 * (start_share + stop_share) - origin
        is_rejected = rounds == 1 or constant + distance * (linear + distance * square) > 0.0
        value = mean + distance * rise
        ranges.append(_SizeRange(start, stop, int(math.copysign(1.0, value)) if is_rejected and value else 0))
    return [size_range for size_range in ranges if size_range.low < size_range.high]


def _find_zeros(constant: float, linear: float, square: float = 0.0) -> list[float]:
    """Return the real zeros of a quadratic polynomial, by the numerically stable formula."""
    if square == 0.0:
        return [-constant / linear] if linear else []
    discriminant = linear**2 - 4.0 * square * constant
    if discriminant < 0.0:
        return []
    term = -0.5 * (linear + math.copysign(math.sqrt(discriminant), linear))
    return [term / square, constant / term] if term else [0.0]


def _merge_ranges(ranges: Sequence[_SizeRange]) -> list[_SizeRange]:
    """Merge neighboring ranges of the same sign, and add a range of width 0 between ranges above and below 0."""
    merged: list[_SizeRange] = []
    for size_range in ranges:
        previous = merged[-1] if merged else None
        if previous and previous.sign == size_range.sign:
            merged[-1] = _SizeRange(previous.low, size_range.high, size_range.sign)
            continue
        if previous and previous.sign * size_range.sign < 0:
            merged.append(_SizeRange(size_range.low, size_range.low, 0))
        merged.append(size_range)
    return merged


def _find_sign_changes(positions: Floats, mean: Floats) -> list[tuple[float, bool]]:
    """Return the places where the piecewise linear mean changes its sign, in order, and whether it rises there."""
    nonzero_indexes = [index for index in range(len(mean)) if mean[index] != 0.0]
    roots = []
    for left_index, right_index in pairwise(nonzero_indexes):
        if (mean[left_index] > 0.0) != (mean[right_index] > 0.0):
            # use the same operations as in `_test_segment`, so that both get exactly the same place
            (share,) = _find_zeros(float(mean[left_index]), float(mean[right_index]) - float(mean[left_index]))
            low, high = float(positions[left_index]), float(positions[right_index])
            # if the mean is exactly 0 in between, the line crosses there
            position = float(positions[left_index + 1]) if right_index > left_index + 1 else low + share * (high - low)
            roots.append((position, bool(mean[right_index] > 0.0)))
    return roots
