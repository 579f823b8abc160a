"""`harness scenarios show`: what a scenario's header says, and in which environments its cells exist."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.catalog.project import Project
    from harness.model.environment import Environment
    from harness.model.scenario import Axes, Comparison, Scenario


def describe(project: "Project", scenario: "Scenario") -> dict[str, Any]:
    """A scenario in JSON values: its header, and how many of its cells exist in each environment of the catalogue."""
    from harness.catalog.environments import load_environments

    header = asdict(scenario)
    described = {**header, "path": str(scenario.path), "cells": len(scenario.combinations(scenario.axes))}
    described["environments"] = [
        _availability(project, scenario, environment) for environment in load_environments(project).values()
    ]
    return described


def _availability(project: "Project", scenario: "Scenario", environment: "Environment") -> dict[str, Any]:
    """How many cells an environment has, and why not the others; for the CPU where it has an image for that."""
    from harness.catalog.locks import load_lock
    from harness.model.cell import Cell
    from harness.model.errors import UsageError
    from harness.plan.availability import split

    device = environment.devices[0]
    found = {"name": environment.name, "device": device.value}
    try:
        requirement = load_lock(project, environment, device)
    except UsageError as error:
        return {**found, "cells": 0, "not_available": [{"cells": 0, "reason": error.message, "advice": error.advice}]}
    cells = [
        Cell(scenario=scenario.name, environment=environment.name, device=device, axes=axes)
        for axes in scenario.combinations(scenario.axes)
    ]
    able, unable = split(
        cells, {scenario.name: scenario}, {environment.name: requirement}, {environment.name: environment}
    )
    reasons = Counter((entry.reason, entry.advice) for entry in unable)
    absent = [{"cells": count, "reason": reason, "advice": advice} for (reason, advice), count in reasons.items()]
    return {**found, "cells": len(able), "not_available": absent}


def lines(scenario: "Scenario", described: Mapping[str, Any]) -> Iterator[str]:
    """What `describe` tells, for a reader."""
    yield f"{scenario.name}: {scenario.title}"
    facts = [
        ("file", str(scenario.path)),
        ("source", scenario.source or "none"),
        ("tags", ", ".join(scenario.tags)),
        ("needs", ", ".join([f"Python {scenario.requires_python or 'of any version'}", *scenario.dependencies])),
    ]
    yield from _columns([fact for fact in facts if fact[1]])
    yield from _section("axes", _columns([(axis, _values(scenario, axis)) for axis in scenario.axes]))
    yield from _section("not combined", map(_point, scenario.exclude))
    yield from _section("compares", map(_comparison, scenario.compare))
    stated = (
        (entry.observation, repr(entry.value), " ".join([_point(entry.when), *entry.requires]).strip())
        for entry in scenario.expect
    )
    yield from _section("the source states", _columns(list(stated)))
    yield ""
    yield f"of its {described['cells']} cells, axes with a default in all their values, there are"
    yield from _table(described["environments"], described["cells"])


def _values(scenario: "Scenario", axis: str) -> str:
    listed = ", ".join(value or "unset" for value in scenario.axes[axis])
    sweep = scenario.sweeps.get(axis)
    if sweep:
        listed += f" {sweep.unit}".rstrip()
    notes = [
        "a sweep" if sweep else "",
        "a process variable" if axis in scenario.environ else "",
        f"{scenario.default[axis] or 'unset'} unless selected" if axis in scenario.default else "",
    ]
    told = "; ".join(filter(None, notes))
    return f"{listed} ({told})" if told else listed


def _point(axes: "Axes") -> str:
    return " ".join(f"{axis}={value}" for axis, value in axes.items())


def _comparison(comparison: "Comparison") -> str:
    told = f"{comparison.name}: along {comparison.along}"
    if comparison.plus:
        told += f", positive when {comparison.plus} is faster than {comparison.against or 'another'}"
    picks = [
        f"{_point(pick.axes)} where {' and '.join(pick.requires) or 'nothing else fits'}" for pick in comparison.pick
    ]
    return f"{told}, with {', '.join(picks)}" if picks else told


def _table(environments: Sequence[Mapping[str, Any]], whole: int) -> Iterator[str]:
    """A line an environment; each reason is told once, below, by its number."""
    numbers: dict[tuple[str, str], int] = {}
    rows = []
    for environment in environments:
        absent = [
            f"{entry['cells']} [{numbers.setdefault((entry['reason'], entry['advice']), len(numbers) + 1)}]"
            for entry in environment["not_available"]
        ]
        rows.append((environment["name"], f"{environment['cells']} of {whole}", ", ".join(absent)))
    yield from _columns([("environment", "cells", "not available" if numbers else ""), *rows])
    for (reason, advice), number in numbers.items():
        yield f"[{number}] {reason.rstrip('.')}. {advice}".rstrip()


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    told = list(entries)
    if told:
        yield ""
        yield title
        yield from (f"  {entry}" for entry in told)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
