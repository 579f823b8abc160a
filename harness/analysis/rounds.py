"""The launches that count, each cell's launch means by round, and the time that a round takes."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from harness.model.defaults import MARGIN
from harness.model.launch import CPU_QUOTA, Clock, Launch, Role, Sample, Samples, Status
from harness.model.run import Plan
from harness.model.scenario import PEAK, Cell

#: A cell's launch means by round, in seconds per step.
Series = Mapping[int, float]

#: The logs of the control cell's launch means, by group and round, and then by block.
References = Mapping[tuple[str, int], Mapping[int, Sequence[float]]]

#: Contention counts if it took more than this share of the time, which is the default margin of verdicts.
OWN_SHARE = MARGIN
#: The kernel counts CPU time in ticks of 10 ms. The error of a CPU's count is up to two ticks at each end (in total,
#: TICKS_SECONDS), plus the share TICKS_SHARE of the time in between.
TICKS_SECONDS, TICKS_SHARE = 0.04, 0.01
#: If a timed part consists of pieces, the error of each piece's count is random, with a standard deviation of at most
#: half a tick (5 ms). For n pieces, the standard deviation is √n times as large. This constant is 3.6 standard
#: deviations of one piece.
TICKS_SECONDS_A_PIECE = 0.018
#: If a process left at most IDLE_SHARE of a CPU idle in a sample, its step didn't wait. A launch isn't judged by its
#: idle time if it has fewer than FEWEST_SAMPLES samples.
IDLE_SHARE, FEWEST_SAMPLES = 0.01, 5


def apply_clock(clock: Clock, launches: Sequence[Launch]) -> Sequence[Launch]:
    """Return the launches with the times that are judged: with the clock `cpu`, samples have their CPU seconds.

    Stored launches have wall-clock time. All computations start with the launches that this function returns. With the
    clock `cpu`, a launch gets the status `failed` if it used no CPU time in its samples, or didn't record it.
    """
    if clock is Clock.WALL:
        return launches
    return [_apply_cpu_clock(launch) if launch.samples else launch for launch in launches]


def _apply_cpu_clock(launch: Launch) -> Launch:
    samples, sequential = _use_cpu_seconds(launch.samples), _use_cpu_seconds(launch.alone)
    if any(sample.seconds for sample in samples) or launch.status is not Status.OK:
        return replace(launch, samples=samples, alone=sequential, follows=launch.follows if sequential else ())
    return replace(
        launch,
        samples=(),
        alone=(),
        follows=(),
        status=Status.FAILED,
        error="The steps of the launch used no CPU time."
        if samples
        else "The launch did not record the CPU time of its samples.",
        advice="Measure wall-clock time: omit --clock cpu.",
    )


def _use_cpu_seconds(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with their CPU seconds as `seconds`; empty if a sample has no CPU seconds."""
    cpu_samples = [replace(sample, seconds=sample.cpu_seconds) for sample in samples if sample.cpu_seconds is not None]
    return cpu_samples if len(cpu_samples) == len(samples) else []


def pilots(launches: Sequence[Launch]) -> dict[Cell, Launch]:
    """Return the latest pilot of each cell.

    Pilots aren't included in statistics, but a cell with a failed pilot isn't launched again.
    """
    by_cell: dict[Cell, Launch] = {}
    for launch in launches:
        previous = by_cell.get(launch.cell)
        if launch.role is Role.PILOT and (previous is None or launch.attempt >= previous.attempt):
            by_cell[launch.cell] = launch
    return by_cell


