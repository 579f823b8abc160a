"""What a run says of each of its cells: its time per step, or why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.disturbance import disturbed
from harness.analysis.lookup import Lookup
from harness.analysis.observations import observations
from harness.analysis.phases import Used, used
from harness.analysis.shape import Shape
from harness.analysis.statistics import Estimate
from harness.analysis.tables import ScenarioTable
from harness.model.launch import Launch, Status
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class Centre:
    """A launch that counts and gave a number, in `seconds` per step. `disturbed` says how it was, empty where not."""

    round: int
    attempt: int
    order: int
    role: str
    started: str
    seconds: float
    steps: int
    samples: int
    disturbed: str


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell: its seconds per step, or why it has none.

    `name` identifies it, the same in every run; `status` is `ok` where it has a number. `launches` are those that count
    and gave one. `undone` says how the steps that a launch took and those that the framework counted differ.
    `observations` are what its launches saw that is no time: by name, each value once.
    """

    name: str
    cell: Cell
    group: str
    status: Status
    estimate: Estimate | None
    launches: Sequence[Centre]
    shape: Shape | None
    used: Used
    undone: str
    observations: Mapping[str, Sequence[Any]]


def cell_name(cell: Cell) -> str:
    """All that identifies a cell, whatever else its run has: `step tf1.14 cpu call=fit mode=graph`."""
    axes = [f"{axis}={value}" for axis, value in cell.axes.items()]
    return " ".join([cell.scenario, cell.environment, cell.device.value, *axes])


def cell_results(found: Lookup, tables: Sequence[ScenarioTable]) -> list[CellResult]:
    """Every cell of the run, in the plan's order, then those known to be unavailable."""
    values = {table.cell(row, head.side): value for table in tables for row, head, value in table.times()}

    def result(cell: Cell) -> CellResult:
        value, launches = values.get(cell), found.numbers.get(cell, ())
        estimate = value.estimate if value else None
        return CellResult(
            name=cell_name(cell),
            cell=cell,
            group=found.groups.get(cell, ""),
            status=Status.OK if estimate else found.status(cell) or Status.INTERRUPTED,
            estimate=estimate,
            launches=[_centre(launch) for launch in launches],
            shape=value.shape if value else None,
            used=used(launches),
            undone=value.undone if value else "",
            observations={name: seen.values for name, seen in observations(cell, found).items()},
        )

    return [result(cell) for cell in found.cells]


def _centre(launch: Launch) -> Centre:
    return Centre(
        round=launch.round,
        attempt=launch.attempt,
        order=launch.order,
        role=launch.role.value,
        started=launch.started,
        seconds=launch.centre,
        steps=launch.steps,
        samples=len(launch.samples),
        disturbed=disturbed(launch),
    )
