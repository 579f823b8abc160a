"""A run whose scenario compares every quantity: tf2.0 takes 4 times as long for its first call, and leaks."""

import random
from collections.abc import Mapping
from typing import Any

from harness.model.launch import Launch, Role
from harness.model.run import Run
from harness.model.scenario import Cell, Comparison
from tests.factories import PHASES, RESOURCES, cell, launch, run, scenario

OLD, NEW = cell("tf1.14"), cell("tf2.0")

#: By environment, what each launch takes for its first call, holds at most, keeps of each call; how often it traces.
VALUES: Mapping[str, tuple[float, float, float, int]] = {
    "tf1.14": (0.3, 400 * 1024.0**2, 0.0, 3),
    "tf2.0": (1.2, 800 * 1024.0**2, 1200.0, 300),
}

#: Over as many calls a launch's memory is read, at 21 points.
CALLS = 1000


def quantified_run(*quantities: str, **changes: Any) -> Run:
    """The two environments compared in these quantities; the first is the control."""
    entries = [Comparison(f"{entry} of releases", along="environment", of=entry) for entry in quantities]
    return run(**{"planned": [OLD, NEW], "scenarios": [scenario(compare=entries)], "controlled": True, **changes})


def memory(growth: float, calls: int = CALLS) -> list[tuple[int, int]]:
    """Points of a process that holds so many bytes more after each call."""
    return [(count, 10**8 + round(growth * count)) for count in range(0, calls + 1, calls // 20)]


def quantified(
    count: int = 5, spread: float = 0.01, leak: float = 20.0, values: Mapping[str, Any] = VALUES, **changes: Any
) -> list[Launch]:
    """A pilot and `count` rounds: values scatter by `spread`, what is kept by `leak` bytes a call."""
    draw = random.Random(1)
    slots: list[tuple[Cell, Role]] = [(OLD, Role.MEASURE), (OLD, Role.CONTROL), (NEW, Role.MEASURE)]
    launches = []
    for number in range(count + 1):
        for member, role in slots if number else slots[::2]:
            first, peak, grown, traces = values[member.environment]
            fields: dict[str, Any] = {
                "role": role if number else Role.PILOT,
                "phases": {**PHASES, "first call": first * draw.gauss(1.0, spread)},
                "resources": {**RESOURCES, "max_rss_bytes": peak * draw.gauss(1.0, spread / 10.0)},
                "observations": {"traces": traces},
                "memory": memory(grown + draw.gauss(0.0, leak)),
            }
            launches.append(launch(member, 0.01 * draw.gauss(1.0, spread), number, took=4.0, **{**fields, **changes}))
    return launches
