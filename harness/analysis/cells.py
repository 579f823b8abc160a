"""The result of each cell: its time per step, or the reason why it has none. Also all cells without a result."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from harness.analysis.cell_index import Lookup
from harness.analysis.distribution import Shape, Used, summarize_resources
from harness.analysis.interference import describe_interference
from harness.analysis.observations import observations
from harness.analysis.on_device import OnDevice
from harness.analysis.rounds import compute_mean, compute_subtracted_share
from harness.analysis.statistics import Estimate
from harness.analysis.tables import ScenarioTable
from harness.model.launch import Launch, Status
from harness.model.run import StopReason
from harness.model.scenario import DEVICE, Cell

Source = TypeVar("Source")
Result = TypeVar("Result")

#: The largest sizes of a process's standard error output and of a reason. Longer output is cut off at its start, and a
#: longer reason at its end.
STDERR_LINES = 20
STDERR_CHARACTERS = 4000
REASON_CHARACTERS = 500

#: The reason for a cell without launches if the run recorded more rounds of its group than launches.jsonl has.
CUT_OFF = "its launches are missing from launches.jsonl, so the file is truncated"


class Computed(Sequence[Result], Generic[Source, Result]):
    """The results of a function for `values`. They aren't stored, because a run may have many launches."""

    __slots__ = ("_compute", "_values")

    def __init__(self, compute: Callable[[Source], Result], values: Sequence[Source]) -> None:
        self._compute = compute
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> Result: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Result]: ...

    def __getitem__(self, place: int | slice) -> Result | Sequence[Result]:
        if isinstance(place, slice):
            return Computed(self._compute, self._values[place])
        return self._compute(self._values[place])


@dataclass(frozen=True, slots=True)
class LaunchMean:
    """A launch that counts and has a result, in `seconds` per step.

    `taken` is the share of the measured time that is subtracted because of CPU contention: without the subtraction,
    `seconds` would be seconds / (1 - taken). `disturbed` describes the interference; it is empty if there was none.
    """

    round: int
    attempt: int
    order: int
    role: str
    started: str
    seconds: float
    steps: int
    samples: int
    taken: float
    disturbed: str


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell with its seconds per step, or the reason why it has none.

    `name` identifies the cell, and is the same in every run. `status` is `ok` if the cell has a result. `launches` are
    the launches that count and have a result. If a launch and the framework counted different numbers of steps,
    `undone` describes the difference. `observations` contains values other than times: by name, each distinct value
    once. `on_device` contains the GPU activity that TensorFlow's profiler recorded in some further steps; None if it
    recorded nothing.
    """

    name: str
    cell: Cell
    group: str
    status: Status
    estimate: Estimate | None
    launches: Sequence[LaunchMean]
    shape: Shape | None
    used: Used
    undone: str
    observations: Mapping[str, Sequence[Any]]
    on_device: OnDevice | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """Cells that have no result for the same reason.

    `partial`: the cells have a result, but some of their launches don't. `reason` may be empty if nothing was launched.
    `stderr` is the end of the standard error output of one of the launches.
    """

    status: Status
    reason: str
    advice: str
    stderr: str
    partial: bool
    cells: Sequence[Cell]


def cell_name(cell: Cell) -> str:
    """Return the full name of a cell, independent of its run: `step tf1.14 cpu call=fit mode=graph`."""
    axes = [f"{axis}={value}" for axis, value in cell.axes.items() if axis != DEVICE]
    return " ".join([cell.scenario, cell.environment, cell.device.value, *axes])


def cell_results(
    lookup: Lookup, tables: Sequence[ScenarioTable], on_device: Mapping[Cell, OnDevice]
) -> list[CellResult]:
    """Return the result of every cell: the plan's cells in order, then the unavailable cells."""
    values = {cell: value for table in tables for cell, value in table.cells().items()}

    def make_result(cell: Cell) -> CellResult:
        value, launches = values.get(cell), lookup.numbers.get(cell, ())
        estimate = value.estimate if value else None
        return CellResult(
            name=cell_name(cell),
            cell=cell,
            group=lookup.groups.get(cell, ""),
            status=Status.OK if estimate else lookup.status(cell) or Status.INTERRUPTED,
            estimate=estimate,
            launches=Computed(_make_launch_mean, launches),
            shape=value.shape if value else None,
            used=summarize_resources(launches),
            undone=value.undone if value else "",
            observations={name: seen.values for name, seen in observations(cell, lookup).items()},
            on_device=on_device.get(cell),
        )

    return [make_result(cell) for cell in lookup.cells]


def _make_launch_mean(launch: Launch) -> LaunchMean:
    return LaunchMean(
        round=launch.round,
        attempt=launch.attempt,
        order=launch.order,
        role=launch.role.value,
        started=launch.started,
        seconds=compute_mean(launch),
        steps=launch.steps,
        samples=len(launch.samples),
        taken=compute_subtracted_share(launch),
        disturbed=describe_interference(launch),
    )


def find_missing(lookup: Lookup) -> list[Missing]:
    """Return the cells without a result, or with some launches without a result, grouped by reason.

    Cells that only make observations aren't included. Cells without any result come first. Groups are also sorted by
    status.
    """
    by_cause: dict[tuple[bool, Status, str, str], list[Cell]] = defaultdict(list)
    for cell in lookup.cells:
        has_number = cell in lookup.series
        if cell in lookup.lost or not (has_number or cell in lookup.observed):
            status = lookup.status(cell) or Status.INTERRUPTED
            by_cause[has_number, status, *explain_unavailable(cell, lookup)].append(cell)
    order = list(Status)
    causes = sorted(by_cause.items(), key=lambda item: (item[0][0], order.index(item[0][1])))
    return [
        Missing(status, reason, advice, _get_stderr(cells, lookup), partial, cells)
        for (partial, status, reason, advice), cells in causes
    ]


def explain_unavailable(cell: Cell, lookup: Lookup) -> tuple[str, str]:
    """Return why the cell has no result, and advice; both are empty if no reason was recorded."""
    if unavailable := lookup.unavailable.get(cell):
        return unavailable.reason[:REASON_CHARACTERS], unavailable.advice
    launch = lookup.culprit(cell)
    if launch:
        return launch.error[:REASON_CHARACTERS], launch.advice
    stop = lookup.stops.get(lookup.groups.get(cell, ""))
    if stop is None:
        return "", ""
    # a budget may leave out some cells of a measured group, but a number of rounds doesn't
    if stop.rounds and (lookup.rounds_of(cell) < stop.rounds or stop.reason is StopReason.ROUNDS):
        return CUT_OFF, ""
    return lookup.describe_budget(cell), ""


def _get_stderr(cells: Sequence[Cell], lookup: Lookup) -> str:
    """Return the end of the standard error output of the first of `cells` that has such output."""
    launches = (lookup.culprit(cell) for cell in cells)
    return next(filter(None, (get_tail(launch.stderr) for launch in launches if launch)), "")


def get_tail(text: str) -> str:
    """Return the end of a text: at most 20 lines and 4,000 characters."""
    return "\n".join(text[-STDERR_CHARACTERS:].rstrip().splitlines()[-STDERR_LINES:])
