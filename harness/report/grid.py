"""A table as text in cells, the same for Markdown and the terminal. Nothing here is escaped yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.columns import Column, Side
from harness.analysis.tables import Row, Table, Value
from harness.model.scenario import ENVIRONMENT, Scenario
from harness.report import format
from harness.report.format import Unit

#: Marks a number some of whose launches have several modes.
MODES_MARK = "†"

# values that say nothing without the name of their axis
_BARE = {"on", "off", "true", "false", "yes", "no", "none", "default"}


@dataclass(frozen=True, slots=True)
class Grid:
    """Headings and rows of text: first the labels, then the values; the first `times` values are times."""

    labels: Sequence[str]
    headings: Sequence[str]
    times: int
    rows: Sequence[tuple[Sequence[str], Sequence[str]]]


def table_unit(table: Table) -> Unit:
    """The unit of a table's times."""
    values = [
        value for row in table.rows for value, head in zip(row.values, table.columns, strict=True) if not head.other
    ]
    return format.unit([value.estimate.value for value in values if value.estimate])


def build(table: Table) -> Grid:
    """The table's numbers as text."""
    unit = table_unit(table)
    device = ["device"] if table.several_devices else []
    return Grid(
        labels=[*device, *table.row_axes],
        headings=[_heading(table, head, unit) for head in table.columns],
        times=sum(head.other is None for head in table.columns),
        rows=[
            (
                [*([row.device.value] if device else []), *(row.axes[axis] for axis in table.row_axes)],
                _texts(table, row, unit),
            )
            for row in table.rows
        ],
    )


def side_name(table: Table, side: Side) -> str:
    """A column's cells by name: `tf1.14 graph`."""
    return " ".join([side.environment, *(label(table.scenario, axis, side.axes[axis]) for axis in table.column_axes)])


def label(scenario: Scenario, axis: str, value: str) -> str:
    """A value that is clear without its heading: `graph`, but `threads 4`, `xla on`, and `model small` beside data."""
    shared = any(value in values for name, values in scenario.axes.items() if name != axis)
    clear = value.lower() not in _BARE and any(character.isalpha() for character in value)
    return value if axis == ENVIRONMENT or (clear and not shared) else f"{axis} {value}"


def _texts(table: Table, row: Row, unit: Unit) -> list[str]:
    return [
        _text(value, unit if head.other is None else None, table.rounds)
        for value, head in zip(row.values, table.columns, strict=True)
    ]


def _text(value: Value, unit: Unit | None, rounds: int) -> str:
    estimate = value.estimate
    if estimate is None:
        return value.status.value if value.status else ""
    text = format.time(estimate, unit) if unit else format.gain(estimate)
    fewer = f" n={estimate.rounds}" if estimate.rounds < rounds else ""
    mark = f" {MODES_MARK}" if value.modes and value.modes.count else ""
    return text + fewer + mark


def _heading(table: Table, head: Column, unit: Unit) -> str:
    """`tf1.14 graph, ms`; `graph against eager, tf1.14`; `tf2.0 against tf1.14, graph`; with a pick, its name first."""
    if head.other is None or head.comparison is None:
        return f"{side_name(table, head.side)}, {unit.symbol}"
    entry, side, other = head.comparison, _facts(head.side), _facts(head.other)
    sides = " against ".join(label(table.scenario, entry.along, facts[entry.along]) for facts in (side, other))
    context = [
        label(table.scenario, axis, side[axis])
        for axis in (ENVIRONMENT, *table.column_axes)
        if side[axis] == other[axis]
    ]
    name = [f"{entry.name}: {sides}" if entry.pick else sides]
    return ", ".join(name + context)


def _facts(side: Side) -> dict[str, str]:
    return {ENVIRONMENT: side.environment, **side.axes}
