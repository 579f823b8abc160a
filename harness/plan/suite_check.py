"""Whether what suites name exists."""

from collections.abc import Collection, Mapping, Sequence

from harness.catalog.toml import Findings, Key, choices
from harness.model.errors import UsageError
from harness.model.scenario import ENVIRONMENT, Scenario, Suite, SuitePart
from harness.plan.selection import Catalog, resolve


def check(catalog: Catalog, broken: Collection[str], findings: Findings, only: Collection[str] | None = None) -> None:
    """Note each name in the catalogue's suites that matches nothing; of the parts of the scenarios `only` alone.

    What is said of a `broken` scenario cannot be judged.
    """
    for suite in catalog.suites.values():
        if only is None:
            _patterns((suite.name, "environments"), suite.environments, catalog.environments, ENVIRONMENT, findings)
        for number, part in enumerate(suite.parts):
            if part.scenario in broken or (only is not None and part.scenario not in only):
                continue
            _check_part((suite.name, "select", number), suite, part, catalog, findings)


def _check_part(key: Key, suite: Suite, part: SuitePart, catalog: Catalog, findings: Findings) -> None:
    scenario = catalog.scenarios.get(part.scenario)
    if scenario is None:
        if part.scenario:
            fix = choices(part.scenario, catalog.scenarios, "scenarios")
            findings.add((*key, "scenario"), f"The suite {suite.name} names {part.scenario!r}, no scenario.", fix)
        return
    _patterns((*key, ENVIRONMENT), part.environments, catalog.environments, ENVIRONMENT, findings)
    for axis, patterns in part.axes.items():
        if axis in scenario.axes:
            _patterns((*key, axis), patterns, scenario.axes[axis], f"value of {axis}", findings)
        else:
            fix = choices(axis, scenario.axes, "axes")
            findings.add((*key, axis), f"{scenario.name} has no axis {axis!r}.", fix)
    if not _selected(part, scenario):
        findings.add((*key, "scenario"), "This part selects nothing: the header excludes all of it.", "Take it out.")


def _patterns(key: Key, patterns: Sequence[str], names: Sequence[str], kind: str, findings: Findings) -> None:
    for pattern in patterns:
        try:
            resolve([pattern], names, kind)
        except UsageError as error:
            findings.add(key, error.message, error.advice, value=pattern)


def _selected(part: SuitePart, scenario: Scenario) -> bool:
    """Whether some combination is left, as far as the part's names exist."""
    values: Mapping[str, Sequence[str]] = scenario.axes
    try:
        chosen = {axis: resolve(patterns, values[axis], "value") for axis, patterns in part.axes.items()}
    except (KeyError, UsageError):
        return True
    return bool(scenario.combinations({**values, **chosen}))
