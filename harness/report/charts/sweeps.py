"""Curves along a numeric axis: what a step takes at each size, and where two of them cross."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.analysis.columns import Side
from harness.analysis.crossings import finer
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.sweeps import MeasuredSweep, Point
from harness.analysis.tables import ScenarioTable
from harness.model.scenario import Scenario
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.charts.times import LOOKS
from harness.report.escape import plain
from harness.report.format import Unit

#: More panels, or more curves in one, are not drawn.
PANELS, CURVES = 12, len(LOOKS)

#: Pixels: how high a panel is that is alone, and one of several; what is left of the width for its axis, its room.
ALONE, BESIDE, AXIS = 260, 200, 76

#: So many panels stand side by side.
COLUMNS = 2

#: Pieces of a curve from one size to the next.
STEPS = 8

#: How far a log axis of sizes goes beyond its first and last, as a share of its length.
ROOM = 0.04


@dataclass(frozen=True, slots=True)
class CrossingMark:
    """A crossing of two of a panel's curves: its size, what both take there, in seconds, and the interval's sizes."""

    at: float
    seconds: float
    interval: Interval | None
    told: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves of one place of the sweep and of one environment, unless these are the curves.

    `curves` are the points of each, by increasing size, by a name that is the same in all panels.
    """

    name: str
    curves: Mapping[str, Sequence[Point]]
    marks: Sequence[CrossingMark]


@dataclass(frozen=True, slots=True)
class Curves:
    """The panels that are drawn, at least one, of `of`; `left` series are not drawn.

    `axis` is the numeric one, and `along` names it with its unit.
    """

    panels: Sequence[Panel]
    of: int
    series: Sequence[str]
    left: int
    sizes: Sequence[float]
    axis: str
    along: str
    unit: Unit
    rounds: int

    @property
    def log(self) -> bool:
        """Whether the axis of the sizes is logarithmic."""
        return min(self.sizes) > 0.0

    @property
    def estimates(self) -> list[Estimate]:
        """All times that are drawn."""
        return [point.estimate for panel in self.panels for points in panel.curves.values() for point in points]

    @property
    def shown(self) -> Interval:
        """From where to where the axis of the times goes, in seconds."""
        return axes.domain(self.estimates)

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        return axes.cut(self.estimates, self.shown)

    @property
    def marks(self) -> int:
        """How many crossings are marked."""
        return sum(len(panel.marks) for panel in self.panels)


def curves(table: ScenarioTable, swept: Sequence[MeasuredSweep]) -> Curves:
    """What is drawn of a table's sweeps (at least one) along one axis."""
    made = [panel for sweep in swept for panel in _panels(table, sweep)]
    series = list(dict.fromkeys(name for panel in made for name in panel.curves))
    told = dict(zip(series, layout.distinct(series, layout.SERIES_CHARACTERS), strict=True))
    kept = set(series[:CURVES])
    titles = layout.distinct([panel.name for panel in made[:PANELS]])
    panels = [
        Panel(title, {told[name]: points for name, points in panel.curves.items() if name in kept}, panel.marks)
        for title, panel in zip(titles, made, strict=False)
    ]
    axis, unit = swept[0].axis, swept[0].unit
    return Curves(
        panels=panels,
        of=len(made),
        series=[told[name] for name in series[:CURVES]],
        left=len(series[CURVES:]),
        sizes=sorted({each for sweep in swept for each in sweep.sizes}),
        axis=axis,
        along=plain(f"{axis}, {unit}" if unit not in ("", axis) else axis),
        unit=format.unit([p.estimate.value for panel in panels for points in panel.curves.values() for p in points]),
        rounds=table.rounds,
    )


