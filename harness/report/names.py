"""Names of the rows, columns and cells of a table. The names aren't escaped yet."""

from collections.abc import Mapping, Sequence

from harness.analysis.columns import ScenarioColumn, Side
from harness.analysis.effects import Effect, LevelChange
from harness.analysis.quantities import is_time
from harness.analysis.sweeps import MeasuredSweep
from harness.analysis.tables import MeasuredCell, Row, ScenarioTable
from harness.model.environment import Device
from harness.model.launch import Clock
from harness.model.scenario import (
    BARE,
    DEVICE,
    ENVIRONMENT,
    GROWTH,
    OWN,
    PERCENTILES,
    PRINTED,
    STEP,
    WHOLE,
    Cell,
    Scenario,
)
from harness.model.settings import AS_IT_COMES

# values that need the name of their axis to be understood
_AMBIGUOUS_VALUES = BARE | {"true", "false", "yes", "no", "none"}


def label(scenario: Scenario, axis: str, value: str) -> str:
    """Return a value, with its axis if needed: `graph`, but `threads=4` and `xla=on`.

    A value also needs its axis if another axis has the same value: `model=small`.
    """
    is_shared = any(value in values for name, values in scenario.axes.items() if name != axis)
    is_clear = value.lower() not in _AMBIGUOUS_VALUES and any(character.isalpha() for character in value)
    return value if axis == ENVIRONMENT or (is_clear and not is_shared) else f"{axis}={value}"


def list_labels(scenario: Scenario, facts: Mapping[str, str]) -> list[str]:
    """Return the labels of these values by axis. Settings with their default value are omitted."""
    labelled_facts = [pair for pair in facts.items() if pair[0] not in scenario.settings or pair[1] != AS_IT_COMES]
    return [label(scenario, *pair) for pair in labelled_facts]


def distinguish_cells(
    cells: Sequence[Cell], scenarios: Sequence[Scenario], *, compared: bool = False
) -> dict[Cell, list[str]]:
    """Return names that distinguish cells, in parts: environments, and the scenarios, devices and axes that differ.

    With `compared`, a name also contains the values of the axes that the scenario compares.
    """
    has_several_scenarios = len({cell.scenario for cell in cells}) > 1
    has_several_devices = len({cell.device for cell in cells}) > 1
    values: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        for axis, value in cell.axes.items():
            values.setdefault((cell.scenario, axis), set()).add(value)
    by_name = {scenario.name: scenario for scenario in scenarios}
    return {
        cell: [
            *([cell.scenario] if has_several_scenarios else []),
            cell.environment,
            *([cell.device.value] if has_several_devices and DEVICE not in cell.axes else []),
            *list_labels(
                by_name[cell.scenario],
                {
                    axis: value
                    for axis, value in cell.axes.items()
                    if len(values[cell.scenario, axis]) > 1
                    or (compared and axis in by_name[cell.scenario].compared_axes)
                },
            ),
        ]
        for cell in cells
    }


def measure(table: ScenarioTable) -> str:
    """Return the name of the compared quantity."""
    return measure_of(table.quantity, table.clock)


def measure_of(quantity: str, clock: Clock) -> str:
    """Return the name of a quantity: `time`, `CPU time`, `first call time`, `peak memory`, or `loss, as printed`."""
    if quantity == STEP:
        return clock.time
    if quantity == OWN:
        return f"{clock.time} without the import"
    if quantity.startswith(PRINTED):
        return f"{quantity.removeprefix(PRINTED)}, as printed"
    return f"{quantity} {clock.time}" if is_time(quantity) else quantity


def name_values(table: ScenarioTable) -> str:
    """Return the name of the table's values: `time per step`, `first call time`, or `memory growth per call`."""
    scenario = table.scenario
    if scenario.script and table.quantity == STEP and WHOLE not in scenario.quantities:
        return f"{measure(table)} of the whole script"
    units = {STEP: " per step", GROWTH: " per call", **dict.fromkeys(PERCENTILES, " per step")}
    return measure(table) + units.get(table.quantity, "")


def name_table(table: ScenarioTable) -> str:
    """Return the scenario's title, followed by the table's quantity if this isn't the time per step."""
    return table.scenario.title if table.quantity == STEP else f"{table.scenario.title}: {measure(table)}"


