"""One line a cell: the phases of its launches, the shape of its times, what it used. Nothing here is escaped yet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.analysis.lookup import Lookup
from harness.analysis.phases import Spread, Used, in_order, spread, used
from harness.analysis.shape import Shape
from harness.analysis.tables import Table
from harness.report import format, grid, names
from harness.report.format import Unit
from harness.report.grid import Grid

#: The heading over what names a cell.
CELL = "cell"


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell with a number: its name, its launches' phases and resources, their centres in seconds, and the shape."""

    name: str
    used: Used
    step: Spread | None
    shape: Shape


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one table that have numbers, row by row, told in three ways.

    `measured` are their numbers. `shapes` belong to the rows of `shape`. `phases` and `resources` are None where no
    launch told of any.
    """

    measured: Sequence[Measured]
    phases: Grid | None
    shape: Grid
    shapes: Sequence[Shape]
    resources: Grid | None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of spreads over launches: its name, one for each cell, and the unit that they ask for."""

    name: str
    spreads: Sequence[Spread | None]
    unit: Callable[[Sequence[float]], Unit] | None = None


def cells(table: Table, found: Lookup) -> Cells:
    """What there is to tell of each of the table's cells that have numbers."""
    measured = _measured(table, found)
    rows = [each.name for each in measured]
    unit = grid.table_unit(table)
    return Cells(
        measured=measured,
        phases=_grid(rows, _phases(measured)) if any(each.used.phases for each in measured) else None,
        shape=Grid(
            [CELL],
            [
                *(f"{name}, {unit.symbol}" for name in ("mean", "median", "p10", "p90")),
                "within launches, %",
                "between launches, %",
                "launches",
            ],
            [([each.name], _shape(each.shape, unit)) for each in measured],
        ),
        shapes=[each.shape for each in measured],
        resources=_grid(rows, _resources(measured)),
    )


def _measured(table: Table, found: Lookup) -> list[Measured]:
    axes = names.varying(table)
    measured = []
    for row in table.rows:
        for head, value in zip(table.columns, row.values, strict=True):
            if value.shape:
                launches = found.numbers[table.cell(row, head.side)]
                name = names.cell_name(table, row, head.side, axes)
                step = spread([launch.centre for launch in launches])
                measured.append(Measured(name, used(launches), step, value.shape))
    return measured


def _phases(measured: Sequence[Measured]) -> list[_Column]:
    """The phases in the order in which launches go through them, their sum, and what comes after."""
    ordered = in_order(name for each in measured for name in each.used.phases)
    return [
        *(_Column(name, [each.used.phases.get(name) for each in measured], format.phase_unit) for name in ordered),
        _Column("to the first step", [each.used.cold for each in measured], format.phase_unit),
        _Column("steady state a step", [each.step for each in measured], format.unit),
    ]


def _resources(measured: Sequence[Measured]) -> list[_Column]:
    return [
        _Column("cores in the steady state", [each.used.cores for each in measured]),
        _Column("CPU of the launch", [each.used.cpu for each in measured], lambda _: format.SECONDS),
        _Column("peak memory", [each.used.memory for each in measured], format.memory_unit),
    ]


def _grid(rows: Sequence[str], columns: Sequence[_Column]) -> Grid | None:
    """Columns that have a spread at all, as text; None of none."""
    headings, texts = [], []
    for column in columns:
        medians = [each.median for each in column.spreads if each]
        if medians:
            unit = column.unit(medians) if column.unit else Unit("", 1.0)
            headings.append(f"{column.name}, {unit.symbol}" if unit.symbol else column.name)
            texts.append([format.spread(each, unit.factor) if each else "" for each in column.spreads])
    if not headings:
        return None
    return Grid([CELL], headings, [([name], values) for name, *values in zip(rows, *texts, strict=True)])


def _shape(shape: Shape, unit: Unit) -> list[str]:
    times = (shape.mean, shape.median, shape.low, shape.high)
    spreads = (shape.within, shape.between)
    return [
        *(format.number(each * unit.factor) for each in times),
        *("" if each is None else format.number(100.0 * each) for each in spreads),
        str(shape.outliers.of),
    ]
