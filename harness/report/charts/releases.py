"""Charts of releases: the ratios of cells to the same cells of the baseline, by TensorFlow release."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import ENVIRONMENT, GROWTH, Cell
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.forest import LOOKS as RATIO_LOOKS
from harness.report.charts.layout import Specification
from harness.report.charts.times import LOOKS
from harness.report.charts.vega import Picture, make_file_name
from harness.report.comparisons import ComparisonLine

#: The smallest number of releases in a line, including the baseline.
RELEASES = 3

#: The largest number of drawn lines.
CURVES = len(LOOKS)

#: In pixels: the height of the plot, the smallest distance between ticks, and the width of a horizontal label.
HEIGHT, APART, LABEL = 220, 18, 32

#: The label of an environment without "tf". If it is horizontal, it has two lines: 2.13, py3.11.
_LABEL = "slice(datum.label, 0, 2) == 'tf' ? slice(datum.label, 2) : datum.label"

#: If a ratio is larger than this, the axis ends at a tick above all ratios.
LARGE_RATIO = 2.0

#: The largest number of changes between adjacent releases that are listed.
CHANGES = 4

#: The style of a mark.
POINT: Specification = {"size": 50, "strokeWidth": 1.5, "opacity": 1}


@dataclass(frozen=True, slots=True)
class ReleasePoint:
    """The ratio of an environment to the baseline; `line` is None for the baseline itself."""

    environment: str
    takes: Estimate
    line: ComparisonLine | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the comparison with the baseline has a clear verdict."""
        return self.line is None or self.line.compared.verdict not in (None, Verdict.UNCLEAR)

    def __str__(self) -> str:
        value = self.takes.value
        size = _describe_size(value, self.line) if self.line and value < format.SMALL_RATIO else format.factor(value)
        return f"{size} ({self.environment})"


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """A change between two adjacent environments of a line, whose intervals don't overlap."""

    series: str
    before: ReleasePoint
    after: ReleasePoint

    @property
    def factor(self) -> float:
        """The time of the later release relative to the earlier release."""
        return self.after.takes.value / self.before.takes.value

    def __str__(self) -> str:
        line = self.after.line or self.before.line
        assert line, "one of two adjacent environments isn't the baseline"
        series = f" ({self.series})" if self.series else ""
        return f"{_describe_size(self.factor, line)} in {self.after.environment}{series}"


def _describe_size(factor: float, line: ComparisonLine) -> str:
    larger, smaller = ("slower", "faster") if is_time(line.table.quantity) else ("more", "less")
    return f"{format.factor(max(factor, 1.0 / factor))} {larger if factor > 1.0 else smaller}"


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a chart, at least one, with unique names. `margin` is a share: 0.03 is 3 %.

    `order` contains the environments of all lines in the order of their releases.
    """

    curves: Mapping[str, Sequence[ReleasePoint]]
    order: Sequence[str]
    margin: float

    @property
    def points(self) -> list[ReleasePoint]:
        """The points of all lines, without the baseline."""
        return [point for points in self.curves.values() for point in points if point.line]

    @property
    def shown(self) -> Interval:
        """The range of the axis. If ratios are far above 1, the axis ends at a tick above all ratios."""
        domain = axes.choose_ratio_domain([*(point.takes for point in self.points), Estimate(1.0, 1)], self.margin)
        highest = max(point.takes.value for point in self.points)
        marks = (digit * 10.0**power for power in range(5) for digit in (1.0, 2.0, 5.0))
        axis_end = next((mark for mark in marks if mark >= highest), highest) if highest > LARGE_RATIO else highest
        return replace(domain, high=max(domain.high, axis_end))

    @property
    def changes(self) -> list[ReleaseChange]:
        """The changes between adjacent environments whose intervals don't overlap."""
        has_several = len(self.curves) > 1
        return [
            ReleaseChange(name if has_several else "", point, next_point)
            for name, points in self.curves.items()
            for point, next_point in pairwise(points)
            if have_separate_intervals(point.takes, next_point.takes)
        ]


def select_drawn_pairs(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]
) -> set[tuple[Cell, Cell]]:
    """Return the pairs of cells that the chart shows; empty if there is no chart."""
    points = (point for points in _select_curves(make_series(results, table, compared)).values() for point in points)
    return {(point.line.compared.cell, point.line.compared.other) for point in points if point.line}


