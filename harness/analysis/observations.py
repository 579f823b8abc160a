"""What cells observed: the values that are no times, from the launches that count."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.lookup import Lookup
from harness.model.environment import installed, normalise
from harness.model.launch import Status
from harness.model.scenario import Cell

#: What the kit itself observes of every launch on a GPU (docs/contracts.md).
KIT = frozenset({"placed on"})

#: Floats agree when they differ by no more than this, relatively: sums of other orders differ in their last digits.
TOLERANCE = 1e-5

_VERSION = re.compile(r"\d+(\.\d+)+\S*")


@dataclass(frozen=True, slots=True)
class Observed:
    """What a cell's launches saw under one name: each value once, at least one, in the order of the launches."""

    values: Sequence[Any]

    @property
    def varies(self) -> bool:
        """Whether the launches disagree."""
        return len(self.values) > 1


def observations(cell: Cell, found: Lookup) -> dict[str, Observed]:
    """What the cell's launches saw, by name.

    Those that count tell first. A cell's first launch looks closer (docs/contracts.md), so what they did not look
    at is the pilot's, and without any number everything is.
    """
    values: dict[str, list[Any]] = {}
    for launch in found.numbers.get(cell) or found.observed.get(cell) or ():
        for name, value in launch.observations.items():
            known = values.setdefault(name, [])
            if not any(alike(value, other) for other in known):
                known.append(value)
    pilot = found.pilots.get(cell)
    for name, value in pilot.observations.items() if pilot and pilot.status is Status.OK else ():
        values.setdefault(name, [value])
    return {name: Observed(known) for name, known in values.items()}


def has_told(cell: Cell, found: Lookup) -> bool:
    """Whether some launch of the cell ended ok, so that what it did not observe was not there to be observed."""
    pilot = found.pilots.get(cell)
    return cell in found.numbers or cell in found.observed or (pilot is not None and pilot.status is Status.OK)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same: whole numbers exactly, floats within a tolerance, lists and tables by entry.

    A truth value is no number.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return bool(type(one) is type(other) and one == other)


def tells_version(name: str, observed: Observed, pins: Mapping[str, str]) -> bool:
    """Whether an observation tells the version of an installed package of that name: the environments' table has it."""
    texts = [value for value in observed.values if isinstance(value, str) and _VERSION.fullmatch(value)]
    return len(texts) == len(observed.values) and installed(normalise(name), pins) is not None
