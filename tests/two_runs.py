"""Two runs of the same cells, on different days."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.analysis.results import Results
from harness.analysis.runs import CellChange, Changes, Pair
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import Cell
from tests.factories import cell, rounds, run, scenario

MARGIN = 0.03

#: Six cells: enough for a shift to be told.
CELLS = [cell(environment, call=call) for call in ("a", "b", "c") for environment in ("tf1.14", "tf2.0")]

#: What a run must tell for its software to be known, and the scenario of the cells.
KNOWN: Mapping[str, Any] = {
    "sources": {"step": "ab12"},
    "scenarios": [scenario(axes={"call": ["a", "b", "c", "fit"], "dtype": ["float32"], "mode": ["graph", "eager"]})],
}

Stored = tuple[Run, Sequence[Launch]]


def first(
    seconds: Mapping[Cell, float] | None = None, *, count: int = 5, spread: float = 0.002, **changes: Any
) -> Stored:
    """A run in which each of `CELLS` takes 10 ms, or as `seconds` says, in so many rounds."""
    return _stored("2026-11-20T04-10-00Z-aaaa", seconds, (count, spread, 1), changes)


def second(
    seconds: Mapping[Cell, float] | None = None, *, count: int = 5, spread: float = 0.002, **changes: Any
) -> Stored:
    """A run of the day after, likewise."""
    return _stored("2026-11-21T04-10-00Z-bbbb", seconds, (count, spread, 2), changes)


def compared(one: Stored, other: Stored, margin: float = MARGIN) -> Changes:
    return pair(one, other, margin).changes


def pair(one: Stored, other: Stored, margin: float = MARGIN) -> Pair:
    return Pair(Results(*one), Results(*other), margin)


def change(changes: Changes, member: Cell) -> CellChange:
    return next(entry for entry in changes.cells if entry.cell == member)


def all_but(slower: Cell, times: float, seconds: float = 0.01) -> dict[Cell, float]:
    """`CELLS` at so many seconds, and one of them so many times as long."""
    return {entry: seconds * (times if entry == slower else 1.0) for entry in CELLS}


def _stored(
    name: str, seconds: Mapping[Cell, float] | None, rounds_: tuple[int, float, int], changes: Mapping[str, Any]
) -> Stored:
    times = dict.fromkeys(CELLS, 0.01) if seconds is None else seconds
    return run(list(times), **{**KNOWN, "id": name, **changes}), rounds(times, *rounds_)