def select_counted(plan: Plan, launches: Sequence[Launch]) -> list[Launch]:
    """Return the launches that count: those of one attempt at each round of each group, without pilots.

    The attempt that counts is the latest of those with the most finished launches of measured cells and the control. A
    cell isn't measured if its pilot failed, or if the cell only makes observations. Launches of groups that aren't in
    the plan don't count.
    """
    pilot_by_cell = pilots(launches)
    # by group, round and attempt
    rounds: dict[str, dict[int, dict[int, list[Launch]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for launch in launches:
        if launch.role is not Role.PILOT:
            rounds[launch.group][launch.round][launch.attempt].append(launch)
    counted: list[Launch] = []
    for group in plan.groups:
        slots = {
            (cell, role)
            for cell, role in group.slots
            if cell not in pilot_by_cell or is_to_measure(pilot_by_cell[cell], group.of)
        }
        for number in sorted(rounds[group.name]):
            attempts = rounds[group.name][number]
            finished = {
                attempt: {
                    (launch.cell, launch.role) for launch in attempt_launches if launch.status is not Status.INTERRUPTED
                }
                for attempt, attempt_launches in attempts.items()
            }
            counted += attempts[max(attempts, key=lambda attempt: (len(slots & finished[attempt]), attempt))]
    return counted


def series(launches: Sequence[Launch], known_references: References | None = None) -> dict[Cell, Series]:
    """Return each cell's launch mean in every round in which it has a result, in seconds per step.

    If a cell was launched more than once in a round, as the control cell usually is, the geometric mean of its launches
    is used. If a round of a group has several blocks, each block has the control cell. Interference is the same for all
    cells of a block, but differs between blocks, and the control cell shows this difference. So the log c of a launch
    mean is corrected: c - (mean log of the control cell in the block) + (mean of these means over all blocks). After
    that, cells of different blocks can be compared as if they had been in one block. `known_references` contains the
    control cell's results of rounds in which `launches` don't include the control cell.
    """
    control_logs = {**(known_references or {}), **references(launches)}
    logs: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        if has_mean(launch):
            blocks = {
                block: fmean(block_logs)
                for block, block_logs in control_logs.get((launch.group, launch.round), {}).items()
            }
            # if a block has no result of the control cell, its interference is unknown, so nothing is corrected
            shift = fmean(blocks.values()) - blocks[launch.block] if launch.block in blocks else 0.0
            logs[launch.cell][launch.round].append(math.log(compute_mean(launch)) + shift)
    return {
        cell: {number: math.exp(fmean(values)) for number, values in by_round.items()}
        for cell, by_round in logs.items()
    }


def ticks_seconds(usage: Mapping[str, float]) -> float:
    """Return the possible error of the kernel's CPU time in a launch with the resources `usage`, in seconds."""
    return max(TICKS_SECONDS, TICKS_SECONDS_A_PIECE * math.sqrt(usage.get("steady_pieces", 1.0)))


def references(launches: Sequence[Launch]) -> References:
    """Return the logs of the control cell's launch means, by group and round, and then by block.

    The control cell is the cell that is in several blocks of a round. Rounds with one block aren't included, because
    they need no correction.
    """
    rounds: dict[tuple[str, int], dict[Cell, dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for launch in launches:
        if has_mean(launch):
            rounds[launch.group, launch.round][launch.cell][launch.block].append(math.log(compute_mean(launch)))
    blocks_by_round = {key: max(cells.values(), key=len) for key, cells in rounds.items()}
    return {key: dict(blocks) for key, blocks in blocks_by_round.items() if len(blocks) > 1}


def compute_subtracted_share(launch: Launch) -> float:
    """Return the share of the timed part that is subtracted because a launch couldn't run.

    The reason may be other processes, the hypervisor (steal time), or a CPU quota. The share contains steal time, and
    the time in which a thread of the launch was ready but didn't run. It is at most the time in which the launch didn't
    run, and doesn't include the time in which the step itself waits. For launches that didn't record how long their
    threads were ready, see `_compute_unaccounted_share`.

    Nothing is subtracted in these cases: the share is at most OWN_SHARE, the samples are CPU time, or the share can't
    be known. It can't be known on several CPUs, because contention on one CPU doesn't slow a step that waits for
    another CPU. On one CPU, there must be evidence: the kernel's ticks show other processes, the step never waits in
    most of its samples, or there is a CPU quota. Without a quota, the share is at most the share that ticks allow.

    The share is too large for some launches with several threads: a thread that waits for another thread of its launch
    to leave the CPU also counts as ready. This matters if the step also waits by itself, and there is contention or a
    quota, or the step waits only in a few samples.
    """
    part = _get_timed_part(launch)
    return part.taken if part else 0.0


def was_throttled(launch: Launch) -> bool:
    """Return whether a CPU quota paused the launch for a part of its time, which is subtracted."""
    part = _get_timed_part(launch)
    return part is not None and part.has_quota and part.taken > 0.0


def compute_loss(launch: Launch) -> float:
    """Return how much contention increases the log of the launch mean: log 1/(1 - share of other processes).

    The result includes everything that is subtracted, except the time for which a CPU quota paused the launch, because
    a pause alone doesn't mean that another process used the CPU and its caches.
    """
    part = _get_timed_part(launch)
    return -math.log1p(-part.contended) if part else 0.0


@dataclass(frozen=True, slots=True)
class _TimedPart:
    """The CPU contention in a launch's timed part: the subtracted share, and the share of other processes in it."""

    taken: float
    contended: float
    has_quota: bool


def _get_timed_part(launch: Launch) -> _TimedPart | None:
    """Return the contention in a launch's timed part; None if it can't be known, or if nothing is subtracted."""
    try:
        part: _TimedPart | None = launch.timed_part
    except AttributeError:
        part = launch.store("timed_part", _compute_timed_part(launch))
    return part


def _compute_timed_part(launch: Launch) -> _TimedPart | None:
    samples = Samples.of(launch.samples)
    if not samples or samples.seconds == samples.cpu_seconds:
        return None
    usage = launch.resources
    seconds, own_seconds, busy_seconds = (
        usage.get(f"steady_{name}") for name in ("seconds", "cpu_seconds", "own_cpus_busy_seconds")
    )
    if not seconds or own_seconds is None or busy_seconds is None or usage.get("steady_own_cpus") != 1.0:
        return None
    stolen_seconds, waited_seconds = usage.get("steady_own_cpus_steal_seconds", 0.0), usage.get("steady_waited_seconds")
    other_seconds, off_seconds = busy_seconds - own_seconds + stolen_seconds, seconds - own_seconds
    tick_error = ticks_seconds(usage)
    is_certain = other_seconds - tick_error > OWN_SHARE * seconds
    has_quota = waited_seconds is not None and usage.get(CPU_QUOTA, math.inf) < 1.0
    if not 0.0 < off_seconds < seconds or not (
        is_certain or has_quota or (waited_seconds is not None and _is_always_running(launch))
    ):
        return None
    if waited_seconds is None:
        contended_share = subtracted_share = _compute_unaccounted_share(seconds, other_seconds, off_seconds)
    else:
        ready_seconds = min(waited_seconds + stolen_seconds, off_seconds)
        # if ticks don't show other processes, allow them half of the ticks' possible error (two standard deviations)
        contended_share = min(ready_seconds, other_seconds + (tick_error if is_certain else tick_error / 2.0)) / seconds
        if has_quota:
            subtracted_share, contended_share = ready_seconds / seconds, contended_share if is_certain else 0.0
        else:
            subtracted_share = contended_share
    return _TimedPart(subtracted_share, contended_share, has_quota) if subtracted_share > OWN_SHARE else None


def _is_always_running(launch: Launch) -> bool:
    """Return whether the process used its CPU all the time in most samples, so its step doesn't wait by itself.

    This check is needed because ticks show other processes only if these took more than the ticks' error. For
    interleaved launches, this error is at least 7 % of the time.
    """
    idle_shares = [
        1.0 - sample.cpu_seconds / sample.seconds
        for sample in launch.samples
        if sample.cpu_seconds and sample.seconds > 0.0
    ]
    return len(idle_shares) == len(launch.samples) >= FEWEST_SAMPLES and median(idle_shares) <= IDLE_SHARE


def _compute_unaccounted_share(seconds: float, other_seconds: float, off_seconds: float) -> float:
    """Return the share of other processes if they used all of the time in which a launch didn't run; otherwise 0.

    If the step also waited in this time, its waiting can't be separated from contention, and is included.
    """
    # the kernel counts the time of other processes in ticks, but the launch's own time in nanoseconds: use the latter
    return off_seconds / seconds if abs(off_seconds - other_seconds) <= TICKS_SECONDS + TICKS_SHARE * seconds else 0.0


def find_granted_share(launches: Iterable[Launch]) -> float:
    """Return the share of their CPUs that CPU quotas allow launches to use: the smallest recorded share, at most 1."""
    shares = [
        launch.resources[CPU_QUOTA] / launch.resources["steady_own_cpus"]
        for launch in launches
        if launch.resources.get("steady_own_cpus") and launch.resources.get(CPU_QUOTA)
    ]
    return min(1.0, *shares) if shares else 1.0


def budget_seconds(plan: Plan, launches: Iterable[Launch]) -> float | None:
    """Return the seconds that the run may take; None without a budget.

    A suite's budget is for whole CPUs. If a quota allows half of a CPU, the budget is twice as long.
    """
    if plan.budget_seconds is None or not plan.budget_is_wish:
        return plan.budget_seconds
    return plan.budget_seconds / find_granted_share(launches)


def compute_mean(launch: Launch) -> float:
    """Return the judged seconds per step: the launch mean minus the time lost to other processes and CPU quotas."""
    return launch.mean * (1.0 - compute_subtracted_share(launch))


def has_mean(launch: Launch) -> bool:
    """Return whether the launch has a mean: it ended ok, with a time and steps."""
    return launch.status is Status.OK and launch.steps > 0 and 0.0 < launch.mean < math.inf


def is_to_measure(pilot: Launch, quantities: Sequence[str] = ()) -> bool:
    """Return whether the rounds launch the cell of this pilot. They do if the pilot ended ok and timed something.

    `quantities` are the quantities of the cell's group. If one of them is peak memory or a phase that the pilot has,
    the cell is launched even if it only makes observations.
    """
    has_quantity = any(name == PEAK or pilot.phases.get(name) for name in quantities)
    return pilot.status is Status.OK and (has_quantity or not pilot.only_observed)


def seconds_per_round(launches: Sequence[Launch]) -> dict[str, float]:
    """Return the mean duration of a round by group, in seconds; 0 in runs that didn't record durations."""
    rounds: dict[str, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for launch in launches:
        rounds[launch.group][launch.round, launch.attempt] += launch.seconds
    return {group: sum(seconds.values()) / len(seconds) for group, seconds in rounds.items()}
