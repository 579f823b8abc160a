"""Observations of cells (values other than times), and statements about them in a scenario's source."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.analysis.cell_index import Lookup
from harness.analysis.environments import pins
from harness.model.environment import find_unmet, installed, normalize
from harness.model.launch import ON_DEVICE, Launch, Status
from harness.model.run import Run
from harness.model.scenario import (
    NUMBER_LABELS,
    NUMBER_UNITS,
    NUMBERS,
    OUTPUT,
    RESIDENT,
    Cell,
    Expectation,
    Scenario,
    has_values,
)

#: The name of the kit's observation of the TensorFlow settings that were on.
SETTINGS_SEEN = "settings"

#: The name of the kit's observation of the commit from which TensorFlow was built (`tf.version.GIT_VERSION`).
GIT_VERSION = "git version"

#: The name of the kit's observation of the calls of a step (analysis/work_counts.py).
WORK = "work"

#: The kit's own observations: of launches on a GPU, of launches that import TensorFlow, and of plain scripts
#: (docs/dev/worker-protocol.md).
KIT = frozenset(
    {"placed on", ON_DEVICE, SETTINGS_SEEN, GIT_VERSION, WORK, OUTPUT, NUMBERS, NUMBER_UNITS, NUMBER_LABELS, RESIDENT}
)

#: The largest relative difference between floats that agree. If the order of a sum changes, its last digits differ.
TOLERANCE = 1e-5

#: Larger integers may not fit into a float.
_LARGEST = 1e300

_VERSION = re.compile(r"\d+(\.\d+)+\S*")


@dataclass(frozen=True, slots=True)
class Observed:
    """The values of one observation of a cell: each distinct value once (at least one), in the order of launches."""

    values: Sequence[Any]

    @property
    def varies(self) -> bool:
        """Whether the launches have different values."""
        return len(self.values) > 1


class Standing(StrEnum):
    """The result of checking a statement in one cell."""

    AS_STATED = "as stated"
    DIFFERS = "differs"
    VARIES = "varies"
    NOT_OBSERVED = "not observed"


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one statement in one cell; `observed` is None if the cell's launches don't have this observation."""

    cell: Cell
    standing: Standing
    observed: Observed | None


@dataclass(frozen=True, slots=True)
class Statement:
    """An expectation in a scenario's header, with a check for every launched cell to which it applies."""

    scenario: Scenario
    expectation: Expectation
    checks: Sequence[Check]


def observations(cell: Cell, lookup: Lookup) -> dict[str, Observed]:
    """Return the observations of the cell's launches by name.

    Launches that count take precedence. A cell's first launch makes more observations (docs/dev/worker-protocol.md), so
    observations that these launches don't have come from the pilot.
    """
    if cell not in lookup.seen:
        lookup.seen[cell] = _collect_observations(cell, lookup)
    return lookup.seen[cell]


def _collect_observations(cell: Cell, lookup: Lookup) -> dict[str, Observed]:
    values: dict[str, list[Any]] = {}
    for launch in lookup.numbers.get(cell) or lookup.observed.get(cell) or ():
        for name, value in launch.observations.items():
            distinct_values = values.setdefault(name, [])
            if not any(are_equal(value, other) for other in distinct_values):
                distinct_values.append(value)
    pilot = lookup.pilots.get(cell)
    for name, value in pilot.observations.items() if pilot and pilot.status is Status.OK else ():
        values.setdefault(name, [value])
    return {name: Observed(entries) for name, entries in values.items()}


def has_observations(cell: Cell, lookup: Lookup) -> bool:
    """Return whether a launch of the cell ended ok, so that its observations are complete."""
    pilot = lookup.pilots.get(cell)
    return cell in lookup.numbers or cell in lookup.observed or (pilot is not None and pilot.status is Status.OK)


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal: integers exactly, floats within a tolerance, lists and mappings by entry.

    A boolean doesn't equal a number.
    """
    if isinstance(one, str | bool) or isinstance(other, bool):  # texts are checked first, because most values are texts
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        # a larger integer may not fit into a float
        if (isinstance(one, int) and isinstance(other, int)) or max(abs(one), abs(other)) > _LARGEST:
            return bool(one == other)
        return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(are_equal(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    return bool(type(one) is type(other) and one == other)


def find_commit(launches: Iterable[Launch], environment: str) -> str:
    """Return the commit that the TensorFlow of an environment reports, in the format of `git describe`, or empty."""
    values = (launch.observations.get(GIT_VERSION) for launch in launches if launch.cell.environment == environment)
    return next((str(value) for value in values if value), "")


def is_version(name: str, observed: Observed, pins: Mapping[str, str]) -> bool:
    """Return whether an observation is the version of an installed package, which the software table already shows."""
    texts = [value for value in observed.values if isinstance(value, str) and _VERSION.fullmatch(value)]
    return len(texts) == len(observed.values) and installed(normalize(name), pins) is not None


def statements(run: Run, lookup: Lookup) -> list[Statement]:
    """Return the statements in the headers of the run's scenarios that at least one launched cell can decide."""
    all_statements = [
        Statement(scenario, expectation, _make_checks(run, scenario, expectation, lookup))
        for scenario in run.scenarios
        for expectation in scenario.expect
    ]
    return [statement for statement in all_statements if statement.checks]


def _make_checks(run: Run, scenario: Scenario, expectation: Expectation, lookup: Lookup) -> list[Check]:
    cells = [
        cell
        for cell in lookup.cells_of(scenario.name)
        if has_values(expectation.when, cell.axes) and has_observations(cell, lookup)
    ]
    matching_environments = {
        name for name in {cell.environment for cell in cells} if not find_unmet(expectation.requires, pins(run, name))
    }
    return [_check(cell, expectation, lookup) for cell in cells if cell.environment in matching_environments]


def _check(cell: Cell, expectation: Expectation, lookup: Lookup) -> Check:
    observed = observations(cell, lookup).get(expectation.observation)
    if observed is None:
        return Check(cell, Standing.NOT_OBSERVED, None)
    if observed.varies:
        return Check(cell, Standing.VARIES, observed)
    (value,) = observed.values
    return Check(cell, Standing.AS_STATED if are_equal(value, expectation.value) else Standing.DIFFERS, observed)
