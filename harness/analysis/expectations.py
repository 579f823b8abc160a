"""What a scenario's source states of its observations, against what was observed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.analysis.columns import pins
from harness.analysis.lookup import Lookup
from harness.analysis.observations import Observed, alike, has_told, observations
from harness.model.environment import unmet
from harness.model.run import Run
from harness.model.scenario import Cell, Expectation, Scenario, matches


class Standing(StrEnum):
    """How a statement stands in one cell."""

    AS_STATED = "as stated"
    DIFFERS = "differs"
    VARIES = "varies"
    NOT_OBSERVED = "not observed"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement in one cell that was launched; `observed` is None where its launches did not observe that."""

    cell: Cell
    standing: Standing
    observed: Observed | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One expectation of a scenario's header, in every cell that it is about and that has launches that tell."""

    scenario: Scenario
    expectation: Expectation
    checks: Sequence[Check]


def statements(run: Run, found: Lookup) -> list[Statement]:
    """What the sources of the run's scenarios state, in the headers' order, as far as any cell can tell."""
    checked = [
        Statement(scenario, expectation, _checks(run, scenario, expectation, found))
        for scenario in run.scenarios
        for expectation in scenario.expect
    ]
    return [statement for statement in checked if statement.checks]


def _checks(run: Run, scenario: Scenario, expectation: Expectation, found: Lookup) -> list[Check]:
    cells = [
        cell
        for cell in found.cells
        if cell.scenario == scenario.name and matches(expectation.when, cell.axes) and has_told(cell, found)
    ]
    meant = {name for name in {cell.environment for cell in cells} if not unmet(expectation.requires, pins(run, name))}
    return [_check(cell, expectation, found) for cell in cells if cell.environment in meant]


def _check(cell: Cell, expectation: Expectation, found: Lookup) -> Check:
    observed = observations(cell, found).get(expectation.observation)
    if observed is None:
        return Check(cell, Standing.NOT_OBSERVED, None)
    if observed.varies:
        return Check(cell, Standing.VARIES, observed)
    (value,) = observed.values
    return Check(cell, Standing.AS_STATED if alike(value, expectation.value) else Standing.DIFFERS, observed)
