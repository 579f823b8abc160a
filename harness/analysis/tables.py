"""A run's tables: one a scenario, rows of groups, columns of times and ratios. Data only; the report formats it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.columns import Column, Side, columns
from harness.analysis.lookup import Lookup
from harness.analysis.shape import Share, modes
from harness.analysis.statistics import Estimate, combine, ratio
from harness.model.cell import Cell
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a table: seconds per step, or a ratio. Without one, `status` says why.

    `status` is None where there is no such cell. `modes` tells how many of the launches have several modes.
    """

    estimate: Estimate | None
    status: Status | None = None
    modes: Share | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one group: the axis values that they share, and a value for each column."""

    device: Device
    axes: Mapping[str, str]
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Table:
    """One scenario's numbers, at least one in every row and every column.

    `row_axes` are the axes that a row shows, `column_axes` those that a column's heading shows; `several_devices`:
    the rows' devices differ.
    """

    scenario: Scenario
    row_axes: Sequence[str]
    column_axes: Sequence[str]
    several_devices: bool
    columns: Sequence[Column]
    rows: Sequence[Row]

    @property
    def rounds(self) -> int:
        """How many rounds the best-measured number has; 0 in an empty table."""
        return max((value.estimate.rounds for row in self.rows for value in row.values if value.estimate), default=0)


def tables(run: Run, found: Lookup) -> list[Table]:
    """The run's tables in the run's order; one that has no number has no rows."""
    cells: dict[str, list[Cell]] = defaultdict(list)
    for cell in found.cells:
        cells[cell.scenario].append(cell)
    return [_table(run, scenario, cells[scenario.name], found) for scenario in run.scenarios]


def _table(run: Run, scenario: Scenario, cells: Sequence[Cell], found: Lookup) -> Table:
    heads = columns(run, scenario, cells)
    rows = [_row(key, scenario, heads, found) for key in dict.fromkeys(_row_key(scenario, cell) for cell in cells)]
    filled = [index for index in range(len(heads)) if any(row.values[index].estimate for row in rows)]
    rows = [
        Row(row.device, row.axes, [row.values[index] for index in filled])
        for row in rows
        if any(value.estimate for value in row.values)
    ]
    return Table(
        scenario=scenario,
        row_axes=[axis for axis in scenario.row_axes if _shown(scenario, axis, cells)],
        column_axes=[axis for axis in scenario.compared_axes if _shown(scenario, axis, cells)],
        several_devices=len({row.device for row in rows}) > 1,
        columns=[heads[index] for index in filled],
        rows=rows,
    )


def _row_key(scenario: Scenario, cell: Cell) -> tuple[Device, tuple[str, ...]]:
    return cell.device, tuple(cell.axes[axis] for axis in scenario.row_axes)


def _shown(scenario: Scenario, axis: str, cells: Sequence[Cell]) -> bool:
    """An axis with a default is shown only where some cell of the run has another value."""
    return axis not in scenario.default or any(cell.axes[axis] != scenario.default[axis] for cell in cells)


def _row(key: tuple[Device, tuple[str, ...]], scenario: Scenario, heads: Sequence[Column], found: Lookup) -> Row:
    device, shared = key
    axes = dict(zip(scenario.row_axes, shared, strict=True))

    def cell(side: Side) -> Cell:
        return Cell(scenario.name, side.environment, device, {**axes, **side.axes})

    values = [_value(cell(head.side), cell(head.other) if head.other else None, found) for head in heads]
    return Row(device, axes, values)


def _value(cell: Cell, other: Cell | None, found: Lookup) -> Value:
    centres = found.series.get(cell)
    if other is not None:
        others = found.series.get(other)
        return Value(ratio(others, centres) if others and centres else None)
    if centres:
        return Value(combine(list(centres.values())), modes=modes(found.numbers[cell]))
    return Value(None, found.status(cell))
