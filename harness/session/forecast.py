"""Estimates the duration of a plan, and finds the images that must be built first."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from harness.backends import registry
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Launch, Protocol, Role, Sampling, Status
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.plan.gpus import find_first_starts
from harness.runner.rounds import RoundLog
from harness.session.planning import Planned
from harness.session.request import Request
from harness.store.folder import RunFolder, pause_garbage_collection

#: Assumed seconds of a launch if no earlier run has one of the same cell: before the warm-up (a container or process
#: starts, and imports TensorFlow), in the warm-up, and in the measurement.
START, WARMUP, MEASURE = 3.0, 0.5, 1.0

#: The minimum seconds of a first start in which the driver compiles all GPU code, according to TensorFlow's warning.
FIRST_START = 1800.0

#: The assumed size of an environment's packages in bytes, to estimate downloads.
PACKAGES = {Device.CPU: 300_000_000, Device.GPU: 600_000_000}
#: The assumed sizes of NVIDIA's libraries, and of NVIDIA's images with TensorFlow, in bytes.
CUDA, NVIDIA_IMAGE = 2_000_000_000, 6_000_000_000

#: The assumed bits per second of downloads.
RATE = 100_000_000

#: The number of newest runs that are searched for launches of the same cells.
RUNS = 10


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """The estimated duration of a run.

    - `seconds`: the time for all launches, without the preparation of environments
    - `verdicts`: the seconds until each claim or comparison has enough rounds for a verdict. 0 if the plan has no
      claims and no budget
    - `basis`: the id of an earlier run whose durations were used, or an empty text
    - `unknown`: the number of cells without a known duration; `start`: the assumed seconds until their warm-up
    - `unprepared`: environments that must be prepared first. None if this machine can't run the plan
    - `makes`: the thing that the backend prepares, such as an image
    - `download_bytes`: the assumed size of the downloads for `unprepared`; `download_rate`: the assumed bits per second
    - `first_starts`: the number of environments whose GPU code the driver must compile first. `seconds` includes the
      time for it
    - `unasked`: the reason why this machine can't run the plan, with advice
    """

    seconds: float
    basis: str
    unknown: int
    makes: str
    unprepared: Sequence[str] | None
    unasked: str = ""
    start: float = START
    verdicts: float = 0.0
    first_starts: int = 0
    download_bytes: int = 0
    download_rate: int = RATE

    @property
    def download_seconds(self) -> float:
        """The seconds that the downloads take at the assumed rate."""
        return 8 * self.download_bytes / self.download_rate


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
        whole = statistics.median(launch.seconds for launch in launches)
        warmup = statistics.median(launch.phases.get("warm up", 0.0) for launch in launches)
        measure = statistics.median(sum(sample.seconds for sample in launch.samples) for launch in launches)
        observes = all(launch.role is Role.PILOT for launch in launches)
        return cls(max(0.0, whole - warmup - measure), warmup, measure, observes)

    def seconds(self, sampling: Sampling) -> float:
        """Return the duration of a launch with this sampling."""
        if sampling.protocol is Protocol.DOCUMENT:
            return self.start + self.warmup + self.measure
        warmup = self.warmup if sampling.warmup_seconds is None else sampling.warmup_seconds
        measure = self.measure if sampling.measure_seconds is None else sampling.measure_seconds
        return self.start + warmup + measure


def estimate_duration(planned: Planned) -> DurationEstimate:
    """Estimate the duration of a plan, which depends on the environments that the run's backend has available."""
    missing: list[Requirement] | None
    unasked, missing, name, makes = "", None, planned.request.backend, ""
    try:
        root, gpus = planned.project.root, planned.plan.limits.gpus
        backend, _ = registry.choose(name, root, "", untrusted=planned.untrusted, gpus=gpus)
        name, makes = backend.name, backend.makes
        missing = backend.unprepared(planned.needed)
    except (CannotRunHereError, registry.UntrustedError) as error:
        unasked = " ".join(filter(None, [error.message, error.advice]))
    basis, earlier_times = _find_earlier_times(planned, name)
    times = {cell: earlier_times.get(cell, _Times()) for cell in planned.cells}
    unknown = sum(cell not in earlier_times for cell in planned.cells)
    plan, slots = planned.plan, _count_slots(planned)
    pilots = _list_pilots(plan, times)
    least = replace(plan, rounds=min(plan.rounds, FEWEST_ROUNDS), budget_seconds=None)
    verdicts = _estimate_seconds(least, times, slots, pilots)
    seconds = _estimate_seconds(plan, times, slots, pilots)
    is_relevant = plan.claims or (plan.budget_seconds is not None and not plan.budget_is_wish)
    started = {cell.environment for cell in earlier_times if cell.device is Device.GPU}
    first_starts = len({*find_first_starts(plan)} - started)
    return DurationEstimate(
        seconds=seconds + first_starts * FIRST_START,
        basis=basis,
        unknown=unknown,
        makes=makes,
        unprepared=None if missing is None else [requirement.name for requirement in missing],
        unasked=unasked,
        verdicts=verdicts if is_relevant else 0.0,
        first_starts=first_starts,
        download_bytes=_count_bytes(missing or ()),
    )


