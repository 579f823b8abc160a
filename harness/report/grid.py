"""A table of numbers as text, the same for Markdown and the terminal. Nothing here is escaped yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.tables import Row, ScenarioTable, Value
from harness.model.cell import Cell
from harness.model.scenario import ENVIRONMENT
from harness.report import format, names
from harness.report.format import Unit

#: Marks of a number: launches with uneven samples, outliers, and steps that were not counted.
MODES_MARK, APART_MARK, UNDONE_MARK = "†", "◊", "‡"

#: A table with more columns of times than this has its environments in lines of their own instead.
COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """Headings and rows of text: first the labels, then the values.

    `cells` are those that the values are of, row by row, where each value is a cell's time.
    """

    labels: Sequence[str]
    headings: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str]]]
    cells: Sequence[Sequence[Cell | None]] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """What the marks of a table tell: of each kind, the numbers that have it, `fit, tf2.0 eager: 2 of 5`.

    `modes` and `apart` count launches; `undone` says how a launch's steps and those that the framework counted differ.
    """

    modes: Sequence[str]
    apart: Sequence[str]
    undone: Sequence[str]


def table_unit(table: ScenarioTable) -> Unit:
    """The unit of a table's times."""
    values = [
        value for row in table.rows for value, head in zip(row.values, table.columns, strict=True) if not head.other
    ]
    return format.unit([value.estimate.value for value in values if value.estimate])


def times(table: ScenarioTable) -> Grid:
    """The table's times as text: a column for each environment, or a line where those would be too many."""
    unit, rounds = table_unit(table), table.rounds
    device = ["device"] if table.several_devices else []
    heads = [(index, head) for index, head in enumerate(table.columns) if head.other is None]
    if len(heads) > COLUMNS and len({head.side.environment for _, head in heads}) > 1:
        return _by_environment(table)
    return Grid(
        labels=[*device, *table.row_axes],
        headings=[f"{names.side_name(table, head.side)}, {unit.symbol}" for _, head in heads],
        rows=[
            (
                labels(table, row, table.row_axes),
                [_text(row.values[index], unit, rounds) for index, _ in heads],
            )
            for row in table.rows
        ],
        cells=[[table.cell(row, head.side) for _, head in heads] for row in table.rows],
    )


def _by_environment(table: ScenarioTable) -> Grid:
    """The times with a line for each environment of a row; the columns are what else is compared."""
    unit, rounds = table_unit(table), table.rounds
    device = ["device"] if table.several_devices else []
    heads = [(index, head.side) for index, head in enumerate(table.columns) if head.other is None]
    places = {(side.environment, names.values(table, side)): index for index, side in heads}
    sides = {(side.environment, names.values(table, side)): side for _, side in heads}
    environments = list(dict.fromkeys(environment for environment, _ in places))
    columns = list(dict.fromkeys(column for _, column in places))
    return Grid(
        labels=[*device, *table.row_axes, ENVIRONMENT],
        headings=[f"{column or 'time'}, {unit.symbol}" for column in columns],
        rows=[
            (
                [*labels(table, row, table.row_axes), environment],
                [
                    _text(row.values[places[environment, column]], unit, rounds)
                    if (environment, column) in places
                    else ""
                    for column in columns
                ],
            )
            for row in table.rows
            for environment in environments
        ],
        cells=[
            [
                table.cell(row, sides[environment, column]) if (environment, column) in sides else None
                for column in columns
            ]
            for row in table.rows
            for environment in environments
        ],
    )


def fold(grid: Grid) -> tuple[Grid, str]:
    """The grid without the labels that are the same in every row, and those in words: `api tf.keras, inputs numpy`."""
    columns = list(zip(*(labels for labels, _ in grid.rows), strict=True))
    varying = [index for index, column in enumerate(columns) if len(set(column)) > 1]
    same = [f"{grid.labels[index]} {columns[index][0]}" for index in range(len(columns)) if index not in varying]
    rows = [([names[index] for index in varying], values) for names, values in grid.rows]
    return Grid([grid.labels[index] for index in varying], grid.headings, rows, grid.cells), ", ".join(same)


def without_empty(
    headings: Sequence[str], rows: Sequence[Sequence[str]], last: int = 1
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows without those of the `last` columns that say nothing in any row."""
    first = len(headings) - last
    kept = [at for at in range(len(headings)) if at < first or any(row[at] for row in rows)]
    return [headings[at] for at in kept], [[row[at] for at in kept] for row in rows]


def labels(table: ScenarioTable, row: Row, axes: Sequence[str]) -> list[str]:
    """The cells that name a row: its device where there are several, and its values of `axes`."""
    return [*([row.device.value] if table.several_devices else []), *(row.axes[axis] for axis in axes)]


def marked(table: ScenarioTable) -> Marked:
    """The numbers of the table that have marks."""
    modes, apart, undone = [], [], []
    axes = names.varying(table)
    for row in table.rows:
        for head, value in zip(table.columns, row.values, strict=True):
            told = marks(value)
            if told and value.shape:
                name = names.cell_name(table, row, head.side, axes)
                if MODES_MARK in told:
                    modes.append(f"{name}: {value.shape.uneven.count} of {value.shape.uneven.of}")
                if APART_MARK in told:
                    apart.append(f"{name}: {value.shape.outliers.count} of {value.shape.outliers.of}")
                if UNDONE_MARK in told:
                    undone.append(f"{name}: {value.undone}")
    return Marked(modes, apart, undone)


def _text(value: Value, unit: Unit, rounds: int) -> str:
    estimate = value.estimate
    if estimate is None:
        return value.status.value if value.status else ""
    fewer = [format.fewer(estimate, rounds)]
    return " ".join(filter(None, [format.time(estimate, unit), *fewer, *marks(value)]))


def marks(value: Value) -> list[str]:
    """The marks of a number, in order."""
    shape = value.shape
    return [
        mark
        for mark, holds in (
            (MODES_MARK, shape and shape.uneven.count),
            (APART_MARK, shape and shape.outliers.count),
            (UNDONE_MARK, value.undone),
        )
        if holds
    ]
