"""Observations of cells, as tables with a column for each environment: which release changed which behavior.

Rows that don't differ are merged (`fold`). Also TensorFlow settings that differ between compared cells although nobody
requested it: a hidden cause of a ratio.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from harness.analysis.cell_index import Lookup
from harness.analysis.environments import pins
from harness.analysis.observations import (
    KIT,
    SETTINGS_SEEN,
    Observed,
    are_equal,
    has_observations,
    is_version,
    observations,
)
from harness.analysis.tables import ScenarioTable
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Cell, Scenario

#: The entry of a cell: its observation, the status that explains a missing observation, or a text (NOT_OBSERVED).
ObservationEntry = Observed | Status | str

#: The text for a cell that was launched but didn't make an observation that other cells made.
NOT_OBSERVED = "not observed"

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class ObservationLine(Generic[Entry]):
    """The observations of cells with the axis values `axes`, one for each environment; None for a missing cell.

    An axis that isn't in `axes` has no effect on the observations.
    """

    axes: Mapping[str, str]
    entries: Sequence[Entry | None]


@dataclass(frozen=True, slots=True)
class BehaviourRow:
    """The name of an observation, and its values in the cells of `line`, one for each environment."""

    observation: str
    line: ObservationLine[ObservationEntry]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One experiment: the observations of cells that share a device and the axis values `shared`.

    `axes` are the axes in which some rows differ, in the header's order. `timed`: these cells also have times.
    `rows` then has only observations that differ between compared cells, or that the header expects.
    """

    scenario: Scenario
    device: Device
    shared: Mapping[str, str]
    axes: Sequence[str]
    environments: Sequence[str]
    rows: Sequence[BehaviourRow]
    timed: bool


# the observations of launches, and the entries of tables, by cell and name
_Observations = Mapping[Cell, Mapping[str, Observed]]
_Entries = Mapping[Cell, Mapping[str, ObservationEntry]]


def behaviours(run: Run, lookup: Lookup) -> list[Behaviour]:
    """Return the run's experiments in the run's order, without experiments that have no relevant observations.

    A scenario with times is a single experiment. A scenario that times nothing has an experiment for each value of its
    first row axis with several values. Observations of the kit and versions of packages aren't behavior. The tables
    show them only for a scenario that times nothing and has no other observations.
    """
    experiments = []
    for scenario in run.scenarios:
        cells = lookup.cells_of(scenario.name)
        for device in dict.fromkeys(cell.device for cell in cells):
            experiments += _make_experiments(run, scenario, [cell for cell in cells if cell.device is device], lookup)
    return [experiment for experiment in experiments if experiment.rows]


def _make_experiments(run: Run, scenario: Scenario, cells: Sequence[Cell], lookup: Lookup) -> list[Behaviour]:
    timed = any(cell in lookup.series for cell in cells)
    observed_by_cell = {cell: observations(cell, lookup) for cell in cells}
    names = list(dict.fromkeys(name for observed in observed_by_cell.values() for name in observed))
    by_cell = {cell: _collect_observations(cell, names, observed_by_cell[cell], lookup) for cell in cells}
    shown_names = _select_names(run, scenario, observed_by_cell, by_cell, timed=timed)
    # from the scenario's axes, not from the selected cells, so that an experiment keeps its name in each run
    varying_axes = [axis for axis in scenario.row_axes if axis not in scenario.sweeps and len(scenario.axes[axis]) > 1]
    experiment_axes = [] if timed else varying_axes[:1]
    groups: dict[tuple[str, ...], dict[Cell, Mapping[str, ObservationEntry]]] = defaultdict(dict)
    for cell in cells:
        groups[tuple(cell.axes[axis] for axis in experiment_axes)][cell] = by_cell[cell]
    experiments = []
    for values, group in groups.items():
        measured = {cell.environment for cell in group}
        environments = [environment.name for environment in run.environments if environment.name in measured]
        rows = [row for name in names if name in shown_names for row in _find_rows(scenario, name, group, environments)]
        differing_axes = {axis for row in rows for axis in row.line.axes}
        experiments.append(
            Behaviour(
                scenario=scenario,
                device=cells[0].device,
                shared=dict(zip(experiment_axes, values, strict=True)),
                axes=[axis for axis in scenario.axes if axis in differing_axes],
                environments=environments,
                rows=rows,
                timed=timed,
            )
        )
    return experiments


def _collect_observations(
    cell: Cell, names: Iterable[str], observed: Mapping[str, Observed], lookup: Lookup
) -> dict[str, ObservationEntry]:
    """Return the entry of the cell for each observation in `names`, without entries for which nothing is known."""
    missing_entry: ObservationEntry | None = NOT_OBSERVED if has_observations(cell, lookup) else lookup.status(cell)
    entries = {name: observed.get(name, missing_entry) for name in names}
    return {name: entry for name, entry in entries.items() if entry is not None}


def _select_names(
    run: Run, scenario: Scenario, observed_by_cell: _Observations, by_cell: _Entries, *, timed: bool
) -> set[str]:
    """Return the names of the observations that the tables of a scenario show."""
    names = {
        name
        for cell, observed in observed_by_cell.items()
        for name, value in observed.items()
        if name not in KIT and not is_version(name, value, pins(run, cell.environment))
    }
    if timed:
        return {name for name in names if _has_differences(scenario, name, by_cell)} | {
            expectation.observation for expectation in scenario.expect
        }
    return names or {name for observed in observed_by_cell.values() for name in observed if name != SETTINGS_SEEN}