def _count_bytes(missing: Sequence[Requirement]) -> int:
    """Return the assumed size of the downloads for environments. NVIDIA's libraries of one version count once."""
    libraries = dict[object, int]()
    for requirement in missing:
        environment, pins = requirement.environment, requirement.lock.pins
        if requirement.device is Device.GPU:
            packages = frozenset(pin for pin in pins.items() if pin[0].startswith("nvidia-"))
            source = environment.gpu_image or environment.cuda_image or packages
            libraries[source] = NVIDIA_IMAGE if environment.gpu_image else CUDA
    return sum(PACKAGES[requirement.device] for requirement in missing) + sum(libraries.values())


def _count_slots(planned: Planned) -> int:
    """Return the number of slots in which the plan is measured, if the request has a number; otherwise 1."""
    slots = planned.request.slots if isinstance(planned.request, Request) and not planned.plan.shard else ""
    return min(int(slots), max(1, len(planned.plan.groups))) if slots.isdecimal() else 1


def _estimate_seconds(plan: Plan, times: Mapping[Cell, _Times], slots: int, piloted: Sequence[Cell]) -> float:
    def add_up(cells: Iterable[Cell], sampling: Sampling) -> float:
        return sum(times[cell].seconds(sampling) for cell in cells)

    if plan.profile_calls:
        return add_up(plan.cells, plan.sampling.of_pilots)
    measured = (cell for group in plan.groups for cell, _ in group.slots if not times[cell].observes)
    pilots, per_round = add_up(piloted, plan.sampling.of_pilots), add_up(measured, plan.sampling)
    whole = (pilots + plan.rounds * per_round) / slots
    if plan.budget_seconds is None:
        return whole
    # a suite's budget never ends a run before every comparison can have a verdict
    least = (pilots + min(plan.rounds, FEWEST_ROUNDS) * per_round) / slots if plan.budget_is_wish else 0.0
    return min(whole, max(plan.budget_seconds, least))


def _list_pilots(plan: Plan, times: Mapping[Cell, _Times]) -> list[Cell]:
    """Return the cells of the pilots that the run makes if all of its pilots succeed."""
    log = RoundLog(plan)
    for group in plan.groups:
        for cell, role in plan.slots(group, 0):
            if log.is_to_pilot(group, cell):
                log.add(_make_pilot(group, cell, role, {"anything": True} if times[cell].observes else {}))
    return [launch.cell for launch in log.launches]


def _make_pilot(group: Group, cell: Cell, role: Role, observations: Mapping[str, bool]) -> Launch:
    """Return a successful pilot."""
    return Launch(
        group=group.name,
        round=0,
        attempt=0,
        order=0,
        role=role,
        cell=cell,
        started="",
        status=Status.OK,
        observations=observations,
    )


def _find_earlier_times(planned: Planned, backend: str) -> tuple[str, dict[Cell, _Times]]:
    """Return the times of the plan's cells in the newest run that has most of them, and that run's id."""
    best: tuple[str, dict[Cell, _Times]] = "", {}
    cells = set(planned.cells)
    # the names of runs start with the time of their start
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
        if len(times) > len(best[1]):
            best = run.id, times
        if len(times) == len(cells):
            break
    return best


def _compute_times(launches: Sequence[Launch], cells: set[Cell]) -> dict[Cell, _Times]:
    """Return the median times of these cells. A pilot counts only if it is the only kind of launch of its cell."""
    by_cell: dict[Cell, list[Launch]] = defaultdict(list)
    for launch in launches:
        counts = launch.role is not Role.PILOT or launch.only_observed
        if launch.cell in cells and launch.status is Status.OK and counts:
            by_cell[launch.cell].append(launch)
    return {cell: _Times.median(of_cell) for cell, of_cell in by_cell.items()}
