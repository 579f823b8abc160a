"""Estimates the duration of a plan, and finds the images that must be built first."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from harness.backends import registry
from harness.machine.gpu.selection import collect_facts
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Launch, Protocol, Role, Sampling, Status
from harness.model.run import Plan, Run
from harness.model.scenario import Cell
from harness.plan.gpus import find_first_starts, find_lazy_starts
from harness.session.planning.planned import Planned
from harness.session.request import Request
from harness.store.folder import RunFolder, pause_garbage_collection

#: Assumed seconds of a launch if no earlier run launched the same cell: before the warm-up (a container or process
#: starts, and imports TensorFlow), in the warm-up, and in the measurement.
START, WARMUP, MEASURE = 3.0, 0.5, 1.0

#: The minimum seconds of a first start in which the driver compiles all GPU code, according to TensorFlow's warning.
FIRST_START = 1800.0
#: The assumed seconds in which the driver compiles code in parts, when they are first needed.
LAZY_START = 300.0

#: The number of newest runs that are searched for launches of the same cells.
RUNS = 10


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """The estimated duration of a run.

    - `seconds`: the time for all launches, without the preparation of environments
    - `basis`: the id of an earlier run whose durations were used, or an empty text
    - `unknown`: the number of cells without a known duration; `start`: the assumed seconds until their warm-up
    - `unprepared`: environments that must be prepared first. None if this machine can't run the plan
    - `makes`: the thing that the backend prepares, such as an image
    - `first_starts`: the number of environments whose GPU code the driver must compile first; `lazy_starts`: the number
      of those whose code it must compile in parts, when they are first needed. `seconds` includes the time for both
    - `unasked`: the reason why this machine can't run the plan, with advice
    - `rights`: a sentence about code that runs with the user's rights, or an empty text
    """

    seconds: float
    basis: str
    unknown: int
    makes: str
    unprepared: Sequence[str] | None
    unasked: str = ""
    rights: str = ""
    start: float = START
    first_starts: int = 0
    lazy_starts: int = 0


@dataclass(frozen=True, slots=True)
class _Times:
    """The seconds of a cell's launches: before the warm-up, in the warm-up, and in the measurement.

    If a cell only records observations (`observes`), its pilot is its only launch.
    """

    start: float = START
    warmup: float = WARMUP
    measure: float = MEASURE
    observes: bool = False

    @classmethod
    def median(cls, launches: Sequence[Launch]) -> Self:
        """Return the medians of the launches' durations."""
        total = statistics.median(launch.seconds for launch in launches)
        warmup = statistics.median(launch.phases.get("warm up", 0.0) for launch in launches)
        measure = statistics.median(sum(sample.seconds for sample in launch.samples) for launch in launches)
        observes = all(launch.role is Role.PILOT for launch in launches)
        return cls(max(0.0, total - warmup - measure), warmup, measure, observes)

    def seconds(self, sampling: Sampling) -> float:
        """Return the duration of a launch with this sampling."""
        if sampling.protocol is Protocol.DOCUMENT:
            return self.start + self.warmup + self.measure
        warmup = self.warmup if sampling.warmup_seconds is None else sampling.warmup_seconds
        measure = self.measure if sampling.measure_seconds is None else sampling.measure_seconds
        return self.start + warmup + measure


def estimate_duration(planned: Planned) -> DurationEstimate:
    """Estimate the duration of a plan, which depends on the environments that the run's backend has available."""
    unprepared: list[Requirement] | None
    unasked, unprepared, name, makes, has_caches, rights = "", None, planned.request.backend, "", False, ""
    try:
        backend, _ = planned.choose_backend()
        name, makes, rights = backend.name, backend.makes, planned.describe_rights(backend.name)
        unprepared = backend.unprepared(planned.needed)
        has_caches = bool(planned.plan.limits.gpus and backend.caches())
    except (CannotRunHereError, registry.UntrustedError) as error:
        unasked = " ".join(filter(None, [error.message, error.advice]))
    earlier, earlier_times = _find_earlier_times(planned, name)
    times = {cell: earlier_times.get(cell, _Times()) for cell in planned.cells}
    unknown_count = sum(cell not in earlier_times for cell in planned.cells)
    plan, slots = planned.plan, _count_slots(planned)
    seconds = _estimate_seconds(plan, times, slots, _list_pilots(plan, times))
    started, gpu_facts = set[str](), collect_facts(planned.gpus, planned.gpu_host)
    if earlier and has_caches and _list_drivers(earlier.host) == _list_drivers(gpu_facts):
        started = {cell.environment for cell in earlier_times if cell.device is Device.GPU}
    first_starts, lazy_starts = (len({*find(plan)} - started) for find in (find_first_starts, find_lazy_starts))
    return DurationEstimate(
        seconds=seconds + first_starts * FIRST_START + lazy_starts * LAZY_START,
        basis=earlier.id if earlier else "",
        unknown=unknown_count,
        makes=makes,
        unprepared=None if unprepared is None else [requirement.name for requirement in unprepared],
        unasked=unasked,
        rights=rights,
        first_starts=first_starts,
        lazy_starts=lazy_starts,
    )


