"""Selection of cells: resolves names and globs in selections and suites, and combines axis values."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.model import settings
from harness.model.environment import LINES, Device
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.scenario import CPUS, ENVIRONMENT, Cell, Scenario, Suite, SuitePart
from harness.model.settings import open_to
from harness.model.texts import find_nearest, list_valid_names, match_names
from harness.toml import Findings, Key, list_choices

#: The largest number of cells in a run. At one second per launch, one launch of each cell would take more than a day.
CELLS = 100_000

#: The commands that list all valid names, by kind of name.
_LISTINGS = {
    "scenario": "harness scenarios list",
    "suite": "harness scenarios list",
    "environment": "harness images list",
    "family": "harness repro list",
}

Point = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested patterns for environments, scenarios, and the values of axes. An empty field selects everything."""

    suite: str = ""
    environments: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The environments, scenarios and suites that can be selected."""

    environments: Sequence[str]
    scenarios: Mapping[str, Scenario]
    suites: Mapping[str, Suite]


def resolve(patterns: Iterable[str], names: Sequence[str], kind: str) -> list[str]:
    """Return the `names` that each pattern matches (`match_names`), in the order of the patterns, without duplicates.

    Raises UsageError, with the most similar names, for a pattern that matches nothing.
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matching = match_names(pattern, names)
        if not matching:
            raise make_unknown_error(pattern, names, kind)
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def make_unknown_error(typed: str, names: Sequence[str], kind: str) -> UsageError:
    """Return the error for an unknown name. `kind` describes the name, such as `value of the axis mode`."""
    if kind == ENVIRONMENT and names and (other := re.match(r"(?i)(?:py)?torch|jax", typed)):
        package = "torch" if "torch" in other[0].lower() else "jax"
        return UsageError(
            f"Unknown environment: {typed!r}. Environments are releases of TensorFlow.",
            f"To run Keras 3 on another backend, add its package, such as -e '{names[-1]}+{package}==VERSION'.",
        )
    lines = LINES if kind == ENVIRONMENT else ()
    nearest, newest = find_nearest(typed, [*names, *lines]), _find_newest(typed, names)
    hint = f" The newest is {newest}." if newest else f" Did you mean {nearest}?" if nearest else ""
    noun, separator, owner = kind.partition(" of ")
    listing = _LISTINGS.get(noun, "harness scenarios show NAME")
    return UsageError(f"Unknown {noun}{separator}{owner}: {typed!r}.{hint}", list_valid_names(typed, names, listing))


def _find_newest(typed: str, names: Sequence[str]) -> str | None:
    """Return the newest release in `names` if the requested release is newer: `tf2.21` for `tf2.99`."""
    newest = max(names, key=_parse_release, default="")
    return newest if _parse_release(typed) > _parse_release(newest) > (0, 0) else None


