"""Curves along a numeric axis: what a step takes at each size, and where two of them cross."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.analysis.columns import Side
from harness.analysis.crossings import finer
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.sweeps import Point
from harness.analysis.tables import Table
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.charts.times import LOOKS
from harness.report.escape import plain
from harness.report.format import Unit
from harness.report.sweeps import SweepView, size

#: More panels, or more curves in one, are not drawn.
PANELS, CURVES = 12, len(LOOKS)

#: Pixels: a panel that is alone, and one of several, of which two stand side by side.
ALONE, BESIDE = (layout.WIDTH, 260), (300, 200)

#: Pieces of a curve from one size to the next.
STEPS = 8

#: How far a log axis of sizes goes beyond its first and last, as a share of its length.
ROOM = 0.04


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, the same in all panels, and its points by increasing size."""

    series: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Mark:
    """A crossing of two of a panel's curves: its size, what both take there, in seconds, and the interval's sizes."""

    at: float
    seconds: float
    interval: Interval | None
    told: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves side by side: one place of the sweep and one environment, unless these are the curves."""

    name: str
    lines: Sequence[Line]
    marks: Sequence[Mark]


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
        return [point.estimate for panel in self.panels for line in panel.lines for point in line.points]

    @property
    def shown(self) -> Interval:
        """From where to where the axis of the times goes, in seconds."""
        return axes.domain(self.estimates)

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        intervals = (estimate.interval for estimate in self.estimates)
        return sum(len(axes.bar(each, self.shown).caps) < 2 for each in intervals if each)

    @property
    def marks(self) -> int:
        """How many crossings are marked."""
        return sum(len(panel.marks) for panel in self.panels)


def curves(views: Sequence[SweepView], rounds: int) -> Curves | None:
    """What is drawn of the sweeps of one scenario along one axis; None of none."""
    made = [panel for view in views for panel in _panels(view)]
    if not made:
        return None
    series = list(dict.fromkeys(line.series for panel in made for line in panel.lines))
    told = dict(zip(series, layout.distinct(series), strict=True))
    kept = set(series[:CURVES])
    titles = layout.distinct([panel.name for panel in made[:PANELS]])
    panels = [
        Panel(title, [Line(told[line.series], line.points) for line in panel.lines if line.series in kept], panel.marks)
        for title, panel in zip(titles, made, strict=False)
    ]
    sweep = views[0].sweep
    return Curves(
        panels=panels,
        of=len(made),
        series=[told[name] for name in series[:CURVES]],
        left=len(series[CURVES:]),
        sizes=sorted({each for view in views for each in view.sweep.sizes}),
        axis=plain(sweep.axis),
        along=plain(f"{sweep.axis}, {sweep.unit}" if sweep.unit not in ("", sweep.axis) else sweep.axis),
        unit=format.unit([p.estimate.value for panel in panels for line in panel.lines for p in line.points]),
        rounds=rounds,
    )


def _panels(view: SweepView) -> Iterator[Panel]:
    """The panels of one sweep: one for each environment where curves part by something else, else one for all."""
    table, sweep = view.table, view.sweep
    apart = len({names.values(table, curve.side) for curve in sweep.curves}) > 1
    environments = list(dict.fromkeys(curve.side.environment for curve in sweep.curves))
    for environment in environments if apart else [""]:
        members = [curve for curve in sweep.curves if environment in ("", curve.side.environment)]
        points = {_series(table, curve.side, apart=apart): curve.points for curve in members}
        yield Panel(
            name=", ".join(filter(None, [view.place, environment])),
            lines=[Line(series, each) for series, each in points.items()],
            marks=[] if view.withheld else list(_marks(view, environment, points, apart=apart)),
        )


def _series(table: Table, side: Side, *, apart: bool) -> str:
    return names.values(table, side) if apart else side.environment


def _marks(view: SweepView, environment: str, points: dict[str, Sequence[Point]], *, apart: bool) -> Iterator[Mark]:
    """The crossings of two curves of one panel."""
    for race in view.sweep.races:
        head = race.column
        sides = [head.side, head.other] if head.other else []
        if environment and any(side.environment != environment for side in sides):
            continue
        both = [points.get(_series(view.table, side, apart=apart), ()) for side in sides]
        for crossing in race.lead.crossings if race.lead and all(both) else ():
            heights = [_height(crossing.at, known) for known in both]
            seconds = math.exp(sum(map(math.log, heights)) / len(heights))
            yield Mark(crossing.at, seconds, crossing.interval, size(crossing.at, view.sweep))


def _height(at: float, points: Sequence[Point]) -> float:
    """What a curve takes at a size: on the straight line between its points, as it is drawn."""
    return float(np.interp(at, [point.size for point in points], [point.estimate.value for point in points]))


def _drawn(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """What a curve takes at its sizes and between them: on logarithmic axes such lines are bent."""
    sizes = [point.size for point in points]
    for at in finer(sizes, STEPS) if len(sizes) > 1 else sizes:
        yield float(at), _height(at, points)


def specification(chart: Curves, words: Words) -> Specification:
    """The chart as Vega-Lite: a panel beside the other, with one legend, and the same axes in all."""
    width, height = ALONE if len(chart.panels) == 1 else BESIDE
    alone = len(chart.panels) == 1
    frame = layout.specification(words, [])
    return {
        **{key: frame[key] for key in ("$schema", "description", "config", "title")},
        "concat": [
            {
                **({} if alone and not panel.name else {"title": {"text": panel.name, "fontSize": 11, "offset": 6}}),
                "width": width,
                "height": height,
                "layer": _layers(chart, panel, words),
            }
            for panel in chart.panels
        ],
        "columns": 2,
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
    legend: dict[str, Any] = {} if len(chart.series) > 1 else {"legend": None}
    points = [(line.series, point) for line in panel.lines for point in line.points]
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
        {"series": line.series, "size": place, "time": seconds * unit}
        for line in panel.lines
        for place, seconds in _drawn(line.points)
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