def _list_drivers(host: Mapping[str, Any]) -> list[tuple[object, object]]:
    """Return the model and the driver of each GPU, because compiled code is for both."""
    return [(gpu.get("name"), gpu.get("driver")) for gpu in host.get("gpus", ()) if isinstance(gpu, Mapping)]


def _count_slots(planned: Planned) -> int:
    """Return the number of slots in which the plan is measured, if the request has a number; otherwise 1."""
    slots = planned.request.slots if isinstance(planned.request, Request) and not planned.plan.shard else ""
    return min(int(slots), max(1, len(planned.plan.groups))) if slots.isdecimal() else 1


def _estimate_seconds(plan: Plan, times: Mapping[Cell, _Times], slots: int, piloted: Sequence[Cell]) -> float:
    def add_up(cells: Iterable[Cell], sampling: Sampling) -> float:
        return sum(times[cell].seconds(sampling) for cell in cells)

    def add_up_rounds(most: int) -> float:
        return sum(
            min(most, plan.settled.get(group.name, plan.rounds))
            * add_up((cell for cell, _ in group.slots if not times[cell].observes), plan.sampling)
            for group in plan.groups
        )

    if plan.profile_calls:
        return add_up(plan.cells, plan.sampling.of_pilots)
    pilots = add_up(piloted, plan.sampling.of_pilots)
    total_seconds = (pilots + add_up_rounds(plan.rounds)) / slots
    if plan.budget_seconds is None:
        return total_seconds
    # a suite's budget never ends a run before every comparison can have a verdict
    fewest_seconds = (pilots + add_up_rounds(FEWEST_ROUNDS)) / slots if plan.budget_is_wish else 0.0
    return min(total_seconds, max(plan.budget_seconds, fewest_seconds))


def _list_pilots(plan: Plan, times: Mapping[Cell, _Times]) -> list[Cell]:
    """Return the cells of the pilots that the run makes if all of its pilots succeed."""
    pilots: list[Cell] = []
    timed_scopes = set[str]()
    for group in plan.groups:
        for cell, _ in plan.slots(group, 0):
            # a cell that only makes observations needs no second pilot
            if times[cell].observes and cell in pilots:
                continue
            if plan.needs_pilot(cell, group.name, {pilot.environment for pilot in pilots}, timed_scopes):
                pilots.append(cell)
                timed_scopes |= set() if times[cell].observes else {plan.get_pilot_scope(cell, group.name)}
    return pilots


def _find_earlier_times(planned: Planned, backend: str) -> tuple[Run | None, dict[Cell, _Times]]:
    """Return the newest run that has most of the plan's cells, and its times of these cells."""
    best_match: tuple[Run | None, dict[Cell, _Times]] = None, {}
    cells = set(planned.cells)
    # the name of a run starts with its start time
    paths = sorted(planned.request.results.glob("*/run.json"), key=lambda path: path.parent.name, reverse=True)
    for path in paths[:RUNS]:
        folder = RunFolder(path.parent)
        try:
            run = folder.read_run()
            if run.plan.profile_calls or run.backend.name != backend or not cells & set(run.plan.cells):
                continue
            with pause_garbage_collection():
                times = _compute_times(folder.read_launches(run), cells)
        except UsageError:  # ignore corrupt runs
            continue
        if len(times) > len(best_match[1]):
            best_match = run, times
        if len(times) == len(cells):
            break
    return best_match


def _compute_times(launches: Sequence[Launch], cells: set[Cell]) -> dict[Cell, _Times]:
    """Return the median times of these cells. A pilot counts only if it is the only kind of launch of its cell."""
    by_cell: dict[Cell, list[Launch]] = defaultdict(list)
    for launch in launches:
        counts = launch.role is not Role.PILOT or launch.only_observed
        if launch.cell in cells and launch.status is Status.OK and counts:
            by_cell[launch.cell].append(launch)
    return {cell: _Times.median(cell_launches) for cell, cell_launches in by_cell.items()}
