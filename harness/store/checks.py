"""Consistency checks of a run's files, for example that every name that they refer to is part of the run.

The dataclasses in `harness.model` check types and ranges. This module checks relations between their fields. All
functions raise ValueError. Its message is a clause that describes the problem.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from harness.model.environment import Device, Environment
from harness.model.launch import Launch
from harness.model.numbers import BYTES, DEPTH, LEAST, find_problem, is_number
from harness.model.run import Group, Run
from harness.model.scenario import ENVIRONMENT, Axes, Cell, Claim, Comparison, Expectation, Need, Scenario

#: The pattern of names that become file names: names of runs, environments and scenarios.
_NAME_PATTERN = re.compile(r"[^/\x00-\x1f\x7f]{1,200}")

#: The pattern of the names of machine facts whose values are numbers.
_NUMERIC = re.compile(r"cores|cpus|index|pcie_(generation|width)(_most)?|.*_(bytes|watts)|.*(?<!locked)_sm_clock.*_mhz")

#: The folder of artifacts in the folder of a run.
_ARTIFACTS_FOLDER = "artifacts"


def check_run(run: Run) -> None:
    """Check that the parts of a run are consistent. Raises ValueError."""
    check_name("id", run.id)
    check_instant("started", run.started)
    for machine in filter(None, [run.machine, *(machine_facts.machine for machine_facts in run.machines)]):
        check_name("the id of a machine", machine.id)
    for facts in (run.host, run.backend.more):
        _check_facts(facts)
    environments = _index_by_name("environments", run.environments)
    scenarios = _index_by_name("scenarios", run.scenarios)
    for environment in run.environments:
        _check_environment(environment)
    for scenario in run.scenarios:
        _check_scenario(scenario)
    _index_by_name("plan.groups", run.plan.groups, lambda name: None)
    for group in run.plan.groups:
        _check_group(group, scenarios, environments)
    for absence in run.plan.unavailable:
        _check_cell(absence.cell, scenarios, environments)
    _check_known("reference", [run.reference], environments)
    environments_on_devices = {*environments, *(f"{name}:{device}" for name in environments for device in Device)}
    _check_known("images", run.images, environments_on_devices)
    _check_known("pins", run.pins, environments_on_devices)
    _check_known("sources", run.sources, scenarios)
    _check_known("scripts", run.scripts, scenarios)
    group_names = [group.name for group in run.plan.groups]
    _check_known("stops", run.stops, group_names)
    for look in run.looks:
        _check_known("looks", look, group_names)


def launch_check(run: Run) -> Callable[[Launch], None]:
    """Return a function that checks a launch of the run. The function raises ValueError."""
    planned_cells = {group.name: {cell.key for cell in group.cells} for group in run.plan.groups}

    def check(launch: Launch) -> None:
        if launch.cell.key not in planned_cells.get(launch.group, ()):
            raise ValueError(f"the plan doesn't include the cell {launch.cell} in a group {launch.group}")
        check_launch(launch)

    return check


def check_launch(launch: Launch) -> None:
    """Check the values of a launch, but not whether its run planned it. Raises ValueError."""
    for values in (launch.phases, launch.phases_cpu, launch.resources):
        for name, value in values.items():
            if 0.0 < value < LEAST:  # the type checks only the ends of the range
                raise ValueError(f"{name} is out of range")
    if launch.follows and (len(launch.follows) != len(launch.alone) or max(launch.follows) >= len(launch.samples)):
        raise ValueError("follows doesn't fit the samples")
    if any(0.0 < (sample.cpu_seconds or 0.0) < LEAST for sample in (*launch.samples, *launch.alone)):
        raise ValueError("the CPU time of a sample is out of range")
    if problem := find_problem(launch.observations) or find_problem(launch.fingerprint):
        raise ValueError(problem)
    if launch.places and len(launch.places) != len(launch.samples):
        raise ValueError("the numbers of places and samples differ")
    check_instant("started", launch.started)
    for name in launch.artifacts:
        parts = PurePosixPath(name).parts
        if parts[:1] != (_ARTIFACTS_FOLDER,) or ".." in parts or "\0" in name:
            raise ValueError(f"the artifact {name!r} is not below {_ARTIFACTS_FOLDER}/")


def check_name(label: str, name: str) -> None:
    """Check a text that becomes a file name. Raises ValueError."""
    if not _NAME_PATTERN.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"{label} is {name[:200]!r}, which isn't a valid name")


def check_instant(label: str, text: str) -> None:
    """Check that a text is a time in ISO 8601. Raises ValueError."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{label} is {text[:100]!r}, which isn't a valid time") from None


def _index_by_name(label: str, entries: Iterable[Any], check: Callable[[str], None] | None = None) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for entry in entries:
        if check is None:
            check_name(label, entry.name)
        if by_name.setdefault(entry.name, entry) is not entry:
            raise ValueError(f"{label} has {entry.name} twice")
    return by_name


def _check_known(label: str, names: Iterable[str], allowed: Collection[str]) -> None:
    for name in names:
        if name not in allowed:
            raise ValueError(f"{label} names {name[:200]!r}, which is not part of the run")


def _check_facts(facts: Mapping[str, Any], depth: int = DEPTH) -> None:
    if problem := find_problem(facts, depth):
        raise ValueError(problem)
    gpus = facts.get("gpus")
    if isinstance(gpus, list) and not all(isinstance(gpu, Mapping) for gpu in gpus):
        raise ValueError("gpus has an entry that isn't an object")
    for name, value in facts.items():
        if _NUMERIC.fullmatch(name) and value is not None and not (is_number(value) and value in BYTES):
            raise ValueError(f"{name[:100]} is {str(value)[:100]!r}, which isn't a valid number")
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, Mapping):
                _check_facts(element, depth - 1)


