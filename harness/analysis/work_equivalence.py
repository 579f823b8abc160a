"""Work equivalence of two cells: their fingerprints, compared by the rules of docs/dev/worker-protocol.md."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.model.environment import Device
from harness.model.launch import Launch
from harness.model.numbers import is_number
from harness.model.scenario import Cell
from harness.model.texts import format_plain

#: The fingerprint's entries for the number of steps: as the scenario counts them, and as the framework counts them. The
#: two must be equal in each launch.
CALLED, COUNTED = "steps_called", "steps_counted"

#: Floats agree if their absolute or relative difference is at most this. On a CPU, a sum of thousands of float32 values
#: loses a digit or two; a GPU may multiply in TF32, which has 10 bits.
TOLERANCE = {Device.CPU: 1e-4, Device.GPU: 1e-2}

#: MIXED: the setting with which Keras computes in float16, which has 11 bits, on any device. MIXED_TOLERANCE: the
#: tolerance with this setting. LEFT_OUT: the largest share of steps that the optimizer may then skip because their
#: gradients overflow.
MIXED, MIXED_TOLERANCE, LEFT_OUT = ("precision", "mixed_float16"), 1e-2, 0.01


class Work(StrEnum):
    """The result of comparing the fingerprints of two cells."""

    SAME = "same"
    NOT_CHECKED = "not checked"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class WorkCheck:
    """Whether two cells did the same work. If they didn't, `reason` describes the difference in one line."""

    work: Work
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether the cells certainly did different work."""
        return self.work is Work.DIFFERENT


def compare(one: Sequence[Launch], other: Sequence[Launch]) -> WorkCheck:
    """Compare the fingerprints of two cells' launches; launches of one cell must agree with each other too."""
    one, other = _select_distinct(one), _select_distinct(other)
    for launches, others in ((one, other), (other, one)):
        for launch in launches:
            if reason := steps(launch):
                name, _ = _name_difference(launch.cell, others[0].cell) if others else (launch.cell.environment, "")
                return WorkCheck(Work.DIFFERENT, f"{name} {reason}")
    fingerprints = [
        (launch, values)
        for launch in [*one, *other]
        if (values := {name: value for name, value in launch.fingerprint.items() if name not in (CALLED, COUNTED)})
    ]
    for launch, values in fingerprints[1:]:
        first, expected = fingerprints[0]
        for name in dict.fromkeys([*expected, *values]):
            if reason := _describe_difference(
                name, expected.get(name), values.get(name), _choose_tolerance(first.cell, launch.cell)
            ):
                return WorkCheck(Work.DIFFERENT, f"{reason} ({', '.join(_name_difference(first.cell, launch.cell))})")
    is_checked = one and other and len(fingerprints) == len(one) + len(other)
    return WorkCheck(Work.SAME if is_checked else Work.NOT_CHECKED)


def _select_distinct(launches: Sequence[Launch]) -> list[Launch]:
    """Return the first launch with each fingerprint, because launches from a file share equal fingerprints."""
    by_fingerprint: dict[int, Launch] = {}
    for launch in launches:
        by_fingerprint.setdefault(id(launch.fingerprint), launch)
    return list(by_fingerprint.values())


def _choose_tolerance(one: Cell, other: Cell) -> float:
    is_mixed = _is_mixed(one) or _is_mixed(other)
    return max(TOLERANCE[one.device], TOLERANCE[other.device], MIXED_TOLERANCE if is_mixed else 0.0)


def _is_mixed(cell: Cell) -> bool:
    return MIXED in cell.axes.items()


def _name_difference(one: Cell, other: Cell) -> tuple[str, str]:
    """Return a name for each cell that shows how they differ: `tf1.14` and `tf2.0`, or `graph` and `eager`."""
    values = [(value, other.axes.get(axis, "")) for axis, value in one.axes.items()]
    differing_pairs = [pair for pair in [(one.environment, other.environment), *values] if pair[0] != pair[1]]
    pairs = differing_pairs or [(one.environment, other.environment)]
    return " ".join(pair[0] for pair in pairs), " ".join(pair[1] for pair in pairs)


def steps(launch: Launch) -> str:
    """Return how the scenario's and the framework's counts of a launch's steps differ; empty if they agree."""
    called, counted = launch.fingerprint.get(CALLED), launch.fingerprint.get(COUNTED)
    if called is None or COUNTED not in launch.fingerprint or called == counted:
        return ""
    if counted is not None and _is_mixed(launch.cell) and 0 <= called - counted <= LEFT_OUT * called:
        return ""
    count = "the framework's count can't be read" if counted is None else f"the framework counted {counted}"
    return f"ran {called} steps, but {count}"


def _describe_difference(name: str, one: Any, other: Any, tolerance: float) -> str:
    """Return the difference of two values of one name; empty if they agree. None differs from everything."""
    if one is None or other is None:
        return f"{name} is unknown"
    if _is_list(one) and one == other and all(type(item) is float and math.isfinite(item) for item in one):
        return ""
    are_lists = _is_list(one) and _is_list(other) and len(one) == len(other)
    pairs = list(zip(one, other, strict=True)) if are_lists else [(one, other)]
    if all(is_number(value) and is_number(other_value) for value, other_value in pairs):
        difference = max(
            (_compute_difference(value, other_value, tolerance) for value, other_value in pairs), default=0.0
        )
        return f"{name}: difference of {format_plain(difference, 2)}" if difference > 0.0 else ""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        parts = {f"{name}.{key}": (one[key], other[key]) for key in one}
    elif are_lists:
        parts = {f"{name}[{index}]": pair for index, pair in enumerate(pairs)}
    else:
        return "" if one == other else f"{name} is {_shorten(one)} and {_shorten(other)}"
    reasons = (_describe_difference(part, *values, tolerance) for part, values in parts.items())
    return next(filter(None, reasons), "")


def _compute_difference(one: float, other: float, tolerance: float) -> float:
    """Return the absolute difference between two numbers; 0 if they agree.

    Integers agree if they are equal, and other numbers if they differ by at most the tolerance.
    """
    are_integers = isinstance(one, int) and isinstance(other, int)
    are_equal = one == other if are_integers else math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return 0.0 if are_equal else abs(one - other)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"