def draw(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine], *, titled: bool = True
) -> Iterator[Picture]:
    """Yield the chart of a table that compares at least RELEASES releases with the baseline.

    The chart of the first screen is not `titled`, because it is below a sentence.
    """
    series = make_series(results, table, compared)
    if not series:
        return
    curves = _select_curves(series)
    environments = {point.environment for points in curves.values() for point in points}
    chart = Lines(
        curves, [name for name in _sort_environments(results) if name in environments], results.run.plan.margin
    )
    base, measure, ratios = results.run.reference, names.measure(table), [point.takes for point in chart.points]
    largest_changes = layout.select_farthest(chart.changes, lambda change: abs(math.log(change.factor)), CHANGES)
    comparative = "longer" if is_time(table.quantity) else "more"
    prefix = "Largest changes" if len(chart.changes) > CHANGES else "Changes"
    changes_text = (
        f"{prefix} from one release to the next: {joined(list(map(str, largest_changes)))}." if largest_changes else ""
    )
    notes = [
        layout.note_marks(
            ratios, chart.margin, "" if all(point.is_shown for point in chart.points) else "hollow: unclear"
        ),
        layout.note_partial(len(curves), len(series), "line", "those farthest from 1"),
        layout.note_cut(ratios, chart.shown),
    ]
    no_change = "From one release to the next, no change is larger than the intervals."
    words = layout.escape_texts(
        f"{names.name_table(table)}: {measure} ratio to {base}, release by release" if titled else "",
        [changes_text or no_change, *notes] if titled else [],
        f"{measure} / {measure} of {base} (log scale), above 1: takes {comparative}; "
        f"{'' if titled else ' '.join(filter(None, notes))}",
        f"Chart of the {measure} of {table.scenario.name} in {counted(len(chart.order), 'environment')}, "
        f"{chart.order[0]} to {chart.order[-1]}, relative to {base}: "
        f"{layout.describe_extremes(chart.points, lambda point: point.takes.value, str)}. {changes_text}".rstrip(),
    )
    name = make_file_name("releases", table)
    yield layout.make_picture(name, words, _make_layers(chart, words.axis), HEIGHT, measure)


def _select_curves(series: Mapping[str, Sequence[ReleasePoint]]) -> dict[str, Sequence[ReleasePoint]]:
    """Return the lines that are drawn, by their names in the picture."""
    names = layout.select_farthest(
        list(series), lambda name: max(abs(math.log(point.takes.value)) for point in series[name]), CURVES
    )
    picture_names = layout.map_to_picture_names(names, layout.SERIES_CHARACTERS)
    return {picture_name: series[name] for name, picture_name in picture_names.items()}


def make_series(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]
) -> dict[str, Sequence[ReleasePoint]]:
    """Return the points of each line, in the order of the releases. Lines of fewer than RELEASES are omitted."""
    if table.quantity == GROWTH:
        return {}
    order, base = _sort_environments(results), results.run.reference
    releases = {environment.name: environment.release for environment in results.run.environments}
    by_line: dict[str, dict[str, ReleasePoint]] = {}
    for line in compared:
        cell, baseline = line.compared.cell, line.compared.other
        if line.entry.along != ENVIRONMENT or baseline.environment != base or cell.environment not in order:
            continue
        if line.compared.verdict is Verdict.DIFFERENT_WORK:
            continue
        shared_values = {axis: cell.axes[axis] for axis in table.column_axes if cell.axes[axis] == baseline.axes[axis]}
        comparison_name = (
            line.entry.name if line.entry.pick else " ".join(names.list_labels(table.scenario, shared_values))
        )
        points = by_line.setdefault(", ".join(filter(None, [line.place, comparison_name])), {})
        points[cell.environment] = ReleasePoint(cell.environment, line.compared.ratio, line)
    lines: dict[str, Sequence[ReleasePoint]] = {}
    for name, points in by_line.items():
        if len({releases[environment] for environment in (base, *points)}) >= RELEASES:
            by_environment = {base: ReleasePoint(base, Estimate(1.0, 1)), **points}
            lines[name] = [by_environment[environment] for environment in order if environment in by_environment]
    return lines


