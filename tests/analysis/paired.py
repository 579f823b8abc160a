"""Groups of two cells with the paired log-ratios that a test wants, and nothing else in them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.cell_index import Lookup, lookup
from harness.analysis.comparisons import Compared, compare
from harness.model.launch import Launch, Role
from harness.model.run import Run
from harness.model.scenario import Cell
from tests.factories import cell, launch, run

#: A round of each of these groups: two launches of 3 s.
SECONDS_PER_ROUND = 6.0
#: What is launched twice a round: a cell in a group of its own, so that it moves no other cell's series.
CONTROL = cell(call="control")


@dataclass(frozen=True)
class Family:
    """A run in which `pairs` can be compared."""

    run: Run
    launches: Sequence[Launch]
    pairs: Sequence[tuple[Cell, Cell]]

    @property
    def found(self) -> Lookup:
        return lookup(self.run, self.launches)

    def compared(self, margin: float = 0.03) -> list[Compared | None]:
        return compare(self.pairs, self.found, margin)


def pair(name: str) -> tuple[Cell, Cell]:
    """A cell and the other, which it is set against."""
    return cell("tf2.0", call=name), cell("tf1.14", call=name)


def family(
    *logs: Sequence[float],
    control: Sequence[float] = (),
    fingerprints: Mapping[Cell, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Family:
    """A pair for each of `logs`: log(time(other) / time(cell)) by round. `control` has the run's own, likewise."""
    pairs = [pair(str(index)) for index in range(len(logs))]
    launches = [
        launch_
        for (one, other), values in zip(pairs, logs, strict=True)
        for number, log in enumerate(values, 1)
        for launch_ in (launch(one, 0.01, number), launch(other, 0.01 * math.exp(log), number))
    ]
    launches = [
        replace(launch_, seconds=3.0, fingerprint=(fingerprints or {}).get(launch_.cell, {})) for launch_ in launches
    ]
    launches += controls(control)
    planned = run([entry for both in pairs for entry in both] + ([CONTROL] if control else []), **changes)
    groups = [replace(group, control=CONTROL if CONTROL in group.cells else None) for group in planned.plan.groups]
    plan = replace(planned.plan, groups=groups)
    return Family(replace(planned, plan=plan), launches, pairs)


def controls(logs: Sequence[float], member: Cell = CONTROL) -> list[Launch]:
    """Two launches of a cell in every round, the second exp(log) times as long."""
    return [
        launch_
        for number, log in enumerate(logs, 1)
        for launch_ in (launch(member, 0.01, number), launch(member, 0.01 * math.exp(log), number, role=Role.CONTROL))
    ]


def around(mean: float, spread: float = 0.001, count: int = 5) -> list[float]:
    """`count` values (three at least) with exactly that mean and, but for their signs, one size of deviation."""
    turns = [(-1.0) ** index for index in range(count - count % 2)] + [0.0] * (count % 2)
    return [mean + spread * turn for turn in turns]
