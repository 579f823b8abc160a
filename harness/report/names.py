"""What rows, columns and cells of a table are called. Nothing here is escaped yet."""

from collections.abc import Sequence

from harness.analysis.columns import Column, Side
from harness.analysis.tables import Row, Table
from harness.model.cell import Cell
from harness.model.scenario import ENVIRONMENT, Scenario

# values that say nothing without the name of their axis
_BARE = {"on", "off", "true", "false", "yes", "no", "none", "default"}


def label(scenario: Scenario, axis: str, value: str) -> str:
    """A value that is clear without its heading: `graph`, but `threads 4`, `xla on`, and `model small` beside data."""
    shared = any(value in values for name, values in scenario.axes.items() if name != axis)
    clear = value.lower() not in _BARE and any(character.isalpha() for character in value)
    return value if axis == ENVIRONMENT or (clear and not shared) else f"{axis} {value}"


def place(table: Table, row: Row, axes: Sequence[str]) -> str:
    """The row by its values of `axes`, and by its device where there are several: `model small, fit`."""
    device = [row.device.value] if table.several_devices else []
    return ", ".join([*device, *(label(table.scenario, axis, row.axes[axis]) for axis in axes)])


def varying(table: Table) -> list[str]:
    """The row axes in which the table's rows differ."""
    return [axis for axis in table.row_axes if len({row.axes[axis] for row in table.rows}) > 1]


def side_name(table: Table, side: Side) -> str:
    """A column's cells by name: `tf1.14 graph`."""
    return " ".join(filter(None, [side.environment, values(table, side)]))


def values(table: Table, side: Side) -> str:
    """A column's values of the compared axes: `graph`; empty where nothing but environments is compared."""
    return " ".join(label(table.scenario, axis, side.axes[axis]) for axis in table.column_axes)


def full_name(cell: Cell) -> str:
    """All that identifies a cell, whatever else its run has: `step tf1.14 cpu call=fit mode=graph`."""
    axes = [f"{axis}={value}" for axis, value in cell.axes.items()]
    return " ".join([cell.scenario, cell.environment, cell.device.value, *axes])


def cell_name(table: Table, row: Row, side: Side, axes: Sequence[str]) -> str:
    """One cell of the table; `axes` are those that tell its rows apart: `fit, tf1.14 graph`."""
    return ", ".join(part for part in (place(table, row, axes), side_name(table, side)) if part)


def what(table: Table, head: Column) -> str:
    """What is compared: `graph vs eager, tf1.14`; `tf2.0 vs tf1.14, graph`; the name of an entry that picks first."""
    assert head.other is not None, "a column with a comparison has two sides"
    assert head.comparison is not None, "a column with two sides has a comparison"
    entry, side, other = head.comparison, _facts(head.side), _facts(head.other)
    sides = " vs ".join(label(table.scenario, entry.along, facts[entry.along]) for facts in (side, other))
    context = [
        label(table.scenario, axis, side[axis])
        for axis in (ENVIRONMENT, *table.column_axes)
        if side[axis] == other[axis]
    ]
    return ", ".join([f"{entry.name}: {sides}" if entry.pick else sides, *context])


def _facts(side: Side) -> dict[str, str]:
    return {ENVIRONMENT: side.environment, **side.axes}
