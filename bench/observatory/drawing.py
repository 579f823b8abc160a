"""The chart of a nightly series as SVG: its ratios by day on a log scale, its levels, and its confirmed steps."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import median

from bench.observatory.records import ConfirmedStep, NightlyPoint, NightlySeries
from harness.history.detection import detect_changes

#: Pixels: the size of a chart, its margins, and the radius of a point.
WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 22, 26
RADIUS = 2.4

#: The smallest range of the axis, so that noise doesn't look like a change: 0.9 to 1.15.
_LEAST = (math.log(0.9), math.log(1.15))

#: The candidates for the distance of grid lines, and the largest number of lines.
_GRID, _MOST_LINES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0), 8


#: A detected change this close to a confirmed step (in nightly runs) is the step.
_NEAR = 3


@dataclass(frozen=True, slots=True)
class SeriesLevel:
    """The median ratio of the nightly runs from `first` to `last`.

    - `is_confirmed`, `is_suspected`: whether the day `first` has a confirmed step, or a suspected change.
    """

    first: str
    last: str
    ratio: float
    count: int
    is_confirmed: bool
    is_suspected: bool


def find_levels(series: NightlySeries, steps: Sequence[ConfirmedStep]) -> list[SeriesLevel]:
    """Return the levels of a series, between its confirmed steps and changes that the history's rule detects."""
    points = series.points
    confirmed = {bisect_left([point.day for point in points], step.day) for step in steps} - {0, len(points)}
    (changes,) = detect_changes([([math.log(point.ratio) for point in points], [0.0] * len(points))])
    suspected = [change.index for change in changes if all(abs(change.index - at) >= _NEAR for at in confirmed)]
    cuts = sorted({0, *confirmed, *suspected, len(points)})
    return [
        SeriesLevel(
            points[first].day,
            points[end - 1].day,
            median(point.ratio for point in points[first:end]),
            end - first,
            first in confirmed,
            first in suspected,
        )
        for first, end in pairwise(cuts)
    ]


def draw(series: NightlySeries, steps: Sequence[ConfirmedStep], label: str, *, exact: bool = False) -> str:
    """Return the chart. `label` describes it to people who don't see it, as escaped text. Colors come from the page.

    A series of `exact` numbers has a line through its points, and no levels.
    """
    axes, level_list = _Axes(series.points), [] if exact else find_levels(series, steps)
    grid = "".join(_draw_ratio_line(axes, ratio) for ratio in axes.ratios)
    grid += "".join(_draw_quarter(axes, day) for day in axes.quarters)
    points = "".join(_draw_point(axes, point) for point in series.points)
    levels = "".join(_draw_level(axes, level) for level in level_list)
    marks = "".join(_draw_step(axes, step) for step in steps if axes.includes(step.day))
    if exact:
        places = [(axes.x(point.day), axes.y(point.ratio)) for point in series.points]
        line = "".join(f"H{x}V{y}" for x, y in places[1:])
        marks += f'<path class="exact" d="M{places[0][0]} {places[0][1]}{line}"/>'
    marks += "".join(_draw_suspicion(axes, level.first) for level in level_list if level.is_suspected)
    return (
        f'<svg class="series" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{label}">{grid}{marks}<g class="p">{points}</g>{levels}</svg>'
    )


class _Axes:
    """The scales of a chart."""

    def __init__(self, points: Sequence[NightlyPoint]) -> None:
        logs = [math.log(point.ratio) for point in points]
        self._low = min(_LEAST[0], *logs, 0.0) - 0.02
        self._high = max(_LEAST[1], *logs, 0.0) + 0.02
        days = [date.fromisoformat(point.day).toordinal() for point in points]
        self._first, self._last = min(days), max(min(days) + 30, *days)

    def includes(self, day: str) -> bool:
        """Whether a day is on the chart."""
        return self._first <= date.fromisoformat(day).toordinal() <= self._last

    def x(self, day: date | str) -> float:
        """Return the place of a day."""
        ordinal = (date.fromisoformat(day) if isinstance(day, str) else day).toordinal()
        return round(LEFT + (ordinal - self._first) / (self._last - self._first) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, ratio: float) -> float:
        """Return the place of a ratio."""
        share = (math.log(ratio) - self._low) / (self._high - self._low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    @property
    def ratios(self) -> list[float]:
        """The ratios of the grid lines, with 1 among them."""
        low, high = math.exp(self._low), math.exp(self._high)
        apart = next((apart for apart in _GRID if (high - low) / apart <= _MOST_LINES), _GRID[-1])
        return [round(at * apart, 2) for at in range(math.ceil(low / apart), math.floor(high / apart) + 1)] or [1.0]

    @property
    def quarters(self) -> list[date]:
        """The first days of quarters, or of months in a short series."""
        apart = 1 if self._last - self._first < 400 else 3
        first, last = date.fromordinal(self._first), date.fromordinal(self._last)
        months = range(first.year * 12 + first.month, last.year * 12 + last.month)
        return [date(month // 12, month % 12 + 1, 1) for month in months if month % apart == 0]


def _draw_ratio_line(axes: _Axes, ratio: float) -> str:
    kind = "one" if ratio == 1.0 else "grid"
    y = axes.y(ratio)
    return (
        f'<path class="{kind}" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{ratio:.3g}×</text>'
    )


def _draw_quarter(axes: _Axes, day: date) -> str:
    text = f"{day:%b} {day.year}" if day.month == 1 else f"{day:%b}"
    x = axes.x(day)
    return (
        f'<path class="grid" d="M{x} {HEIGHT - BOTTOM}v5"/>'
        f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="middle">{text}</text>'
    )


def _draw_point(axes: _Axes, point: NightlyPoint) -> str:
    bounds = f" ({point.low:.3g} to {point.high:.3g})" if point.low and point.high else ""
    source = f"run {point.run}" if point.run else f"{point.seconds:,.0f} calls per step"
    words = f"{point.day}, {point.wheel}: {point.ratio:.3g}×{bounds}, {source}"
    return f'<circle cx="{axes.x(point.day)}" cy="{axes.y(point.ratio)}" r="{RADIUS}"><title>{words}</title></circle>'


def _draw_level(axes: _Axes, level: SeriesLevel) -> str:
    first, y = axes.x(level.first), axes.y(level.ratio)
    last = max(axes.x(level.last), first + 2 * RADIUS)  # also visible with a single run
    words = f"{level.first} to {level.last}: {level.ratio:.3g}×"
    return f'<path class="level" d="M{first} {y}H{last}"><title>{words}</title></path>'


def _draw_step(axes: _Axes, step: ConfirmedStep) -> str:
    x = axes.x(step.day)
    anchor, inner = ("end", -5) if x > WIDTH * 0.75 else ("start", 5)
    return (
        f'<path class="step" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/>'
        f'<text class="step" x="{x + inner}" y="{TOP - 7}" text-anchor="{anchor}">{step.ratio:.3g}×'
        f"<title>{step.day}</title></text>"
    )


def _draw_suspicion(axes: _Axes, day: str) -> str:
    x = axes.x(day)
    words = f"{day}: suspected, not confirmed"
    return f'<path class="suspected" d="M{x} {TOP}V{HEIGHT - BOTTOM}"><title>{words}</title></path>'
