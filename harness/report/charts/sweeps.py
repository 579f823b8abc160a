"""Charts along a numeric axis: curves of the time per step at each size, and their crossovers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.columns import Side
from harness.analysis.crossings import refine_sizes
from harness.analysis.results import Results
from harness.analysis.statistics import Interval
from harness.analysis.sweeps import MeasuredSweep, SweepPoint
from harness.analysis.tables import ScenarioTable
from harness.model.defaults import LEVEL
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.times import LOOKS, POINT
from harness.report.charts.vega import Picture, make_file_name
from harness.report.escape import escape_terminal
from harness.report.format import Unit

#: The largest number of drawn panels, and of curves in a panel.
PANELS, CURVES = 12, len(LOOKS)

#: In pixels: the height of a single panel, the height of each of several panels, and the width of a panel's axis.
ALONE, BESIDE, AXIS = 260, 200, 76

#: The number of panels in a row.
COLUMNS = 2

#: The number of straight pieces of a curve between two sizes.
STEPS = 8

#: The space on an axis beyond the first and the last size, as a share of the axis's length.
ROOM = 0.04


@dataclass(frozen=True, slots=True)
class CrossingMark:
    """A crossover of the two curves in `series`: its size, their seconds at this size, and an interval of sizes."""

    series: frozenset[str]
    at: float
    seconds: float
    interval: Interval | None
    told: str


@dataclass(frozen=True, slots=True)
class SweepPanel:
    """A panel with curves of a sweep. It shows one environment, unless each curve is an environment.

    `curves` maps the name of each curve, which is the same in all panels, to its points in the order of sizes.
    """

    name: str
    curves: Mapping[str, Sequence[SweepPoint]]
    marks: Sequence[CrossingMark]


def draw(results: Results, table: ScenarioTable, swept: Sequence[MeasuredSweep]) -> Iterator[Picture]:
    """Yield one chart for each numeric axis of a table: the curves along the axis, with their crossovers."""
    for number, axis in enumerate(dict.fromkeys(sweep.axis for sweep in swept), 1):
        name = make_file_name(results, "sweeps", table.scenario, str(number) if number > 1 else "")
        yield _draw_axis(name, table, [sweep for sweep in swept if sweep.axis == axis])


def _draw_axis(name: str, table: ScenarioTable, swept: Sequence[MeasuredSweep]) -> Picture:
    """Return the chart of a table's sweeps (at least one) along one axis: panels with the same axes and one legend."""
    all_panels = [panel for sweep in swept for panel in _make_panels(table, sweep)]
    called = layout.map_to_picture_names(
        (name for panel in all_panels for name in panel.curves), layout.SERIES_CHARACTERS
    )
    kept = dict(list(called.items())[:CURVES])
    panels = [
        SweepPanel(
            title,
            {kept[name]: points for name, points in panel.curves.items() if name in kept},
            [mark for mark in panel.marks if mark.series <= kept.keys()],
        )
        for title, panel in zip(
            layout.make_distinct_names([panel.name for panel in all_panels[:PANELS]]), all_panels, strict=False
        )
    ]
    estimates = [point.estimate for panel in panels for points in panel.curves.values() for point in points]
    series, shown = list(kept.values()), axes.choose_domain(estimates)
    unit, step = format.unit([estimate.value for estimate in estimates], table.clock), f"{table.clock.time} per step"
    axis, scenario, marks = swept[0].axis, table.scenario, sum(len(panel.marks) for panel in panels)
    sure = f"{format.level(LEVEL)} confidence intervals"
    intervals = f"Vertical bars: {sure}." if table.rounds > 1 else layout.NO_INTERVALS
    spans = f", grey bars: their {sure}" if table.rounds > 1 else ""
    marked = f", {counted(marks, 'crossing')} marked" if marks else ""
    words = layout.escape_texts(
        f"{scenario.title}: {step} by {axis}",
        [
            f"{intervals}{f' Rings: crossings{spans}.' if marks else ''}",
            layout.note_partial(len(panels), len(all_panels), "panel", "the first"),
            layout.note_partial(len(series), len(called), "curve", "the first"),
            layout.note_cut(estimates, shown),
        ],
        f"{step}, {unit.symbol} (log scale)",
        f"Chart of the {step} of {scenario.name} by {axis}, {counted(len(panels), 'panel')} with "
        f"{', '.join(series)}{marked}.",
    )
    legend = layout.make_legend(series, layout.WIDTH // COLUMNS)
    looks = layout.make_looks("series", dict(zip(series, LOOKS, strict=False)), ("shape", "color"), legend)
    x, y = _make_size_channel(swept), layout.make_time_channel(shown, unit, words.axis)

    def at(field: str) -> Specification:
        return {"x": {"field": "size", **x}, "y": {"field": field, **y}}

    alone = len(panels) == 1
    drawn = [
        {
            **({} if alone and not panel.name else {"title": {"text": panel.name, "fontSize": 11, "offset": 6}}),
            "width": layout.WIDTH // (1 if alone else COLUMNS) - AXIS,
            "height": ALONE if alone else BESIDE,
            "layer": _make_layers(panel, at, looks, shown, unit),
        }
        for panel in panels
    ]
    shared = {"scale": {"color": "shared", "shape": "shared"}}
    specification = layout.make_specification(words, concat=drawn, columns=COLUMNS, resolve=shared)
    return Picture(name, words, specification, table.clock.time)


def _make_panels(table: ScenarioTable, sweep: MeasuredSweep) -> Iterator[SweepPanel]:
    """Yield the panels of a sweep: one per environment if curves differ in another axis, and otherwise one."""
    apart = len({names.name_side_values(table, curve.side) for curve in sweep.curves}) > 1
    environments = list(dict.fromkeys(curve.side.environment for curve in sweep.curves))
    for environment in environments if apart else [""]:
        members = [curve for curve in sweep.curves if environment in ("", curve.side.environment)]
        points = {_series(table, curve.side, apart=apart): curve.points for curve in members}
        yield SweepPanel(
            name=", ".join(filter(None, [names.name_sweep(table, sweep), environment])),
            curves=points,
            marks=list(_list_crossings(table, sweep, environment, points, apart=apart)),
        )


def _series(table: ScenarioTable, side: Side, *, apart: bool) -> str:
    return names.name_side_values(table, side) if apart else side.environment


def _list_crossings(
    table: ScenarioTable,
    sweep: MeasuredSweep,
    environment: str,
    points: Mapping[str, Sequence[SweepPoint]],
    *,
    apart: bool,
) -> Iterator[CrossingMark]:
    """Yield the crossovers of the curves in one panel."""
    for comparison in sweep.races:
        head = comparison.column
        sides = [head.side, head.other] if head.other else []
        if environment and any(side.environment != environment for side in sides):
            continue
        pair = [_series(table, side, apart=apart) for side in sides]
        both = [points.get(name, ()) for name in pair]
        for crossing in comparison.crossings if all(both) else ():
            heights = [_interpolate_height(crossing.at, curve) for curve in both]
            seconds = math.exp(sum(map(math.log, heights)) / len(heights))
            yield CrossingMark(
                frozenset(pair), crossing.at, seconds, crossing.interval, format.size(crossing.at, sweep)
            )


def _interpolate_height(at: float, points: Sequence[SweepPoint]) -> float:
    """Return the time at a size, on the straight line between the curve's points."""
    return float(np.interp(at, [point.size for point in points], [point.estimate.value for point in points]))


def _interpolate_curve(points: Sequence[SweepPoint]) -> Iterator[tuple[float, float]]:
    """Yield times at the curve's sizes and between them, because a straight line is bent on logarithmic axes."""
    sizes = [point.size for point in points]
    for at in refine_sizes(sizes, STEPS) if len(sizes) > 1 else sizes:
        yield float(at), _interpolate_height(at, points)


def _make_size_channel(swept: Sequence[MeasuredSweep]) -> Specification:
    """Return the channel of the sizes, with a log axis if all sizes are above zero."""
    sizes = sorted({size for sweep in swept for size in sweep.sizes})
    axis, unit = swept[0].axis, swept[0].unit
    least, most = sizes[0], sizes[-1]
    if least > 0.0:
        factor = (most / least) ** ROOM
        reach = Interval(least / factor, most * factor)
    else:
        room = ROOM * (most - least)
        reach = Interval(least - room, most + room)
    labels = {
        "title": escape_terminal(f"{axis}, {unit}" if unit not in ("", axis) else axis),
        "labelExpr": "abs(datum.value) < 1e5 ? format(datum.value, ',') : format(datum.value, '.3~s')",
        **({"values": sizes} if len(sizes) <= 12 else {}),
    }
    return layout.make_quantity_channel(reach, labels, log=least > 0.0)


def _make_layers(
    panel: SweepPanel,
    at: Callable[[str], Specification],
    looks: Mapping[str, Specification],
    shown: Interval,
    unit: Unit,
) -> list[Specification]:
    points = [
        ({"series": series, "size": point.size}, point.estimate)
        for series, curve in panel.curves.items()
        for point in curve
    ]
    lines = [
        {"series": series, "size": size, "time": seconds * unit.factor}
        for series, curve in panel.curves.items()
        for size, seconds in _interpolate_curve(curve)
    ]
    marks = [{"size": mark.at, "time": mark.seconds * unit.factor, "told": mark.told} for mark in panel.marks]
    spans = [
        {"size": mark.interval.low, "end": mark.interval.high, "time": mark.seconds * unit.factor}
        for mark in panel.marks
        if mark.interval
    ]
    layers = [
        layout.make_layer({"type": "line", "strokeWidth": 1.5}, lines, **at("time"), color=looks["color"]),
        *layout.make_estimate_layers(
            points, shown, "y", at, looks, point=POINT, field="time", factor=unit.factor, end="time"
        ),
        layout.make_layer(
            {"type": "rule", "strokeWidth": 5, "opacity": 0.35, "color": layout.INK},
            spans,
            **at("time"),
            x2={"field": "end"},
        ),
        layout.make_layer(
            {"type": "point", "shape": "circle", "size": 130, "strokeWidth": 1.5, "color": layout.INK, "opacity": 1},
            marks,
            **at("time"),
        ),
        layout.make_layer(
            {"type": "text", "dy": -14, "baseline": "bottom"},
            marks,
            **at("time"),
            text={"field": "told", "type": "nominal"},
        ),
    ]
    return [layer for layer in layers if layer["data"]["values"]]