def _parse_release(name: str) -> tuple[int, int]:
    """Return the release in an environment's name, such as (2, 21) for `tf2.21`, or (0, 0) for other names."""
    match = re.fullmatch(r"tf(\d+)\.(\d+)", name)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def parse_axes(texts: Sequence[str]) -> dict[str, list[str]]:
    """Parse texts such as `AXIS=VALUE,VALUE` to the values of each axis. Raises UsageError for an invalid text."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        axis, equals, values = text.partition("=")
        if not equals or not axis.strip() or not values.replace(",", "").strip():
            raise UsageError(f"Invalid --axis {text!r}: expected AXIS=VALUE.", "Example: -a call=fit -a mode=eager")
        axes.setdefault(axis.strip(), []).extend(value.strip() for value in values.split(",") if value.strip())
    return axes


def select(selection: Selection, catalog: Catalog, device: Device) -> tuple[list[Cell], list[str]]:
    """Return the selected cells, and the selected environments with the baseline first.

    Cells are sorted by suite, scenario and axes, and the environment varies fastest. Raises UsageError for an unknown
    name, and NothingSelectedError, with the filter that excluded the last cells, if no cell remains.
    """
    suite = _find_suite(selection, catalog)
    scenarios = resolve(selection.scenarios or ["*"], list(catalog.scenarios), "scenario")
    environments = resolve(
        selection.environments or (suite.environments if suite else ["*"]), catalog.environments, "environment"
    )
    parts = suite.parts if suite else [SuitePart(scenario=name, axes={}) for name in scenarios]
    part_scenarios = {part.scenario for part in parts}
    filters = _match_filters(
        selection.axes,
        [catalog.scenarios[name] for name in scenarios if name in part_scenarios],
        list(catalog.scenarios.values()),
    )

    points = _find_points(parts, catalog, suite, set(filters))
    chosen = list(points)
    if suite and selection.scenarios:
        remaining = [point for point in chosen if point[0] in scenarios]
        chosen = _require_nonempty(remaining, f"--scenario {','.join(selection.scenarios)}", chosen, "scenario", suite)
    for axis, values in filters.items():
        remaining = [point for point in chosen if dict(point[1]).get(axis) in values]
        chosen = _require_nonempty(remaining, f"--axis {axis}={','.join(selection.axes[axis])}", chosen, axis, suite)
    if not chosen or not environments:
        raise NothingSelectedError("Nothing is selected: pass at least one scenario and one environment.")
    count = sum(len(points[point].intersection(environments)) for point in chosen)
    if count > CELLS:
        problem = f"{count:,} cells are selected; a run has at most {CELLS:,}."
        raise UsageError(problem, "Select fewer cells (-s, -e, -a).")
    cells = [
        Cell(scenario=scenario, environment=environment, device=device, axes=dict(axes))
        for scenario, axes in chosen
        for environment in environments
        if environment in points[scenario, axes]
    ]
    if not cells:
        raise NothingSelectedError(
            f"Nothing is selected: the suite {selection.suite} doesn't include {', '.join(environments)}.",
            "To use the suite's environments, omit -e.",
        )
    return cells, environments


def _find_points(
    parts: Sequence[SuitePart], catalog: Catalog, suite: Suite | None, filtered_axes: set[str]
) -> dict[Point, set[str]]:
    """Return the selected environments of each combination of a scenario and axis values."""
    points: dict[Point, set[str]] = {}
    for part in parts:
        if part.scenario not in catalog.scenarios:
            raise make_unknown_error(
                part.scenario, list(catalog.scenarios), f"scenario of the suite {suite.name if suite else ''}"
            )
        environments = resolve(part.environments or ["*"], catalog.environments, "environment")
        for axes in _list_points(catalog.scenarios[part.scenario], part, set() if suite else filtered_axes):
            points.setdefault((part.scenario, tuple(axes.items())), set()).update(environments)
    return points


def remove_broken(
    selection: Selection, catalog: Catalog, broken: Collection[str]
) -> tuple[Selection, Catalog, list[str]]:
    """Return the selection and the catalog without the `broken` scenarios, and the names of all selected scenarios.

    `catalog` contains the valid scenarios. Raises UsageError for a name that is neither valid nor in `broken`.
    """
    chosen = resolve(selection.scenarios or ["*"], [*catalog.scenarios, *broken], "scenario")
    suite = catalog.suites.get(selection.suite)
    if suite:
        suite_scenarios = {part.scenario for part in suite.parts}
        chosen = [name for name in chosen if name in suite_scenarios]
    if not any(name in broken for name in chosen):
        return selection, catalog, chosen
    if selection.scenarios:
        selection = replace(selection, scenarios=[name for name in chosen if name not in broken])
    if suite:
        suite = replace(suite, parts=[part for part in suite.parts if part.scenario not in broken])
        catalog = replace(catalog, suites={**catalog.suites, suite.name: suite})
    return selection, catalog, chosen


def _find_suite(selection: Selection, catalog: Catalog) -> Suite | None:
    if not selection.suite:
        return None
    if selection.suite not in catalog.suites:
        raise make_unknown_error(selection.suite, list(catalog.suites), "suite")
    return catalog.suites[selection.suite]


def _match_filters(
    axes: Mapping[str, Sequence[str]], scenarios: Sequence[Scenario], all_scenarios: Sequence[Scenario]
) -> dict[str, list[str]]:
    """Return the values that the patterns of each axis match.

    It matches the values in the selected scenarios, or in all scenarios if no selected scenario has the axis.
    """
    filters = {}
    for axis, patterns in axes.items():
        with_axis = [scenario for scenario in scenarios if axis in scenario.axes] or all_scenarios
        values = {value: None for scenario in with_axis for value in scenario.axes.get(axis, ())}
        if not values:
            axis_names = {name: None for scenario in scenarios for name in (*scenario.axes, *open_to(scenario, [CPUS]))}
            raise make_unknown_error(axis, list(axis_names), "axis")
        filters[axis] = resolve(patterns, list(values), f"value of the axis {axis}")
    return filters


def _list_points(scenario: Scenario, part: SuitePart, selected: set[str]) -> list[dict[str, str]]:
    """Return the combinations of axis values in a part of a suite.

    An axis with a default only has this value, unless the part or the request (`selected`) names the axis.
    """
    values = {}
    for axis, levels in scenario.axes.items():
        if axis in part.axes:
            values[axis] = resolve(part.axes[axis], levels, f"value of the axis {axis}")
        elif axis in scenario.default and axis not in selected:
            values[axis] = [scenario.default[axis]]
        else:
            values[axis] = list(levels)
    for axis in part.axes:
        if axis not in scenario.axes:
            raise make_unknown_error(axis, [*scenario.axes, *open_to(scenario)], f"axis of {scenario.name}")
    return scenario.combinations(values)


def _require_nonempty(
    remaining: list[Point], name: str, points: list[Point], axis: str, suite: Suite | None
) -> list[Point]:
    if remaining:
        return remaining
    values = [point[0] if axis == "scenario" else dict(point[1]).get(axis) for point in points]
    present = list(dict.fromkeys(value for value in values if value is not None))
    no_axis = ", or don't have this axis" if None in values else ""
    values_advice = (
        f"The combinations have {axis} {', '.join(present)}{no_axis}."
        if present
        else f"No scenario with the axis {axis} is selected."
    )
    suite_advice = (
        f" The combinations come from the suite {suite.name}. To use all values of a scenario, pass -s without --suite."
        if suite
        else ""
    )
    raise NothingSelectedError(
        f"Nothing is selected: {name} excludes all {len(points)} combinations of axes.",
        f"{values_advice}{suite_advice}",
    )


def check_suites(
    catalog: Catalog, broken: Collection[str], findings: Findings, only: Collection[str] | None = None
) -> None:
    """Add a finding for each name in the catalog's suites that matches nothing.

    If `only` is given, only the parts with these scenarios are checked. Parts with `broken` scenarios can't be checked.
    """
    for suite in catalog.suites.values():
        if only is None:
            suite_environments = _check_patterns(
                (suite.name, "environments"), suite.environments, catalog.environments, ENVIRONMENT, findings
            )
            check_fallbacks(suite, suite_environments, catalog.environments, findings)
        for number, part in enumerate(suite.parts):
            if part.scenario not in broken and (only is None or part.scenario in only):
                _check_part((suite.name, "select", number), part, catalog, findings)


def check_fallbacks(suite: Suite, named: Collection[str], environments: Sequence[str], findings: Findings) -> None:
    """Add a finding for each invalid fallback of a suite. `named` contains the suite's environments in the catalog.

    Cycles are valid, because an environment that can't run is only replaced by one that can.
    """
    for role, patterns in suite.instead.items():
        key = (suite.name, "instead", role)
        if role not in environments:
            error = make_unknown_error(role, environments, ENVIRONMENT)
            findings.add(key, error.message, error.advice)
        elif role not in named:
            fix = "Remove the line, or add the environment to the suite's `environments`."
            findings.add(key, f"The environment {role} isn't in the suite {suite.name}.", fix)
        if role in patterns:
            findings.add(key, f"{role} can't replace itself.", "Remove the environment from the list.")
        _check_patterns(key, patterns, environments, ENVIRONMENT, findings)


def _check_part(key: Key, part: SuitePart, catalog: Catalog, findings: Findings) -> None:
    scenario = catalog.scenarios.get(part.scenario)
    if scenario is None:
        if part.scenario:
            error = make_unknown_error(part.scenario, list(catalog.scenarios), "scenario")
            findings.add((*key, "scenario"), error.message, error.advice)
        return
    _check_patterns((*key, ENVIRONMENT), part.environments, catalog.environments, ENVIRONMENT, findings)
    values = {axis: list(levels) for axis, levels in scenario.axes.items()}
    for axis, patterns in part.axes.items():
        if axis in open_to(scenario):
            _check_patterns((*key, axis), patterns, settings.values(axis), f"value of the setting {axis}", findings)
        elif axis in values:
            matched = _check_patterns((*key, axis), patterns, values[axis], f"value of {axis}", findings)
            values[axis] = matched or values[axis]
        else:
            axis_names = [*scenario.axes, *settings.SETTINGS]
            findings.add(
                (*key, axis), f"Unknown axis of {scenario.name}: {axis!r}.", list_choices(axis, axis_names, "axes")
            )
    if not scenario.combinations(values):
        problem = "This part selects nothing: the scenario's header excludes all its combinations."
        findings.add((*key, "scenario"), problem, "Remove this part, or select other values.")


def _check_patterns(
    key: Key, patterns: Sequence[str], names: Sequence[str], kind: str, findings: Findings
) -> list[str]:
    """Return the names that the patterns match, and add a finding for each pattern that matches nothing."""
    matched = []
    for pattern in patterns:
        try:
            matched += resolve([pattern], names, kind)
        except UsageError as error:
            findings.add(key, error.message, error.advice, value=pattern)
    return matched
