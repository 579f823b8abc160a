"""Plots that consist of characters, so that they work in every text."""

import math
from collections.abc import Sequence

from harness.analysis.statistics import Estimate, Interval

#: The width of a plot in characters.
WIDTH = 25

EMPTY, EQUAL, BETWEEN, VALUE = "·", "│", "─", "●"
#: The marks of an interval that continues beyond the plot, on the left and on the right.
BEYOND = ("◂", "▸")

#: The characters for the numbers of a curve, from the lowest to the highest.
HEIGHTS = "▁▂▃▄▅▆▇█"


def plot_ratio(estimate: Estimate, domain: Interval) -> str:
    """Plot a ratio, its interval and 1 on a log scale over `domain`: `·········│··──●──·······`."""
    characters = [EMPTY] * WIDTH
    characters[_find_position(1.0, domain)] = EQUAL
    interval = estimate.interval
    if interval:
        low, high = _find_position(interval.low, domain), _find_position(interval.high, domain)
        characters[low : high + 1] = BETWEEN * (high + 1 - low)
        for end, index, mark in ((interval.low, 0, BEYOND[0]), (interval.high, WIDTH - 1, BEYOND[1])):
            if end not in domain:
                characters[index] = mark
    characters[_find_position(estimate.value, domain)] = VALUE
    return "".join(characters)


def plot_curve(values: Sequence[float]) -> str:
    """Plot positive numbers in their order, scaled from the smallest to the largest: `▁▂▄█`."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(HEIGHTS[round((value - low) / span * (len(HEIGHTS) - 1))] for value in values)


def _find_position(ratio: float, domain: Interval) -> int:
    low, high = math.log(domain.low), math.log(domain.high)
    share = (math.log(ratio) - low) / (high - low) if high > low else 0.5
    return min(WIDTH - 1, max(0, round(share * (WIDTH - 1))))
