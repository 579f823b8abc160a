"""What cells observed, as tables with a column for each environment: which behaviour changed with which release.

A table has no more lines than there are differences (`fold`).
"""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.analysis.environments import pins
from harness.analysis.lookup import Lookup
from harness.analysis.observations import KIT, SETTINGS_SEEN, Observed, has_told, observations, tells_version
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import Cell, Scenario

#: What a cell says: what it observed; why it was not launched, or gave nothing; or that it did not observe this.
Said = Observed | Status | str

#: ... of a cell that was launched and did not observe what others did.
NOT_OBSERVED = "not observed"

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class FoldedLine(Generic[Entry]):
    """What cells with these axis values say, environment by environment; None where none of them says anything.

    An axis that is not among `axes` makes no difference to it.
    """

    axes: Mapping[str, str]
    entries: Sequence[Entry | None]


@dataclass(frozen=True, slots=True)
class BehaviourRow:
    """One observation in the cells with the line's axis values, environment by environment."""

    observation: str
    line: FoldedLine[Said]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One experiment: the observations of cells that share a device and the axis values `shared`.

    `axes` are those in which some rows differ, in the header's order. `timed`: these cells have numbers too, and only
    what differs between cells that are compared is here, and what the header expects.
    """

    scenario: Scenario
    device: Device
    shared: Mapping[str, str]
    axes: Sequence[str]
    environments: Sequence[str]
    rows: Sequence[BehaviourRow]
    timed: bool


# by cell and name: what its launches saw, and what is told of it
_Seen = Mapping[Cell, Mapping[str, Observed]]
_Told = Mapping[Cell, Mapping[str, Said]]


def behaviours(run: Run, found: Lookup) -> list[Behaviour]:
    """The run's experiments in the run's order. One that observed nothing that belongs here is left out.

    Of a scenario that times nothing, each value of its first row axis that has several is an experiment; one with
    numbers is a single experiment. What the kit observes, and versions of packages, are no behaviour: they are shown
    only where a scenario that times nothing has nothing else.
    """
    made = []
    for scenario in run.scenarios:
        cells = found.cells_of(scenario.name)
        for device in dict.fromkeys(cell.device for cell in cells):
            made += _experiments(run, scenario, [cell for cell in cells if cell.device is device], found)
    return [each for each in made if each.rows]


def _experiments(run: Run, scenario: Scenario, cells: Sequence[Cell], found: Lookup) -> list[Behaviour]:
    timed = any(cell in found.series for cell in cells)
    seen = {cell: observations(cell, found) for cell in cells}
    known = list(dict.fromkeys(name for observed in seen.values() for name in observed))
    said = {cell: _said(cell, known, seen[cell], found) for cell in cells}
    belonging = _belonging(run, scenario, seen, said, timed=timed)
    # the first row axis that has several values at all: whatever is selected, an experiment keeps its name
    apart = [axis for axis in scenario.row_axes if axis not in scenario.sweeps and len(scenario.axes[axis]) > 1]
    by = [] if timed else apart[:1]
    parts: dict[tuple[str, ...], dict[Cell, Mapping[str, Said]]] = defaultdict(dict)
    for cell in cells:
        parts[tuple(cell.axes[axis] for axis in by)][cell] = said[cell]
    made = []
    for values, part in parts.items():
        present = {cell.environment for cell in part}
        environments = [known.name for known in run.environments if known.name in present]
        rows = [row for name in known if name in belonging for row in _rows(scenario, name, part, environments)]
        parting = {axis for row in rows for axis in row.line.axes}
        made.append(
            Behaviour(
                scenario=scenario,
                device=cells[0].device,
                shared=dict(zip(by, values, strict=True)),
                axes=[axis for axis in scenario.axes if axis in parting],
                environments=environments,
                rows=rows,
                timed=timed,
            )
        )
    return made


def _said(cell: Cell, names: Iterable[str], observed: Mapping[str, Observed], found: Lookup) -> dict[str, Said]:
    """What the cell says under each name; nothing where the run does not know why it says nothing."""
    silent: Said | None = NOT_OBSERVED if has_told(cell, found) else found.status(cell)
    said = {name: observed.get(name, silent) for name in names}
    return {name: entry for name, entry in said.items() if entry is not None}


def _belonging(run: Run, scenario: Scenario, seen: _Seen, said: _Told, *, timed: bool) -> set[str]:
    """The names of the observations that belong in a table."""
    told = {
        name
        for cell, observed in seen.items()
        for name, value in observed.items()
        if name not in KIT and not tells_version(name, value, pins(run, cell.environment))
    }
    if timed:
        return {name for name in told if _differs(scenario, name, said)} | {
            each.observation for each in scenario.expect
        }
    return told or {name for observed in seen.values() for name in observed if name != SETTINGS_SEEN}


def _differs(scenario: Scenario, name: str, said: _Told) -> bool:
    """Whether cells that are compared, those of one row, do not all say the same of it."""
    by_row: dict[tuple[str, ...], set[str | None]] = defaultdict(set)
    for cell, entries in said.items():
        if name in entries:
            by_row[tuple(cell.axes[axis] for axis in scenario.row_axes)].add(key(entries[name]))
    return any(len(keys - {None}) > 1 for keys in by_row.values())


def _rows(scenario: Scenario, name: str, said: _Told, environments: Sequence[str]) -> list[BehaviourRow]:
    """The rows of one observation; none where no cell observed it."""
    axes = [axis for axis in scenario.axes if len({cell.axes[axis] for cell in said}) > 1]
    points = {
        (tuple(cell.axes[axis] for axis in axes), cell.environment): entries[name]
        for cell, entries in said.items()
        if name in entries
    }
    lines = fold(points, axes, environments, key)
    return [BehaviourRow(name, line) for line in lines if any(isinstance(entry, Observed) for entry in line.entries)]


def key(said: Said) -> str | None:
    """Equal for entries that say the same; None of a cell that was not launched, or whose launches broke."""
    if isinstance(said, Status):
        return None
    return json.dumps(said.values, sort_keys=True, default=str) if isinstance(said, Observed) else said


def fold(
    said: Mapping[tuple[tuple[str, ...], str], Entry],
    axes: Sequence[str],
    environments: Sequence[str],
    key: Callable[[Entry], Hashable],
) -> list[FoldedLine[Entry]]:
    """The lines that `said`, by the values of `axes` and the environment, needs.

    An axis is left out where what is said does not depend on it: two entries say the same when their `key` is equal,
    and one whose key is None (a cell that was not launched) agrees with all. The lines are in the order in which `said`
    first has their values.
    """
    points = {
        (tuple(zip(axes, values, strict=True)), environment): entry for (values, environment), entry in said.items()
    }
    # the last axes first: what a header names first tells most
    for axis in reversed(axes):
        # the entries that fall together where the axis is not looked at
        together: dict[tuple[tuple[tuple[str, str], ...], str], list[Entry]] = defaultdict(list)
        for (values, environment), entry in points.items():
            together[tuple(pair for pair in values if pair[0] != axis), environment].append(entry)
        if all(len({key(entry) for entry in entries} - {None}) <= 1 for entries in together.values()):
            points = {
                place: next((entry for entry in entries if key(entry) is not None), entries[0])
                for place, entries in together.items()
            }
    return [
        FoldedLine(dict(values), [points.get((values, environment)) for environment in environments])
        for values in dict.fromkeys(values for values, _ in points)
    ]
