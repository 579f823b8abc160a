"""The range and the ticks of an axis."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.analysis.statistics import Estimate, Interval, exp_limited

#: The smallest distance in pixels between two ticks on a log axis of ratios, which is the width of their labels.
APART = 44.0

#: Sets of ticks for an axis of ratios, in addition to 1. The first set that fits is used.
LADDERS: Sequence[Sequence[float]] = (
    (0.95, 0.96, 0.97, 0.98, 0.99, 1.01, 1.02, 1.03, 1.04, 1.05),
    (0.9, 0.95, 0.98, 1.02, 1.05, 1.1),
    (0.8, 0.9, 0.95, 1.05, 1.1, 1.2),
    (0.7, 0.8, 0.9, 1.1, 1.2, 1.5),
    (0.3, 0.4, 0.5, 0.6, 0.8, 1.2, 1.5, 2.0, 3.0),
    (0.3, 0.5, 0.7, 1.5, 2.0, 3.0),
    (0.3, 0.5, 2.0, 3.0),
    tuple(digit * 10.0**power for power in range(-3, 3) for digit in (1.0, 2.0, 5.0) if (digit, power) != (1.0, 0)),
    tuple(digit * 10.0**power for power in range(-4, 4) for digit in (1.0, 3.0) if (digit, power) != (1.0, 0)),
    *(tuple(10.0 ** (step * count) for count in range(-4, 5) if count) for step in (1, 2, 5, 10, 20, 50, 75)),
)

#: The largest factor between the outermost ticks of an axis of ratios and the ends of the axis, if enough ticks fit.
MAX_BARE_FACTOR = 2.5

#: The Vega expression for the labels of an axis of ratios.
RATIO = "format(datum.value, datum.value < 1e-3 || datum.value >= 1e4 ? '.3~g' : ',.3~r') + '×'"

#: An axis of times is logarithmic if the longest time is more than this multiple of the shortest.
LOG_FROM = 10.0


@dataclass(frozen=True, slots=True)
class Bar:
    """The part of an interval that is within the axis. `caps` are the ends of the interval that are within the axis."""

    low: float
    high: float
    caps: Sequence[float]


def choose_domain(estimates: Sequence[Estimate], around: Sequence[float] = ()) -> Interval:
    """Return the range of an axis for the estimates (at least one) and the values `around`, all positive.

    The axis includes all values. It includes intervals only up to a limit beyond the values: the distance between the
    lowest and the highest value, or a factor of two. Otherwise, a wide interval from two rounds would leave little
    space for everything else.
    """
    values = [*(estimate.value for estimate in estimates), *around]
    intervals = [estimate.interval for estimate in estimates if estimate.interval]
    lowest, highest = math.log(min(values)), math.log(max(values))
    extent = max(highest - lowest, math.log(2.0))
    low = max(lowest - extent, min([lowest, *(math.log(interval.low) for interval in intervals)]))
    high = min(highest + extent, max([highest, *(math.log(interval.high) for interval in intervals)]))
    padding = 0.03 * (high - low) or 0.01
    return Interval(exp_limited(low - padding), exp_limited(high + padding))


def choose_ratio_domain(estimates: Sequence[Estimate], margin: float) -> Interval:
    """Return the range of an axis of ratios, which includes the margin (a share)."""
    return choose_domain(estimates, around=(1.0 / (1.0 + margin), 1.0 + margin))


def clip_interval(interval: Interval, domain: Interval, factor: float = 1.0) -> Bar:
    """Return the part of an interval that is within the axis `domain`, multiplied by `factor`."""
    ends = (interval.low, interval.high)
    low, high = (factor * min(max(end, domain.low), domain.high) for end in ends)
    return Bar(low, high, [factor * end for end in ends if end in domain])


def choose_ratio_ticks(domain: Interval, width: float, min_gap: float = APART) -> list[float]:
    """Return the ticks of a log axis of ratios, `width` pixels wide: 1, and round numbers on both sides.

    Ticks have a distance of at least `min_gap` pixels. If there is enough space, the outermost ticks are within a
    factor of MAX_BARE_FACTOR from the ends of the axis.
    """
    scale = width / math.log(domain.high / domain.low)
    fitting_sets = []
    for ladder in LADDERS:
        marks = sorted(mark for mark in (1.0, *ladder) if mark in domain)
        if len(marks) > 1 and all(
            scale * math.log(high_mark / low_mark) >= min_gap for low_mark, high_mark in pairwise(marks)
        ):
            fitting_sets.append(marks)
    covering = (
        marks
        for marks in fitting_sets
        if marks[0] <= domain.low * MAX_BARE_FACTOR and marks[-1] * MAX_BARE_FACTOR >= domain.high
    )
    return next(covering, fitting_sets[0] if fitting_sets else [1.0])


def choose_time_ticks(domain: Interval) -> list[float]:
    """Return the ticks of a log axis of times: 1, 2 and 5 of each decade, or only decades if there are many."""
    first_power, last_power = math.floor(math.log10(domain.low)), math.ceil(math.log10(domain.high))
    decades = range(first_power, last_power + 1, -(-(last_power - first_power) // 8))
    ticks = [digit * 10.0**power for power in decades for digit in (1.0, 2.0, 5.0)]
    marks = [mark for mark in ticks if mark in domain]
    return marks if len(marks) <= 8 else [10.0**power for power in decades if 10.0**power in domain]


def is_log(values: Iterable[float]) -> bool:
    """Return whether times (positive, at least one) differ so much that they need a log axis."""
    times = list(values)
    return max(times) > LOG_FROM * min(times)