def _has_differences(scenario: Scenario, name: str, by_cell: _Entries) -> bool:
    """Return whether compared cells, which are in the same row, have different values of the observation `name`."""
    by_row: dict[tuple[str, ...], set[str | None]] = defaultdict(set)
    for cell, entries in by_cell.items():
        if name in entries:
            by_row[tuple(cell.axes[axis] for axis in scenario.row_axes)].add(key(entries[name]))
    return any(len(keys - {None}) > 1 for keys in by_row.values())


def _find_rows(scenario: Scenario, name: str, by_cell: _Entries, environments: Sequence[str]) -> list[BehaviourRow]:
    """Return the rows of one observation; none if no cell observed it."""
    axes = [axis for axis in scenario.axes if len({cell.axes[axis] for cell in by_cell}) > 1]
    points = {
        (tuple(cell.axes[axis] for axis in axes), cell.environment): entries[name]
        for cell, entries in by_cell.items()
        if name in entries
    }
    lines = fold(points, axes, environments, key)
    return [BehaviourRow(name, line) for line in lines if any(isinstance(entry, Observed) for entry in line.entries)]


def key(entry: ObservationEntry) -> str | None:
    """Return a key that is equal for equal entries; None for a cell without a successful launch."""
    if isinstance(entry, Status):
        return None
    return json.dumps(entry.values, sort_keys=True, default=str) if isinstance(entry, Observed) else entry


def fold(
    seen: Mapping[tuple[tuple[str, ...], str], Entry],
    axes: Sequence[str],
    environments: Sequence[str],
    key: Callable[[Entry], Hashable],
) -> list[ObservationLine[Entry]]:
    """Return the rows that are needed to show `seen`, which maps the values of `axes` and the environment to entries.

    An axis is omitted if the observations don't depend on it. Two entries are equal if their `key` is equal. An entry
    whose key is None (a cell without a successful launch) equals all others. Rows are in the order in which their
    values first appear in `seen`.
    """
    points = {
        (tuple(zip(axes, values, strict=True)), environment): entry for (values, environment), entry in seen.items()
    }
    # the last axes first, because headers name the most informative axis first
    for axis in reversed(axes):
        # the entries that only this axis distinguishes
        merged: dict[tuple[tuple[tuple[str, str], ...], str], list[Entry]] = defaultdict(list)
        for (values, environment), entry in points.items():
            merged[tuple(pair for pair in values if pair[0] != axis), environment].append(entry)
        if all(len({key(entry) for entry in entries} - {None}) <= 1 for entries in merged.values()):
            points = {
                place: next((entry for entry in entries if key(entry) is not None), entries[0])
                for place, entries in merged.items()
            }
    return [
        ObservationLine(dict(values), [points.get((values, environment)) for environment in environments])
        for values in dict.fromkeys(values for values, _ in points)
    ]


# Settings.


@dataclass(frozen=True, slots=True)
class SettingSeen:
    """A value of a setting, and where it was observed: in an environment, or with axis values.

    `value` is the observed value: a list of the parts that XLA compiles for `xla`, otherwise a string.
    """

    value: Any
    places: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that differs between compared cells of a scenario. `seen` has its values in the order of the cells."""

    setting: str
    scenario: Scenario
    seen: Sequence[SettingSeen]


def differences(table: ScenarioTable, lookup: Lookup) -> list[SettingDifference]:
    """Return the settings that differ between compared cells of a table although nobody requested different values."""
    places: dict[tuple[str, bool], list[tuple[Any, dict[str, str]]]] = {}
    for cell, other in dict.fromkeys((compared.cell, compared.other) for compared in table.compared):
        settings, other_settings = (_get_observed(side, lookup) for side in (other, cell))
        for name in settings:
            if (
                name in other_settings
                and not are_equal(settings[name], other_settings[name])
                and cell.axes.get(name) == other.axes.get(name)
            ):
                values = places.setdefault((name, cell.environment != other.environment), [])
                values += [
                    (settings[name], _describe_place(other, cell)),
                    (other_settings[name], _describe_place(cell, other)),
                ]
    return [SettingDifference(name, table.scenario, _group_by_value(values)) for (name, _), values in places.items()]


def _get_observed(cell: Cell, lookup: Lookup) -> Mapping[str, Any]:
    """Return the settings that a cell's launches observed; empty if they disagree."""
    observed = observations(cell, lookup).get(SETTINGS_SEEN)
    settings = observed.values[0] if observed and not observed.varies else {}
    return settings if isinstance(settings, Mapping) else {}


def _describe_place(cell: Cell, other: Cell) -> dict[str, str]:
    """Return the cell's environment if it differs from the compared cell's, otherwise the axis values that differ."""
    if cell.environment != other.environment:
        return {ENVIRONMENT: cell.environment}
    return {axis: value for axis, value in cell.axes.items() if value != other.axes.get(axis)}


def _group_by_value(observed: Iterable[tuple[Any, dict[str, str]]]) -> list[SettingSeen]:
    by_value: list[tuple[Any, list[dict[str, str]]]] = []
    for value, place in observed:
        places = next((places for other, places in by_value if are_equal(other, value)), None)
        if places is None:
            by_value.append((value, [place]))
        elif place not in places:
            places.append(place)
    return [SettingSeen(value, places) for value, places in by_value]
