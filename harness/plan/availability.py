"""Which cells an environment's packages cannot run, known before any launch."""

from collections.abc import Mapping, Sequence

from harness.model.cell import Cell
from harness.model.environment import Requirement
from harness.model.requirements import unmet
from harness.model.run import Unavailable
from harness.model.scenario import Need, Scenario, matches


def split(
    cells: Sequence[Cell], scenarios: Mapping[str, Scenario], requirements: Mapping[str, Requirement]
) -> tuple[list[Cell], list[Unavailable]]:
    """The cells that can run, and those that cannot, with the reason; `requirements` by environment."""
    runnable, unavailable = [], []
    for cell in cells:
        reason = _reason(cell, scenarios[cell.scenario], requirements[cell.environment])
        if reason:
            unavailable.append(Unavailable(cell=cell, reason=reason[0], advice=reason[1]))
        else:
            runnable.append(cell)
    return runnable, unavailable


def _reason(cell: Cell, scenario: Scenario, requirement: Requirement) -> tuple[str, str] | None:
    from packaging.specifiers import SpecifierSet

    pins, environment = requirement.lock.pins, requirement.environment
    if not SpecifierSet(scenario.requires_python).contains(environment.python):
        return (
            f"{scenario.name} needs Python {scenario.requires_python}, {environment.name} has {environment.python}",
            "Choose an environment of another Python.",
        )
    needs = [Need(requires=scenario.dependencies), *scenario.needs]
    for need in needs:
        if not matches(need.when, cell.axes):
            continue
        missing = unmet(need.requires, pins)
        if missing:
            wanted = " and ".join(missing)
            return need.reason or f"needs {wanted}", need.advice or f"Choose an environment with {wanted}."
    return None