def _panels(table: ScenarioTable, sweep: MeasuredSweep) -> Iterator[Panel]:
    """The panels of one sweep: one for each environment where curves part by something else, else one for all."""
    apart = len({names.values(table, curve.side) for curve in sweep.curves}) > 1
    environments = list(dict.fromkeys(curve.side.environment for curve in sweep.curves))
    for environment in environments if apart else [""]:
        members = [curve for curve in sweep.curves if environment in ("", curve.side.environment)]
        points = {_series(table, curve.side, apart=apart): curve.points for curve in members}
        yield Panel(
            name=", ".join(filter(None, [names.sweep_place(table, sweep), environment])),
            curves=points,
            marks=list(_marks(table, sweep, environment, points, apart=apart)),
        )


def _series(table: ScenarioTable, side: Side, *, apart: bool) -> str:
    return names.values(table, side) if apart else side.environment


def _marks(
    table: ScenarioTable, sweep: MeasuredSweep, environment: str, points: Mapping[str, Sequence[Point]], *, apart: bool
) -> Iterator[CrossingMark]:
    """The crossings of two curves of one panel."""
    for race in sweep.races:
        head = race.column
        sides = [head.side, head.other] if head.other else []
        if environment and any(side.environment != environment for side in sides):
            continue
        both = [points.get(_series(table, side, apart=apart), ()) for side in sides]
        for crossing in race.crossings if all(both) else ():
            heights = [_height(crossing.at, known) for known in both]
            seconds = math.exp(sum(map(math.log, heights)) / len(heights))
            yield CrossingMark(crossing.at, seconds, crossing.interval, format.size(crossing.at, sweep))


def _height(at: float, points: Sequence[Point]) -> float:
    """What a curve takes at a size: on the straight line between its points, as it is drawn."""
    return float(np.interp(at, [point.size for point in points], [point.estimate.value for point in points]))


