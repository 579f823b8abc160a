"""Absolute times: what a step of each cell takes, with its interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import Table
from harness.report import format, grid, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.format import Unit

#: For each series its shape and its colour; more than these have no series, and a line a cell.
LOOKS = (
    ("circle", layout.BLUE),
    ("square", layout.ORANGE),
    ("triangle-up", layout.GREEN),
    ("diamond", layout.VERMILION),
    ("cross", layout.PURPLE),
    ("triangle-down", layout.SKY),
)

#: More cells than these are not drawn, on however few lines.
CELLS = 60


@dataclass(frozen=True, slots=True)
class Time:
    """One cell's seconds per step, on the line `name`, and its values of the compared axes."""

    name: str
    series: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Times:
    """The times that are drawn, at least one, in the table's order; `of` so many lines. `series` are in order."""

    rows: Sequence[Time]
    lines: Sequence[str]
    of: int
    series: Sequence[str]
    unit: Unit
    rounds: int

    @property
    def lanes(self) -> bool:
        """Whether some line has several cells."""
        return len(self.rows) > len(self.lines)

    @property
    def fewer(self) -> bool:
        """Whether some have fewer rounds than the best-measured one."""
        return any(row.estimate.rounds < self.rounds for row in self.rows)

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        return axes.is_log(row.estimate.value for row in self.rows)

    @property
    def shown(self) -> Interval:
        """From where to where the axis goes, in seconds; it begins with zero where it is linear."""
        reach = axes.domain([row.estimate for row in self.rows])
        return reach if self.log else Interval(0.0, reach.high)

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        intervals = (row.estimate.interval for row in self.rows)
        return sum(len(axes.bar(each, self.shown).caps) < 2 for each in intervals if each)

    @property
    def least(self) -> Time:
        """The one that takes the least."""
        return min(self.rows, key=lambda row: row.estimate.value)

    @property
    def most(self) -> Time:
        """The one that takes the most."""
        return max(self.rows, key=lambda row: row.estimate.value)

    def told(self, row: Time) -> str:
        """A time in the chart's unit: `5.52 ms`."""
        return f"{format.number(row.estimate.value * self.unit.factor)} {self.unit.symbol}"


def times(table: Table) -> Times | None:
    """What is drawn of a table's times: the lines with the longest; None of fewer than two."""
    found = _cells(table)
    if len(found) < 2:
        return None
    longest: dict[str, float] = {}
    for cell in found:
        longest[cell.name] = max(longest.get(cell.name, 0.0), cell.estimate.value)
    lines = list(longest)
    widest = max(Counter(cell.name for cell in found).values())
    most = min(layout.ROWS, CELLS // widest)
    kept = [lines[index] for index in layout.farthest(list(longest.values()), most)]
    told = dict(zip(kept, layout.distinct(kept), strict=True))
    series = list(dict.fromkeys(cell.series for cell in found))
    called = dict(zip(series, layout.distinct(series), strict=True))
    rows = [Time(told[cell.name], called[cell.series], cell.estimate) for cell in found if cell.name in told]
    return Times(
        rows=rows,
        lines=list(told.values()),
        of=len(lines),
        series=list(dict.fromkeys(row.series for row in rows)),
        unit=grid.table_unit(table),
        rounds=table.rounds,
    )


def specification(chart: Times, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    unit, shown = chart.unit.factor, chart.shown
    x = {
        "type": "quantitative",
        "scale": {
            "type": "log" if chart.log else "linear",
            "domain": [shown.low * unit, shown.high * unit],
            "nice": False,
        },
        "axis": {
            "title": words.axis,
            "format": ",.3~g" if shown.high * unit < 1e3 else ",.3~r",
            **({"values": axes.time_marks(Interval(shown.low * unit, shown.high * unit))} if chart.log else {}),
        },
    }
    y = layout.lines(chart.lines)
    shapes, colours = zip(*LOOKS[: len(chart.series)], strict=True)
    legend: dict[str, Any] = {} if len(chart.series) > 1 else {"legend": None}
    order = {"field": "series", "type": "nominal", "scale": {"domain": list(chart.series)}}
    lanes = {"yOffset": order} if chart.lanes else {}
    bars = [(row, axes.bar(row.estimate.interval, shown)) for row in chart.rows if row.estimate.interval]

    def by_series(range_: Sequence[str]) -> dict[str, Any]:
        return {**order, "scale": {"domain": list(chart.series), "range": list(range_)}, **legend}

    def at(field: str) -> dict[str, Any]:
        return {"x": {"field": field, **x}, "y": y, **lanes}

    def value(row: Time, **numbers: float) -> dict[str, Any]:
        return {"name": row.name, "series": row.series, **{key: number * unit for key, number in numbers.items()}}

    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "rule", "strokeWidth": 1.5},
                [value(row, low=each.low, high=each.high) for row, each in bars],
                **at("low"),
                x2={"field": "high"},
                color=by_series(colours),
            ),
            layout.layer(
                {"type": "tick", "orient": "vertical", "size": 7, "thickness": 1.5},
                [value(row, at=cap) for row, each in bars for cap in each.caps],
                **at("at"),
                color=by_series(colours),
            ),
            layout.layer(
                {"type": "point", "size": 50, "strokeWidth": 1, "opacity": 1, "filled": True},
                [value(row, time=row.estimate.value) for row in chart.rows],
                **at("time"),
                shape=by_series(shapes),
                color=by_series(colours),
            ),
            layout.layer(
                {"type": "text", "align": "left", "baseline": "middle", "dx": 10},
                [{**value(row), "told": format.time(row.estimate, chart.unit)} for row in chart.rows],
                x={"value": "width"},
                y=y,
                **lanes,
                text={"field": "told"},
            ),
        ],
        height={"step": 14 if chart.lanes else layout.STEP},
    )


def _cells(table: Table) -> list[Time]:
    """Every number of the table, row by row, on a line of its row and its environment, or on one of its own."""
    row_axes = names.varying(table)
    heads = [(index, head.side) for index, head in enumerate(table.columns) if head.other is None]
    several = len({names.values(table, side) for _, side in heads})
    found = []
    for row in table.rows:
        place = names.place(table, row, row_axes)
        for index, side in heads:
            estimate = row.values[index].estimate
            if estimate and several <= len(LOOKS):
                name = ", ".join(filter(None, [place, side.environment]))
                found.append(Time(name, names.values(table, side), estimate))
            elif estimate:
                found.append(Time(names.cell_name(table, row, side, row_axes), "", estimate))
    return found