def _sort_environments(results: Results) -> list[str]:
    """Return the environments sorted by release, and then in the run's order."""
    return [
        environment.name
        for environment in sorted(results.run.environments, key=lambda environment: environment.release)
    ]


def have_separate_intervals(earlier: Estimate, later: Estimate) -> bool:
    """Return whether two intervals, of which at least one exists, don't overlap."""
    (low, high), (later_low, later_high) = (
        (estimate.interval.low, estimate.interval.high) if estimate.interval else (estimate.value, estimate.value)
        for estimate in (earlier, later)
    )
    return (earlier.interval or later.interval) is not None and (high < later_low or later_high < low)


def _make_layers(chart: Lines, title: str) -> list[Specification]:
    title, _, note = title.partition("; ")
    domain, series, is_single = chart.shown, list(chart.curves), len(chart.curves) == 1
    by_series = dict(zip(series, LOOKS, strict=False))
    # a single line has the colors of its verdicts
    looks = {"stroke": _color("outline")}
    if not is_single:
        looks = layout.make_looks("series", by_series, ("shape", "stroke"), layout.make_legend(series))
    x = {
        "field": "environment",
        "type": "ordinal",
        "scale": {"type": "point", "domain": list(chart.order), "padding": 0.8},
        "axis": {**_make_release_axis(len(chart.order)), "title": textwrap.wrap(note, layout.AXIS_LETTERS)},
    }
    y = layout.make_ratio_channel(domain, title, HEIGHT, APART)
    y["axis"] |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": -24, "titleY": -12}
    points = []
    for name, curve in chart.curves.items():
        for point in curve:
            verdict = point.line.verdict if point.line else ""
            outline = (
                RATIO_LOOKS[verdict][1] if is_single and verdict else layout.INK if is_single else by_series[name][1]
            )
            datum = {
                "series": name,
                "environment": point.environment,
                "verdict": verdict,
                "outline": outline,
                "inside": outline if point.is_shown else "white",
                "ratio": point.takes.value,
            }
            points.append((datum, point.takes))

    def make_channels(field: str) -> Specification:
        return {"x": x, "y": {"field": field, **y}}

    return [
        *layout.make_band(chart.margin, domain, "y", y),
        layout.make_layer(
            {"type": "line", "strokeWidth": 1.5, **({"color": layout.FAINT} if is_single else {})},
            [datum for datum, _ in points],
            **make_channels("ratio"),
            **({} if is_single else {"color": looks["stroke"]}),
        ),
        *layout.make_estimate_layers(
            points, domain, "y", make_channels, {**looks, "fill": _color("inside")}, point=POINT, field="ratio"
        ),
        _make_label_layer(chart, make_channels("ratio")),
    ]


def _color(field: str) -> Specification:
    """Return a channel whose field contains the color itself."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def _make_release_axis(count: int) -> Specification:
    """Return the axis of releases. Its labels are vertical if horizontal ones don't fit."""

    def choose(horizontal: str, vertical: str) -> Specification:
        return {"expr": f"width >= {LABEL * count} ? {horizontal} : {vertical}"}

    return {
        "grid": False,
        "labelAlign": choose("'center'", "'right'"),
        "labelAngle": choose("0", "-90"),
        "labelBaseline": choose("'top'", "'middle'"),
        "labelExpr": f"width >= {LABEL * count} ? split({_LABEL}, '-') : {_LABEL}",
        "labelFlush": False,
        "labelOverlap": "parity",
    }


def _make_label_layer(chart: Lines, channels: Specification) -> Specification:
    """Return the numbers of a single line: at each increase, and at its end."""
    increases = [change.after for change in chart.changes if change.factor > 1.0]
    labels = [
        {
            "environment": point.environment,
            "ratio": axes.clip_interval(point.takes.interval, chart.shown).high
            if point.takes.interval
            else point.takes.value,
            "told": format.factor(point.takes.value),
        }
        for point in ([*increases, chart.points[-1]] if len(chart.curves) == 1 else [])
    ]
    mark = {"type": "text", "align": "center", "baseline": "bottom", "dy": -6}
    return layout.make_layer(mark, labels, **channels, text={"field": "told", "type": "nominal"})
