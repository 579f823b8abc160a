"""TensorFlow settings that differ between compared cells although nobody requested it: a hidden cause of a ratio."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.cell_index import Lookup
from harness.analysis.observations import SETTINGS_SEEN, are_equal, observations
from harness.analysis.tables import ScenarioTable
from harness.model.scenario import ENVIRONMENT, Cell, Scenario


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
    for cell, other in _list_compared(table):
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


def _list_compared(table: ScenarioTable) -> Iterable[tuple[Cell, Cell]]:
    values = [value.compared for row in table.rows for value in row.values if value.compared]
    return dict.fromkeys((compared.cell, compared.other) for compared in values)


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