def place(table: ScenarioTable, row: Row, axes: Sequence[str]) -> str:
    """Return a row's name: its values of `axes`, and its device if the table has several: `model=small, fit`."""
    return _name_place(table, row.device, row.axes, axes)


def name_sweep(table: ScenarioTable, sweep: MeasuredSweep) -> str:
    """Return the name of a sweep: the values that its cells share; empty if the table has only one sweep."""
    return _name_place(
        table, sweep.device, sweep.shared, [axis for axis in find_varying_axes(table) if axis in sweep.shared]
    )


def _name_place(table: ScenarioTable, device: Device, facts: Mapping[str, str], axes: Sequence[str]) -> str:
    parts = [device.value] if table.several_devices else []
    return ", ".join([*parts, *list_labels(table.scenario, {axis: facts[axis] for axis in axes})])


def find_varying_axes(table: ScenarioTable) -> list[str]:
    """Return the row axes in which the table's rows differ."""
    return [axis for axis in table.row_axes if len({row.axes[axis] for row in table.rows}) > 1]


def name_side(table: ScenarioTable, side: Side) -> str:
    """Return the name of a column's cells: `tf1.14 graph`."""
    return " ".join(filter(None, [side.environment, name_side_values(table, side)]))


def name_side_values(table: ScenarioTable, side: Side) -> str:
    """Return a column's values of the compared axes, such as `graph`; empty if only environments are compared."""
    return " ".join(list_labels(table.scenario, {axis: side.axes[axis] for axis in table.column_axes}))


def name_cell(table: ScenarioTable, row: Row, side: Side, axes: Sequence[str]) -> str:
    """Return the name of a cell: `fit, tf1.14 graph`. `axes` are the axes that distinguish the rows."""
    return ", ".join(part for part in (place(table, row, axes), name_side(table, side)) if part)


def name_measured(table: ScenarioTable, cell: MeasuredCell) -> str:
    """Return the name of a measured cell of the table: `fit, tf1.14 graph`."""
    return name_cell(table, cell.row, cell.side, find_varying_axes(table))


def name_comparison(table: ScenarioTable, column: ScenarioColumn) -> str:
    """Return the name of a comparison: `graph vs eager, tf1.14`. For `pick`, it starts with the entry's name."""
    assert column.comparison is not None, "a column with two sides has a comparison"
    entry, (subject, base, shared_text) = column.comparison, name_sides(table, column)
    if entry.pick:
        # the entry's name already describes the other differences
        subject, base = (label(table.scenario, entry.along, side.values[entry.along]) for side in _get_sides(column))
    text = f"{subject} vs {base}"
    return ", ".join(filter(None, [f"{entry.name}: {text}" if entry.pick else text, shared_text]))


def name_sides(table: ScenarioTable, column: ScenarioColumn) -> tuple[str, str, str]:
    """Return the names of the two sides of a comparison, and of their shared values: `graph`, `eager`, `tf1.14`."""
    facts, other_facts = (side.values for side in _get_sides(column))
    axes = (ENVIRONMENT, *table.column_axes)
    differing_axes = [axis for axis in axes if facts[axis] != other_facts[axis]]
    subject, base = (
        " ".join(list_labels(table.scenario, {axis: side_facts[axis] for axis in differing_axes})) or AS_IT_COMES
        for side_facts in (facts, other_facts)
    )
    shared_facts = {axis: facts[axis] for axis in axes if axis not in differing_axes}
    return subject, base, ", ".join(list_labels(table.scenario, shared_facts))


def name_change(scenario: Scenario, change: LevelChange) -> str:
    """Return the name of a change along one axis, from a base value to another value: `tf2.0 vs tf1.14`."""
    return " vs ".join(name_ends(scenario, change))


def name_ends(scenario: Scenario, change: LevelChange) -> tuple[str, str]:
    """Return the names of a change's new value and base value: `tf2.0` and `tf1.14`."""
    return label(scenario, change.axis, change.level), label(scenario, change.axis, change.base)


def name_effect(scenario: Scenario, effect: Effect) -> str:
    """Return the name of an effect: of one change, `tf2.0 vs tf1.14`, or of an interaction, `tf2.0 × eager`."""
    if effect.parts is None:
        return name_change(scenario, effect.changes[0])
    return " × ".join(label(scenario, change.axis, change.level) for change in effect.changes)


def _get_sides(column: ScenarioColumn) -> tuple[Side, Side]:
    assert column.other is not None, "a column with a comparison has two sides"
    return column.side, column.other
