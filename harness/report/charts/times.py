"""Charts of absolute times: the time per step of each cell with its interval."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.quantities import is_time
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.model.defaults import LEVEL
from harness.model.scenario import GROWTH
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.vega import Picture, make_file_name
from harness.report.format import Unit

#: Shape and color of each series. If there are more series, each cell has its own line.
LOOKS = (
    ("circle", layout.BLUE),
    ("square", layout.ORANGE),
    ("triangle-up", layout.GREEN),
    ("diamond", layout.VERMILION),
    ("cross", layout.PURPLE),
    ("triangle-down", layout.SKY),
)

#: The style of the points.
POINT: Specification = {"size": 50, "strokeWidth": 1, "opacity": 1, "filled": True}

#: The largest number of drawn cells, on all lines together.
CELLS = 60

#: The height of a lane in pixels. A line has one lane per series.
LANE = 15

# the lane for the name of a line; no series has this name
_NAMES = "\n"


@dataclass(frozen=True, slots=True)
class Time:
    """The seconds per step of one cell, which is drawn on the line `name`, in the lane `series`."""

    name: str
    series: str
    estimate: Estimate

    @property
    def seconds(self) -> float:
        """The seconds per step, without the interval."""
        return self.estimate.value


def draw(table: ScenarioTable) -> Iterator[Picture]:
    """Yield the chart of the longest times in a table; nothing for fewer than 2 times, or if values can be zero."""
    cells = _collect_times(table)
    if len(cells) < 2 or table.quantity == GROWTH:
        return
    rows, scenario, unit = _select_longest(cells), table.scenario, format.unit_of(table)
    lines, estimates = len({row.name for row in rows}), [row.estimate for row in rows]
    is_log = axes.is_log(row.seconds for row in rows)
    domain = axes.choose_domain(estimates)
    if not is_log:
        domain = replace(domain, low=0.0)
    selection = "longest times" if is_time(table.quantity) else "largest values"
    fewer_rounds = ", or fewer" if any(estimate.rounds < table.rounds for estimate in estimates) else ""
    bars_note = f"Bars: {format.level(LEVEL)} confidence intervals over {counted(table.rounds, 'round')}{fewer_rounds}."
    extremes = layout.describe_extremes(
        rows,
        lambda row: row.seconds,
        lambda row: (
            f"{format.number(row.seconds * unit.factor)} {unit.symbol} "
            f"({' '.join(filter(None, [row.name, row.series]))})"
        ),
    )
    step = names.name_values(table)
    words = layout.escape_texts(
        f"{scenario.title}: {step}",
        [
            bars_note if table.rounds > 1 else layout.NO_INTERVALS,
            layout.note_partial(lines, len({cell.name for cell in cells}), "line", f"those with the {selection}"),
            layout.note_cut(estimates, domain),
        ],
        f"{', '.join(filter(None, [step, unit.symbol]))}{' (log scale)' if is_log else ''}",
        f"Chart of the {step} of {counted(len(rows), 'cell')} of {scenario.name}, {extremes}.",
    )
    title = layout.wrap_axis_title(words)
    yield layout.make_picture(
        make_file_name("times", table),
        words,
        _make_layers(rows, unit, domain, title, log=is_log),
        {"step": LANE},
        names.measure(table),
    )


def _collect_times(table: ScenarioTable) -> list[Time]:
    """Return all times of the table, row by row, each on the line of its row and environment, or on its own line."""
    row_axes = names.find_varying_axes(table)
    series_count = len({names.name_side_values(table, column.side) for _, column, _ in table.times()})
    cells = []
    for row, column, value in table.times():
        if value.estimate and series_count <= len(LOOKS):
            name = ", ".join(filter(None, [names.place(table, row, row_axes), column.side.environment]))
            cells.append(Time(name, names.name_side_values(table, column.side), value.estimate))
        elif value.estimate:
            cells.append(Time(names.name_cell(table, row, column.side, row_axes), "", value.estimate))
    return cells


def _select_longest(cells: Sequence[Time]) -> list[Time]:
    """Return the times on the lines with the longest times. Lines and series get their names in the picture."""
    longest_times: dict[str, float] = {}
    for cell in cells:
        longest_times[cell.name] = max(longest_times.get(cell.name, 0.0), cell.seconds)
    most_cells = max(Counter(cell.name for cell in cells).values())
    lines = layout.map_to_picture_names(
        layout.select_farthest(list(longest_times), longest_times.__getitem__, min(layout.ROWS, CELLS // most_cells))
    )
    series = layout.map_to_picture_names([cell.series for cell in cells], layout.SERIES_CHARACTERS)
    return [Time(lines[cell.name], series[cell.series], cell.estimate) for cell in cells if cell.name in lines]


def _make_layers(
    rows: Sequence[Time], unit: Unit, domain: Interval, title: Sequence[str], *, log: bool
) -> list[Specification]:
    """Return the layers of the chart. Below the name of each line, each series has a lane."""
    lines, series = list(dict.fromkeys(row.name for row in rows)), list(dict.fromkeys(row.series for row in rows))
    texts = [format.time(row.estimate, unit) for row in rows]
    # the text of a lane is to its right
    x = layout.make_time_channel(
        domain, unit, title, log=log, range=[0, {"expr": f"width - {layout.measure_room(texts):.0f}"}]
    )
    # the name of a line is in a separate lane, the first lane
    lanes = {"field": "series", "type": "nominal", "scale": {"domain": [_NAMES, *series]}}
    y: dict[str, Any] = {"y": layout.make_row_channel(lines, gap=0.15), "yOffset": lanes}
    looks = layout.make_looks(
        "series", dict(zip(series, LOOKS, strict=False)), ("shape", "color"), layout.make_legend(series)
    )
    points = [({"name": row.name, "series": row.series}, row.estimate) for row in rows]

    def make_channels(field: str) -> Specification:
        return {"x": {"field": field, **x}, **y}

    return [
        *layout.make_estimate_layers(
            points, domain, "x", make_channels, looks, point=POINT, field="time", factor=unit.factor
        ),
        *layout.make_heading_layers([{"name": line, "series": _NAMES} for line in lines], **y),
        layout.make_end_layer([{**datum, "told": text} for (datum, _), text in zip(points, texts, strict=True)], **y),
    ]
