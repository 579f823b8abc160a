"""Draws plots with characters, so that they work in every text."""

import math
from collections.abc import Sequence

from harness.analysis.statistics import Estimate, Interval

#: The width of a plot in characters.
WIDTH = 25

EMPTY, EQUAL, BETWEEN, VALUE = "·", "│", "─", "●"
#: Marks an interval that continues beyond the plot.
BEYOND = ("◂", "▸")

#: The characters for the numbers of a curve, from the lowest to the highest.
HEIGHTS = "▁▂▃▄▅▆▇█"


def plot_ratio(estimate: Estimate, shown: Interval) -> str:
    """Plot a ratio, its interval and 1 on a log scale from `shown.low` to `shown.high`: `·········│··──●──·······`."""
    characters = [EMPTY] * WIDTH
    characters[_place(1.0, shown)] = EQUAL
    ends = estimate.interval
    if ends:
        low, high = _place(ends.low, shown), _place(ends.high, shown)
        characters[low : high + 1] = BETWEEN * (high + 1 - low)
        for end, at, beyond in ((ends.low, 0, BEYOND[0]), (ends.high, WIDTH - 1, BEYOND[1])):
            if end not in shown:
                characters[at] = beyond
    characters[_place(estimate.value, shown)] = VALUE
    return "".join(characters)


def plot_curve(values: Sequence[float]) -> str:
    """Plot positive numbers in their order, scaled from the smallest to the largest: `▁▂▄█`."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(HEIGHTS[round((value - low) / span * (len(HEIGHTS) - 1))] for value in values)


def _place(ratio: float, shown: Interval) -> int:
    low, high = math.log(shown.low), math.log(shown.high)
    share = (math.log(ratio) - low) / (high - low) if high > low else 0.5
    return min(WIDTH - 1, max(0, round(share * (WIDTH - 1))))