def _check_environment(environment: Environment) -> None:
    from packaging.version import InvalidVersion, Version

    for name in ("tensorflow", "keras"):
        version = getattr(environment, name)
        try:
            if version:
                Version(version)
        except InvalidVersion:
            raise ValueError(
                f"{name} of {environment.name} is {version[:100]!r}, which isn't a valid version"
            ) from None
    if not re.fullmatch(r"\d{1,3}\.\d{1,3}(\.\d{1,3})?", environment.python):
        raise ValueError(
            f"the Python of {environment.name} is {environment.python[:100]!r}, which isn't a valid version"
        )


def _check_scenario(scenario: Scenario) -> None:
    axes, of_scenario = scenario.axes, f"of the scenario {scenario.name}"
    check_name(f"the file {of_scenario}", scenario.path.name)
    # a scenario with two versions has a folder with files for each version
    file_names = [*scenario.files, *filter(None, [scenario.script])]
    for part in (part for file_name in file_names for part in file_name.split("/")):
        check_name(f"a file {of_scenario}", part)
    for axis, values in axes.items():
        if not values:
            raise ValueError(f"the axis {axis} {of_scenario} is empty")
    _check_known(f"environ {of_scenario}", scenario.environ, axes)
    _check_known(f"settings {of_scenario}", scenario.settings, axes)
    _check_known(f"sweeps {of_scenario}", scenario.sweeps, axes)
    for axis in scenario.sweeps:
        _check_sweep(axes[axis], f"the sweep {axis} {of_scenario}")
    axis_values: list[Axes] = [scenario.default, *scenario.exclude]
    entries: list[Need | Expectation | Claim] = [*scenario.needs, *scenario.expect, *scenario.claims]
    axis_values += [entry.when for entry in entries]
    axis_values += [pick.axes for comparison in scenario.compare for pick in comparison.pick]
    axis_values += [side.axes for claim in scenario.claims for side in (claim.worse, claim.better) if side]
    for values_by_axis in axis_values:
        _check_point(values_by_axis, axes, of_scenario)
    for comparison in scenario.compare:
        if comparison.along != ENVIRONMENT:
            _check_along(comparison, scenario, of_scenario)
        for pick in comparison.pick:
            _check_requirements(pick.requires, of_scenario)
    for entry in entries:
        if not isinstance(entry, Claim):
            _check_requirements(entry.requires, of_scenario)
    if problem := find_problem([expectation.value for expectation in scenario.expect], DEPTH + 1):
        raise ValueError(problem)


def _check_along(comparison: Comparison, scenario: Scenario, of_scenario: str) -> None:
    along = comparison.along
    if along not in scenario.axes:
        raise ValueError(f"a comparison {of_scenario} is along {along[:100]!r}, which isn't an axis")
    if along in scenario.sweeps:
        raise ValueError(f"a comparison {of_scenario} is along {along[:100]!r}, which is a sweep")
    values = [comparison.plus, *([comparison.against] if comparison.against else [])]
    _check_known(f"a comparison {of_scenario}", values, scenario.axes[along])


def _check_sweep(values: Sequence[str], label: str) -> None:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        raise ValueError(f"{label} has a value that isn't a number") from None
    if not all(map(math.isfinite, numbers)) or not all(low < high for low, high in pairwise(numbers)):
        raise ValueError(f"the values of {label} don't increase")


def _check_point(point: Axes, axes: Mapping[str, Sequence[str]], of_scenario: str) -> None:
    for axis, value in point.items():
        if value not in axes.get(axis, ()):
            raise ValueError(f"{axis[:100]}={value[:100]} isn't a value of an axis {of_scenario}")


def _check_requirements(texts: Iterable[str], of_scenario: str) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    for text in texts:
        try:
            Requirement(text)
        except InvalidRequirement:
            raise ValueError(
                f"`requires` {of_scenario} has {text[:100]!r}, which isn't a valid requirement (PEP 508)"
            ) from None


def _check_group(group: Group, scenarios: Mapping[str, Scenario], environments: Mapping[str, Environment]) -> None:
    if not group.cells:
        raise ValueError(f"the group {group.name} is empty")
    cell_keys, devices = set(), group.device.split(",")
    _check_known(f"the device of the group {group.name}", devices, list(Device))
    for cell in group.cells:
        if cell.scenario != group.scenario or cell.device not in devices:
            raise ValueError(f"the cell {cell} has a different scenario or device from its group")
        _check_cell(cell, scenarios, environments)
        cell_keys.add(cell.key)
    if len(cell_keys) != len(group.cells):
        raise ValueError(f"the group {group.name} has a cell twice")
    if group.control is not None and group.control.key not in cell_keys:
        raise ValueError(f"the control of the group {group.name} isn't one of its cells")
    _check_known(f"the group {group.name}", group.axes, group.cells[0].axes)


def _check_cell(cell: Cell, scenarios: Mapping[str, Scenario], environments: Mapping[str, Environment]) -> None:
    scenario = scenarios.get(cell.scenario)
    if scenario is None or cell.environment not in environments:
        raise ValueError(f"the cell {cell} belongs to a scenario or an environment that is not part of the run")
    if cell.axes.keys() != scenario.axes.keys() or not all(
        value in scenario.axes[axis] for axis, value in cell.axes.items()
    ):
        raise ValueError(f"the cell {cell} doesn't have one value for each axis of its scenario")
