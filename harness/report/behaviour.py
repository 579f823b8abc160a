"""What cells observed, as tables of text. Nothing here is escaped yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.behaviour import Behaviour, Said, behaviours
from harness.analysis.lookup import Lookup
from harness.analysis.observations import Observed, observations
from harness.analysis.tables import Table
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import format, grid, names, observed
from harness.report.cells import CELL
from harness.report.observed import Entry, Line, Told

#: The heading over the names of observations.
OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class BehaviourView:
    """One experiment of a scenario: `name` says which, empty where the scenario is one.

    `timed`: its cells have numbers too. Then a line is a cell with its time, else an observation by environment.
    """

    scenario: Scenario
    name: str
    told: Told
    timed: bool


def views(run: Run, tables: Sequence[Table], found: Lookup) -> list[BehaviourView]:
    """What the run's cells observed; `tables` are those of the scenarios that have numbers."""
    made = behaviours(run, found)
    by_scenario = {table.scenario.name: table for table in tables}
    several_devices = len({each.device for each in made}) > 1
    return [_view(each, by_scenario, found, several_devices=several_devices) for each in made]


def _view(made: Behaviour, tables: Mapping[str, Table], found: Lookup, *, several_devices: bool) -> BehaviourView:
    device = [made.device.value] if several_devices else []
    place = [names.label(made.scenario, axis, value) for axis, value in made.shared.items()]
    told = _beside_times(made, tables[made.scenario.name], found) if made.timed else _by_environment(made)
    return BehaviourView(made.scenario, ", ".join([*device, *place]), told, made.timed)


def _by_environment(made: Behaviour) -> Told:
    lines = [
        Line(
            ", ".join([row.observation, *(names.label(made.scenario, *pair) for pair in row.line.axes.items())]),
            [row.observation, *(row.line.axes.get(axis, "") for axis in made.axes)],
            [None if entry is None else _entry(entry) for entry in row.line.entries],
        )
        for row in made.rows
    ]
    return observed.changes([OBSERVATION, *made.axes], made.environments, lines)


def _beside_times(made: Behaviour, table: Table, found: Lookup) -> Told:
    """A line for each cell that has a number: the number, and what the cell observed."""
    axes, unit = names.varying(table), grid.table_unit(table)
    shown = list(dict.fromkeys(row.observation for row in made.rows))
    lines = []
    for row in (row for row in table.rows if row.device is made.device):
        for head, value in zip(table.columns, row.values, strict=True):
            if head.other or not value.estimate:
                continue
            seen = observations(table.cell(row, head.side), found)
            entries = [_entry(seen[name]) if name in seen else None for name in shown]
            name = names.cell_name(table, row, head.side, axes)
            lines.append(Line(name, [name, format.time(value.estimate, unit)], entries))
    return observed.columns([CELL, f"time, {unit.symbol}"], shown, lines)


def _entry(said: Said) -> Entry:
    if isinstance(said, Observed):
        told = observed.seen(said)
        return Entry(f"varies: {told}" if said.varies else told, stands_out=said.varies)
    return Entry(f"{said!s}", is_value=False)
