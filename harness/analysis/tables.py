"""A run's tables: one a scenario, rows of groups, columns of times and ratios. Data only; the report formats it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.columns import ScenarioColumn, Side, columns
from harness.analysis.comparisons import Compared, compare
from harness.analysis.lookup import Lookup
from harness.analysis.phases import Spread, Used, spread, used
from harness.analysis.shape import Shape, shape
from harness.analysis.statistics import Estimate, combine
from harness.analysis.work import steps
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import Cell, Scenario


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a table: seconds per step, or a ratio. Without one, `status` says why.

    `status` is None where there is no such cell. A time has its `shape`; `undone` tells how a launch's steps and those
    that the framework counted differ. A ratio has `compared`.
    """

    estimate: Estimate | None
    status: Status | None = None
    shape: Shape | None = None
    undone: str = ""
    compared: Compared | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one group: the axis values that they share, and a value for each column."""

    device: Device
    axes: Mapping[str, str]
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class ScenarioTable:
    """One scenario's numbers, at least one in every row and every column.

    `row_axes` are the axes that a row shows, `column_axes` those that a column's heading shows; `several_devices`:
    the rows' devices differ.
    """

    scenario: Scenario
    row_axes: Sequence[str]
    column_axes: Sequence[str]
    several_devices: bool
    columns: Sequence[ScenarioColumn]
    rows: Sequence[Row]

    def cell(self, row: Row, side: Side) -> Cell:
        """The cell of a row on one side of a column."""
        return _cell(self.scenario, row.device, row.axes, side)

    def values(self, row: Row) -> list[tuple[ScenarioColumn, Value]]:
        """A row's values, each with its column."""
        return list(zip(self.columns, row.values, strict=True))

    def times(self) -> list[tuple[Row, ScenarioColumn, Value]]:
        """Every time of the table, row by row."""
        return [(row, head, value) for row in self.rows for head, value in self.values(row) if head.other is None]

    @property
    def rounds(self) -> int:
        """How many rounds the best-measured number has; 0 in an empty table."""
        return max((value.estimate.rounds for row in self.rows for value in row.values if value.estimate), default=0)


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell of a table that has a number, and where it stands there.

    `step` is the spread of its launches' centres in seconds per step, `used` their phases and resources.
    """

    cell: Cell
    row: Row
    side: Side
    step: Spread | None
    shape: Shape
    used: Used


@dataclass(frozen=True, slots=True)
class Layout:
    """What one scenario's table sets where: heads of columns and keys of rows, before anything is computed."""

    scenario: Scenario
    cells: Sequence[Cell]
    heads: Sequence[ScenarioColumn]
    keys: Sequence[tuple[Device, tuple[str, ...]]]

    def cell(self, key: tuple[Device, tuple[str, ...]], side: Side) -> Cell:
        """The cell of a row on one side of a column."""
        device, shared = key
        return _cell(self.scenario, device, dict(zip(self.scenario.row_axes, shared, strict=True)), side)

    def pairs(self) -> list[tuple[Cell, Cell]]:
        """All comparisons of the table, row by row: those that are judged together, each once."""
        pairs = (
            (self.cell(key, head.side), self.cell(key, head.other))
            for key in self.keys
            for head in self.heads
            if head.other
        )
        # two entries of a header may ask for the same one
        return list(dict.fromkeys(pairs))


def layouts(run: Run, found: Lookup) -> list[Layout]:
    """The run's tables in the run's order, as what they set side by side."""
    cells: dict[str, list[Cell]] = defaultdict(list)
    for cell in found.cells:
        cells[cell.scenario].append(cell)
    return [
        Layout(
            scenario=scenario,
            cells=cells[scenario.name],
            heads=columns(run, scenario, cells[scenario.name]),
            keys=list(dict.fromkeys(_row_key(scenario, cell) for cell in cells[scenario.name])),
        )
        for scenario in run.scenarios
    ]


def tables(run: Run, found: Lookup) -> list[ScenarioTable]:
    """The run's tables in the run's order; one that has no number has no rows."""
    return [_table(layout, found, run.plan.margin) for layout in layouts(run, found)]


def measured(table: ScenarioTable, found: Lookup) -> list[Measured]:
    """The table's cells that have a number, row by row."""
    members = [(table.cell(row, head.side), row, head.side, value.shape) for row, head, value in table.times()]
    return [
        Measured(
            cell=cell,
            row=row,
            side=side,
            step=spread([launch.centre for launch in found.numbers[cell]]),
            shape=shape_,
            used=used(found.numbers[cell]),
        )
        for cell, row, side, shape_ in members
        if shape_
    ]


def _table(layout: Layout, found: Lookup, margin: float) -> ScenarioTable:
    pairs = layout.pairs()
    compared = dict(zip(pairs, compare(pairs, found, margin), strict=True))
    scenario, cells, heads = layout.scenario, layout.cells, layout.heads
    rows = [_row(layout, key, found, compared) for key in layout.keys]
    filled = [index for index in range(len(heads)) if any(row.values[index].estimate for row in rows)]
    rows = [
        Row(row.device, row.axes, [row.values[index] for index in filled])
        for row in rows
        if any(value.estimate for value in row.values)
    ]
    return ScenarioTable(
        scenario=scenario,
        row_axes=[axis for axis in scenario.row_axes if _shown(scenario, axis, cells)],
        column_axes=[axis for axis in scenario.compared_axes if _shown(scenario, axis, cells)],
        several_devices=len({row.device for row in rows}) > 1,
        columns=[heads[index] for index in filled],
        rows=rows,
    )


def _cell(scenario: Scenario, device: Device, axes: Mapping[str, str], side: Side) -> Cell:
    return Cell(scenario.name, side.environment, device, {**axes, **side.axes})


def _row_key(scenario: Scenario, cell: Cell) -> tuple[Device, tuple[str, ...]]:
    return cell.device, tuple(cell.axes[axis] for axis in scenario.row_axes)


def _shown(scenario: Scenario, axis: str, cells: Sequence[Cell]) -> bool:
    """An axis with a default is shown only where some cell of the run has another value."""
    return axis not in scenario.default or any(cell.axes[axis] != scenario.default[axis] for cell in cells)


def _row(
    layout: Layout,
    key: tuple[Device, tuple[str, ...]],
    found: Lookup,
    compared: Mapping[tuple[Cell, Cell], Compared | None],
) -> Row:
    values = []
    for head in layout.heads:
        cell = layout.cell(key, head.side)
        if head.other:
            judged = compared[cell, layout.cell(key, head.other)]
            values.append(Value(judged.estimate if judged else None, compared=judged))
        else:
            values.append(_time(cell, found))
    return Row(key[0], dict(zip(layout.scenario.row_axes, key[1], strict=True)), values)


def _time(cell: Cell, found: Lookup) -> Value:
    centres = found.series.get(cell)
    if not centres:
        return Value(None, found.status(cell))
    launches = found.numbers[cell]
    undone = next((reason for launch in launches if (reason := steps(launch))), "")
    return Value(combine(list(centres.values())), shape=shape(launches), undone=undone)
