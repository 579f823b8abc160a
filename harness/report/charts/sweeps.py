"""Charts along a numeric axis: curves of the time per step at each size, and their crossovers."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.columns import Side
from harness.analysis.crossings import refine_sizes
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
SINGLE_HEIGHT, PANEL_HEIGHT, AXIS_WIDTH = 260, 200, 76

#: The number of panels in a row.
COLUMNS = 2

#: The number of straight pieces of a curve between two sizes.
STEPS = 8

#: The space on an axis beyond the first and the last size, as a share of the axis's length.
AXIS_PADDING = 0.04


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


def draw(table: ScenarioTable, sweeps: Sequence[MeasuredSweep]) -> Iterator[Picture]:
    """Yield one chart for each numeric axis of a table: the curves along the axis, with their crossovers."""
    for axis in dict.fromkeys(sweep.axis for sweep in sweeps):
        yield _draw_axis(table, [sweep for sweep in sweeps if sweep.axis == axis])


def _draw_axis(table: ScenarioTable, sweeps: Sequence[MeasuredSweep]) -> Picture:
    """Return the chart of a table's sweeps (at least one) along one axis: panels with the same axes and one legend."""
    all_panels = [panel for sweep in sweeps for panel in _make_panels(table, sweep)]
    picture_names = layout.map_to_picture_names(
        (name for panel in all_panels for name in panel.curves), layout.SERIES_CHARACTERS
    )
    drawn_names = dict(list(picture_names.items())[:CURVES])
    panels = _select_panels(all_panels, drawn_names)
    estimates = [point.estimate for panel in panels for points in panel.curves.values() for point in points]
    series, domain = list(drawn_names.values()), axes.choose_domain(estimates)
    unit, step = format.unit([estimate.value for estimate in estimates], table.clock), f"{table.clock.time} per step"
    axis, scenario, marks = sweeps[0].axis, table.scenario, sum(len(panel.marks) for panel in panels)
    interval_name = f"{format.level(LEVEL)} confidence intervals"
    intervals = f"Vertical bars: {interval_name}." if table.rounds > 1 else layout.NO_INTERVALS
    bars_note = f", grey bars: their {interval_name}" if table.rounds > 1 else ""
    marks_note = f", {counted(marks, 'crossing')} marked" if marks else ""
    words = layout.escape_texts(
        f"{scenario.title}: {step} by {axis}",
        [
            f"{intervals}{f' Rings: crossings{bars_note}.' if marks else ''}",
            layout.note_partial(len(panels), len(all_panels), "panel", "the first ones"),
            layout.note_partial(len(series), len(picture_names), "curve", "the first ones"),
            layout.note_cut(estimates, domain),
        ],
        f"{step}, {unit.symbol} (log scale)",
        f"Chart of the {step} of {scenario.name} by {axis}, {counted(len(panels), 'panel')} with "
        f"{', '.join(series)}{marks_note}.",
    )
    legend = layout.make_legend(series, layout.WIDTH // COLUMNS)
    looks = layout.make_looks("series", dict(zip(series, LOOKS, strict=False)), ("shape", "color"), legend)
    x, y = _make_size_channel(sweeps), layout.make_time_channel(domain, unit, words.axis)

    def make_channels(field: str) -> Specification:
        return {"x": {"field": "size", **x}, "y": {"field": field, **y}}

    is_single = len(panels) == 1
    drawn_panels = [
        {
            **({} if is_single and not panel.name else {"title": {"text": panel.name, "fontSize": 11, "offset": 6}}),
            "width": layout.WIDTH // (1 if is_single else COLUMNS) - AXIS_WIDTH,
            "height": SINGLE_HEIGHT if is_single else PANEL_HEIGHT,
            "layer": _make_layers(panel, make_channels, looks, domain, unit),
        }
        for panel in panels
    ]
    resolution = {"scale": {"color": "shared", "shape": "shared"}}
    specification = layout.make_specification(words, concat=drawn_panels, columns=COLUMNS, resolve=resolution)
    return Picture(make_file_name("sweeps", table), words, specification, table.clock.time)


def _select_panels(panels: Sequence[SweepPanel], drawn_names: Mapping[str, str]) -> list[SweepPanel]:
    """Return the panels that are drawn, with the curves in `drawn_names`, which maps them to names in the picture."""
    titles = layout.make_distinct_names([panel.name for panel in panels[:PANELS]])
    return [
        SweepPanel(
            title,
            {drawn_names[name]: points for name, points in panel.curves.items() if name in drawn_names},
            [mark for mark in panel.marks if mark.series <= drawn_names.keys()],
        )
        for title, panel in zip(titles, panels, strict=False)
    ]


def _make_panels(table: ScenarioTable, sweep: MeasuredSweep) -> Iterator[SweepPanel]:
    """Yield the panels of a sweep: one per environment if curves differ in another axis, and otherwise one."""
    differs_by_axis = len({names.name_side_values(table, curve.side) for curve in sweep.curves}) > 1
    environments = list(dict.fromkeys(curve.side.environment for curve in sweep.curves))

    def name_curve(side: Side) -> str:
        return names.name_side_values(table, side) if differs_by_axis else side.environment

    for environment in environments if differs_by_axis else [""]:
        curves = [curve for curve in sweep.curves if environment in ("", curve.side.environment)]
        points = {name_curve(curve.side): curve.points for curve in curves}
        yield SweepPanel(
            name=", ".join(filter(None, [names.name_sweep(table, sweep), environment])),
            curves=points,
            marks=list(_list_crossings(sweep, environment, points, name_curve)),
        )


def _list_crossings(
    sweep: MeasuredSweep,
    environment: str,
    points: Mapping[str, Sequence[SweepPoint]],
    name_curve: Callable[[Side], str],
) -> Iterator[CrossingMark]:
    """Yield the crossovers of the curves in one panel."""
    for comparison in sweep.races:
        column = comparison.column
        sides = [column.side, column.other] if column.other else []
        if environment and any(side.environment != environment for side in sides):
            continue
        pair = [name_curve(side) for side in sides]
        curves = [points.get(name, ()) for name in pair]
        for crossing in comparison.crossings if all(curves) else ():
            heights = [_interpolate_height(crossing.at, curve) for curve in curves]
            seconds = math.exp(sum(map(math.log, heights)) / len(heights))
            yield CrossingMark(
                frozenset(pair), crossing.at, seconds, crossing.interval, format.size(crossing.at, sweep)
            )


def _interpolate_height(size: float, points: Sequence[SweepPoint]) -> float:
    """Return the time at a size, on the straight line between the curve's points."""
    return float(np.interp(size, [point.size for point in points], [point.estimate.value for point in points]))


def _interpolate_curve(points: Sequence[SweepPoint]) -> Iterator[tuple[float, float]]:
    """Yield times at the curve's sizes and between them, because a straight line is bent on logarithmic axes."""
    sizes = [point.size for point in points]
    for size in refine_sizes(sizes, STEPS) if len(sizes) > 1 else sizes:
        yield float(size), _interpolate_height(size, points)


def _make_size_channel(sweeps: Sequence[MeasuredSweep]) -> Specification:
    """Return the channel of the sizes, with a log axis if all sizes are above zero."""
    sizes = sorted({size for sweep in sweeps for size in sweep.sizes})
    axis, unit = sweeps[0].axis, sweeps[0].unit
    smallest, largest = sizes[0], sizes[-1]
    if smallest > 0.0:
        factor = (largest / smallest) ** AXIS_PADDING
        domain = Interval(smallest / factor, largest * factor)
    else:
        padding = AXIS_PADDING * (largest - smallest)
        domain = Interval(smallest - padding, largest + padding)
    labels = {
        "title": escape_terminal(f"{axis}, {unit}" if unit not in ("", axis) else axis),
        "labelExpr": "abs(datum.value) < 1e5 ? format(datum.value, ',') : format(datum.value, '.3~s')",
        **({"values": sizes} if len(sizes) <= 12 else {}),
    }
    return layout.make_quantity_channel(domain, labels, log=smallest > 0.0)


def _make_layers(
    panel: SweepPanel,
    make_channels: Callable[[str], Specification],
    looks: Mapping[str, Specification],
    domain: Interval,
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
    bars = [
        {"size": mark.interval.low, "end": mark.interval.high, "time": mark.seconds * unit.factor}
        for mark in panel.marks
        if mark.interval
    ]
    layers = [
        layout.make_layer({"type": "line", "strokeWidth": 1.5}, lines, **make_channels("time"), color=looks["color"]),
        *layout.make_estimate_layers(
            points, domain, "y", make_channels, looks, point=POINT, field="time", factor=unit.factor, end="time"
        ),
        layout.make_layer(
            {"type": "rule", "strokeWidth": 5, "opacity": 0.35, "color": layout.INK},
            bars,
            **make_channels("time"),
            x2={"field": "end"},
        ),
        layout.make_layer(
            {"type": "point", "shape": "circle", "size": 130, "strokeWidth": 1.5, "color": layout.INK, "opacity": 1},
            marks,
            **make_channels("time"),
        ),
        layout.make_layer(
            {"type": "text", "dy": -14, "baseline": "bottom"},
            marks,
            **make_channels("time"),
            text={"field": "told", "type": "nominal"},
        ),
    ]
    return [layer for layer in layers if layer["data"]["values"]]
