"""Absolute times: what a step of each cell takes, with its interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.model.scenario import Scenario
from harness.model.texts import counted
from harness.report import format, names
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

#: Pixels: how high a series is drawn in a line.
LANE = 15

# where a line's name stands among its series: no series is called so
_NAMES = "\n"


@dataclass(frozen=True, slots=True)
class Time:
    """One cell's seconds per step, on the line `name`, and its values of the compared axes."""

    name: str
    series: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class TimesChart:
    """The times that are drawn, at least one, in the table's order, on `of` so many lines. `series` are in order."""

    rows: Sequence[Time]
    lines: Sequence[str]
    of: int
    series: Sequence[str]
    unit: Unit
    rounds: int

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
        return axes.cut([row.estimate for row in self.rows], self.shown)

    @property
    def ends(self) -> str:
        """The shortest and the longest time in words."""
        least, most = (pick(self.rows, key=lambda row: row.estimate.value) for pick in (min, max))
        return " to ".join(
            f"{format.number(row.estimate.value * self.unit.factor)} {self.unit.symbol} "
            f"({' '.join(filter(None, [row.name, row.series]))})"
            for row in (least, most)
        )


def times(table: ScenarioTable) -> TimesChart | None:
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
    called = dict(zip(series, layout.distinct(series, layout.SERIES_CHARACTERS), strict=True))
    rows = [Time(told[cell.name], called[cell.series], cell.estimate) for cell in found if cell.name in told]
    return TimesChart(
        rows=rows,
        lines=list(told.values()),
        of=len(lines),
        series=list(dict.fromkeys(row.series for row in rows)),
        unit=format.unit([value.estimate.value for *_, value in table.times() if value.estimate]),
        rounds=table.rounds,
    )


def words(chart: TimesChart, scenario: Scenario) -> Words:
    """What stands around the chart."""
    fewer = ", or fewer" if chart.fewer else ""
    return Words(
        f"{scenario.title}: time per step",
        [
            f"Bars: 95 % confidence intervals over {counted(chart.rounds, 'round')}{fewer}."
            if chart.rounds > 1
            else "From one round: no intervals.",
            layout.some(len(chart.lines), chart.of, "line", "those with the longest times"),
            layout.cut(chart.cut),
        ],
        f"time per step, {chart.unit.symbol}{' (log scale)' if chart.log else ''}",
        f"Chart of the time per step of {counted(len(chart.rows), 'cell')} of {scenario.name}, from {chart.ends}.",
    )


def specification(chart: TimesChart, words: Words) -> Specification:
    """The chart as Vega-Lite: below the name of each line a lane for each series."""
    unit, shown = chart.unit.factor, chart.shown
    told = {row: format.time(row.estimate, chart.unit) for row in chart.rows}
    x = {
        "type": "quantitative",
        "scale": {
            "type": "log" if chart.log else "linear",
            "domain": [shown.low * unit, shown.high * unit],
            "nice": False,
            # what is told of a lane stands beside it
            "range": [0, {"expr": f"width - {layout.room(list(told.values())):.0f}"}],
        },
        "axis": {
            "title": layout.axis_title(words),
            "format": ",.3~g" if shown.high * unit < 1e3 else ",.3~r",
            **({"values": axes.time_marks(Interval(shown.low * unit, shown.high * unit))} if chart.log else {}),
        },
    }
    shapes, colours = zip(*LOOKS[: len(chart.series)], strict=True)
    # the names of the lines have a lane of their own, the first
    lanes = {"field": "series", "type": "nominal", "scale": {"domain": [_NAMES, *chart.series]}}
    y: dict[str, Any] = {"y": layout.rows(chart.lines, grid=False, apart=0.15), "yOffset": lanes}
    bars = [(row, axes.bar(row.estimate.interval, shown)) for row in chart.rows if row.estimate.interval]

    def by_series(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": list(chart.series), "range": list(range_)}
        return {"field": "series", "type": "nominal", "scale": scale, **layout.legend(chart.series)}

    def at(field: str) -> dict[str, Any]:
        return {"x": {"field": field, **x}, **y}

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
            *layout.headings([{"name": line, "series": _NAMES} for line in chart.lines], free=0, up=0, **y),
            layout.ends([{**value(row), "told": text} for row, text in told.items()], up=0, **y),
        ],
        height={"step": LANE},
    )


def _cells(table: ScenarioTable) -> list[Time]:
    """Every number of the table, row by row, on a line of its row and its environment, or on one of its own."""
    row_axes = names.varying(table)
    several = len({names.values(table, head.side) for _, head, _ in table.times()})
    found = []
    for row, head, value in table.times():
        if value.estimate and several <= len(LOOKS):
            name = ", ".join(filter(None, [names.place(table, row, row_axes), head.side.environment]))
            found.append(Time(name, names.values(table, head.side), value.estimate))
        elif value.estimate:
            found.append(Time(names.cell_name(table, row, head.side, row_axes), "", value.estimate))
    return found
