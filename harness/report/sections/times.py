"""The table of a scenario's times, and the explanations of its intervals and marks."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from harness.analysis.results import Results
from harness.analysis.statistics import FEWEST_FOR_INTERVAL
from harness.analysis.tables import Row, ScenarioTable, Value
from harness.model.scenario import ENVIRONMENT, GROWTH, PERCENTILES, STEP
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import FILES, Block, Column, Entry, Figure, Table, Text, tabulate
from harness.report.charts import times as times_chart
from harness.report.format import CHANGING, OUTLYING, UNDONE, UNEVEN, Unit, marks, unit_of
from harness.report.phrases import capitalize, list_names

#: If a table would have more columns of times than this, each environment has a separate line.
COLUMNS = 8

#: The name and the explanation of each mark.
MARKS = {
    UNEVEN: ("Uneven samples", "the mean and the median of a launch's samples differ by more than 10 %."),
    OUTLYING: ("Outliers", "launches that are far from the other launches of their cell. The mean includes them."),
    UNDONE: (
        "Other number of steps",
        "the framework counted a different number of steps from the launch, or its count can't be read, so this may "
        "not be the time of one step.",
    ),
    CHANGING: (
        "Changing time per step",
        "it depends on the number of steps before it. The mean is over the measured steps, and cells are compared at "
        "equal numbers of steps only.",
    ),
}

Labelled = TypeVar("Labelled")


def make_label_columns(table: ScenarioTable, row: Callable[[Labelled], Row]) -> list[Column[Labelled]]:
    """Return the columns that distinguish rows: the device, if there are several, and the axes in which rows differ."""

    def make_label_column(name: str) -> Column[Labelled]:
        return Column(name, lambda line: {"device": row(line).device.value, **row(line).axes}[name], is_label=True)

    return [
        make_label_column(name)
        for name in [*(["device"] if table.several_devices else []), *names.find_varying_axes(table)]
    ]


def make_times(results: Results, table: ScenarioTable) -> Iterator[Block]:
    """Yield the table of times, its chart and the meaning of its marks."""
    varying_axes = names.find_varying_axes(table)
    constants = [f"{axis} = {table.rows[0].axes[axis]}" for axis in table.row_axes if axis not in varying_axes]
    if constants:
        yield Text(f"The same in all rows: {', '.join(constants)}.", True, where=FILES)
    yield make_times_table(table)
    yield from map(Figure, times_chart.draw(table))
    yield from (
        Text(sentence, True, where=FILES)
        for sentence in [*_explain_intervals(table), *_explain_marks(table), *_explain_no_percentiles(results, table)]
    )


def _explain_no_percentiles(results: Results, table: ScenarioTable) -> Iterator[str]:
    """Yield why cells with a time per step have no percentile, for the table of times per step."""
    varying_axes = names.find_varying_axes(table)
    for quantity in (name for name in table.scenario.quantities if name in PERCENTILES and table.quantity == STEP):
        index, cells, reason = results.found_of(quantity), list[str](), ""
        for row, column, value in table.times():
            cell = table.cell(row, column.side)
            launch = index.culprit(cell)
            if value.estimate and cell not in index.series and launch:
                cells.append(names.name_cell(table, row, column.side, varying_axes))
                reason = reason or " ".join(filter(None, [launch.error, launch.advice]))
        if cells:
            yield f"No {quantity} for {list_names(cells)}: {reason}"


def make_times_table(table: ScenarioTable) -> Table:
    """Return a table with a row per combination of axes and a column per environment and compared value.

    If there would be too many columns, each environment gets a separate row.
    """
    unit = unit_of(table)
    heads = [(at, head.side) for at, head in enumerate(table.columns) if head.other is None]
    environments = list(dict.fromkeys(side.environment for _, side in heads))
    if len(heads) > COLUMNS and len(environments) > 1:
        sides = [
            (names.name_side_values(table, side) or names.measure(table), side.environment, at) for at, side in heads
        ]
    else:
        sides, environments = [(names.name_side(table, side), "", at) for at, side in heads], [""]
    places: dict[str, dict[str, int]] = {}
    for heading, environment, at in sides:
        places.setdefault(heading, {})[environment] = at

    def column(heading: str, at: Mapping[str, int]) -> Column[tuple[Row, str]]:
        def time(line: tuple[Row, str]) -> Entry:
            row, environment = line
            return _make_time_entry(table, at[environment], unit, row) if environment in at else Entry("")

        return Column(", ".join(filter(None, [heading, _name_unit(table, unit)])), time, is_number=True)

    columns: list[Column[tuple[Row, str]]] = [
        *make_label_columns(table, lambda line: line[0]),
        Column(ENVIRONMENT, lambda line: line[1], is_label=True, is_optional=True),
        *(column(*place) for place in places.items()),
    ]
    rows = [(row, environment) for row in table.rows for environment in environments]
    return tabulate(
        f"{capitalize(names.name_values(table))}, {table.scenario.title}", columns, rows, where=FILES, noun="row"
    )


def _make_time_entry(table: ScenarioTable, index: int, unit: Unit, row: Row) -> Entry:
    value = row.values[index]
    if value.estimate is None:
        return Entry(value.status.value if value.status else "")
    parts = [
        format.time(value.estimate, unit),
        format.format_fewer_rounds(value.estimate, table.rounds),
        *marks(value, table.clock),
    ]
    return Entry(
        " ".join(filter(None, parts)), cells=[table.cell(row, table.columns[index].side)], order=value.estimate.value
    )


def _explain_intervals(table: ScenarioTable) -> Iterator[str]:
    """Yield why times have no intervals, or that some have fewer rounds."""
    if table.rounds < FEWEST_FOR_INTERVAL:
        yield f"{counted(table.rounds, 'round')}: too few for intervals."
    elif any(value.estimate and value.estimate.rounds < table.rounds for *_, value in table.times()):
        yield f"n= is the number of rounds if it isn't {table.rounds}."


def _name_unit(table: ScenarioTable, unit: Unit) -> str:
    return f"{unit.symbol} per call" if table.quantity == GROWTH else unit.symbol


def _explain_marks(table: ScenarioTable) -> list[str]:
    """List the marked numbers of each mark. How to read the report explains the marks."""
    axes = names.find_varying_axes(table)
    by_mark: dict[str, list[str]] = {UNEVEN: [], OUTLYING: [], UNDONE: [], CHANGING: []}
    for row, column, value in table.times():
        for mark, extent in marks(value, table.clock).items():
            by_mark[mark].append(
                f"{names.name_cell(table, row, column.side, axes)}: {extent}{_plot_trend(value, mark)}"
            )
    return [f"{mark} {MARKS[mark][0]}: {list_names(members)}." for mark, members in by_mark.items() if members]


def _plot_trend(value: Value, mark: str) -> str:
    """For the mark of a changing step time, plot the time per step over the steps of a launch; otherwise empty."""
    trend = value.shape and value.shape.trend
    return f" {format.plot_curve([stage.seconds for stage in trend.stages])}" if trend and mark == CHANGING else ""