def _drawn(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """What a curve takes at its sizes and between them: on logarithmic axes such lines are bent."""
    sizes = [point.size for point in points]
    for at in finer(sizes, STEPS) if len(sizes) > 1 else sizes:
        yield float(at), _height(at, points)


def words(chart: Curves, scenario: Scenario) -> Words:
    """What stands around the chart."""
    intervals = "Vertical bars: 95 % confidence intervals." if chart.rounds > 1 else "From one round: no intervals."
    spans = ", grey bars: their 95 % confidence intervals" if chart.rounds > 1 else ""
    marked = f", {counted(chart.marks, 'crossing')} marked" if chart.marks else ""
    return Words(
        f"{scenario.title}: time per step by {chart.axis}",
        [
            f"{intervals}{f' Rings: crossings{spans}.' if chart.marks else ''}",
            layout.some(len(chart.panels), chart.of, "panel", "the first"),
            layout.some(len(chart.series), len(chart.series) + chart.left, "curve", "the first"),
            layout.cut(chart.cut),
        ],
        f"time per step, {chart.unit.symbol} (log scale)",
        f"Chart of the time per step of {scenario.name} by {chart.axis}, {counted(len(chart.panels), 'panel')} with "
        f"{', '.join(chart.series)}{marked}.",
    )


def specification(chart: Curves, words: Words) -> Specification:
    """The chart as Vega-Lite: panels side by side, with one legend, and the same axes in all."""
    alone = len(chart.panels) == 1
    width = layout.WIDTH // (1 if alone else COLUMNS) - AXIS
    frame = layout.specification(words, [])
    return {
        **{key: frame[key] for key in ("$schema", "description", "config", "title")},
        "concat": [
            {
                **({} if alone and not panel.name else {"title": {"text": panel.name, "fontSize": 11, "offset": 6}}),
                "width": width,
                "height": ALONE if alone else BESIDE,
                "layer": _layers(chart, panel, words),
            }
            for panel in chart.panels
        ],
        "columns": COLUMNS,
        "resolve": {"scale": {"color": "shared", "shape": "shared"}},
    }


def _layers(chart: Curves, panel: Panel, words: Words) -> list[Specification]:
    unit, shown = chart.unit.factor, chart.shown
    y = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [shown.low * unit, shown.high * unit], "nice": False},
        "axis": {
            "title": words.axis,
            "values": axes.time_marks(Interval(shown.low * unit, shown.high * unit)),
            "format": ",.3~g" if shown.high * unit < 1e3 else ",.3~r",
        },
    }
    reach = _reach(chart)
    x = {
        "type": "quantitative",
        "scale": {"type": "log" if chart.log else "linear", "domain": [reach.low, reach.high], "nice": False},
        "axis": {
            "title": chart.along,
            "labelExpr": "abs(datum.value) < 1e5 ? format(datum.value, ',') : format(datum.value, '.3~s')",
            **({"values": list(chart.sizes)} if len(chart.sizes) <= 12 else {}),
        },
    }
    shapes, colours = zip(*LOOKS[: len(chart.series)], strict=True)
    columns = {"columns": layout.columns(chart.series, layout.WIDTH // COLUMNS)}
    legend = {"legend": columns if len(chart.series) > 1 else None}
    points = [(series, point) for series, known in panel.curves.items() for point in known]
    bars = [
        (series, point, axes.bar(point.estimate.interval, shown)) for series, point in points if point.estimate.interval
    ]

    def by_series(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": list(chart.series), "range": list(range_)}
        return {"field": "series", "type": "nominal", "scale": scale, **legend}

    def at(field: str) -> dict[str, Any]:
        return {"x": {"field": "size", **x}, "y": {"field": field, **y}}

    drawn = [{"series": series, "size": point.size, "time": point.estimate.value * unit} for series, point in points]
    lines = [
        {"series": series, "size": place, "time": seconds * unit}
        for series, known in panel.curves.items()
        for place, seconds in _drawn(known)
    ]
    marks = [{"size": mark.at, "time": mark.seconds * unit, "told": mark.told} for mark in panel.marks]
    spans = [
        {"size": mark.interval.low, "end": mark.interval.high, "time": mark.seconds * unit}
        for mark in panel.marks
        if mark.interval
    ]
    layers = [
        layout.layer({"type": "line", "strokeWidth": 1.5}, lines, **at("time"), color=by_series(colours)),
        layout.layer(
            {"type": "rule", "strokeWidth": 1.5},
            [
                {"series": series, "size": point.size, "low": bar.low * unit, "high": bar.high * unit}
                for series, point, bar in bars
            ],
            **at("low"),
            y2={"field": "high"},
            color=by_series(colours),
        ),
        layout.layer(
            {"type": "tick", "orient": "horizontal", "size": 7, "thickness": 1.5},
            [
                {"series": series, "size": point.size, "time": cap * unit}
                for series, point, bar in bars
                for cap in bar.caps
            ],
            **at("time"),
            color=by_series(colours),
        ),
        layout.layer(
            {"type": "point", "size": 50, "strokeWidth": 1, "opacity": 1, "filled": True},
            drawn,
            **at("time"),
            shape=by_series(shapes),
            color=by_series(colours),
        ),
        layout.layer(
            {"type": "rule", "strokeWidth": 5, "opacity": 0.35, "color": layout.INK},
            spans,
            **at("time"),
            x2={"field": "end"},
        ),
        layout.layer(
            {"type": "point", "shape": "circle", "size": 130, "strokeWidth": 1.5, "color": layout.INK, "opacity": 1},
            marks,
            **at("time"),
        ),
        layout.layer(
            {"type": "text", "dy": -14, "baseline": "bottom"},
            marks,
            **at("time"),
            text={"field": "told", "type": "nominal"},
        ),
    ]
    return [each for each in layers if each["data"]["values"]]


def _reach(chart: Curves) -> Interval:
    """From where to where the axis of the sizes goes."""
    least, most = chart.sizes[0], chart.sizes[-1]
    if not chart.log:
        room = ROOM * (most - least)
        return Interval(least - room, most + room)
    factor = (most / least) ** ROOM
    return Interval(least / factor, most * factor)
