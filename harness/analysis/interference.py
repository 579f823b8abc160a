"""Interference: noisy launches and rounds, detected by other activity on the machine, never by the times.

Only activity during the timed steps (the steady state) counts. The worker observes the CPUs, and harness observes the
GPUs from outside; see docs/dev/worker-protocol.md. CPU contention is subtracted from the times (see
`rounds.compute_subtracted_share`). `Contention` has the possible error of this subtraction.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.moderation import residuals
from harness.analysis.rounds import (
    OWN_SHARE,
    Series,
    compute_loss,
    compute_mean,
    compute_subtracted_share,
    has_mean,
    select_counted,
    ticks_seconds,
    was_throttled,
)
from harness.analysis.statistics import RESOLUTION, student
from harness.model.launch import Launch, Role, Status
from harness.model.run import Run
from harness.model.scenario import Cell

#: The possible error of the log of a cell's time, as a share of its loss. The loss is log 1/(1 - share of other
#: processes): how much contention increased the log of the time. In the stored runs, the corrected logs still increase
#: by 0.088 ± 0.043 of the loss. This share differs between cells with a standard deviation of at most 0.08
#: (`python -m bench.contention`).
ERROR = 0.12

#: The share of the other CPUs that other processes may use. These CPUs share caches, memory and clock speed with the
#: launch's own CPUs.
ELSEWHERE_SHARE = 0.25

#: The smallest number of readings with a slowed GPU that count as interference. A single one may be a clock change.
SLOWED_READINGS = 2
#: The cause of a slowed GPU, by the resource that shows it. The first recorded cause counts. The power cap isn't among
#: the causes, because the work itself reaches that limit in every launch.
_SLOWED_BY = {
    "gpu_hw_thermal_share": "heat",
    "gpu_sw_thermal_share": "heat",
    "gpu_power_brake_share": "its power supply",
    "gpu_hw_slowdown_share": "its hardware",
}


@dataclass(frozen=True, slots=True)
class NoisyRound:
    """An attempt at a round of a group that had interference.

    `reason` describes the interference. `repeated`: a later attempt counts instead.
    """

    group: str
    round: int
    reason: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class RunInterference:
    """The interference in a run. `rounds` counts the measured rounds, including repetitions.

    `told`: at least one launch could observe other processes. `disturbed` lists the noisy rounds. `launches` counts the
    launches with a result. `taken` contains the shares that are subtracted from their times because of CPU contention,
    without zeros. `stopped` contains the shares for launches that a CPU quota paused, which include contention.
    """

    told: bool
    rounds: int
    disturbed: Sequence[NoisyRound]
    launches: int
    taken: Sequence[float]
    stopped: Sequence[float] = ()

    @property
    def repeated(self) -> int:
        """The number of noisy rounds that were repeated."""
        return sum(noisy.repeated for noisy in self.disturbed)


def describe_interference(launch: Launch) -> str:
    """Describe the interference in a launch as a clause; empty if there was none, or if it is unknown."""
    try:
        return launch.interference
    except AttributeError:
        return launch.store("interference", _describe(launch))


def _describe(launch: Launch) -> str:
    usage = launch.resources
    on_own = _describe_on_own_cpus(usage)
    if on_own:
        return f"{on_own} (subtracted from its time)" if compute_subtracted_share(launch) else on_own
    return _describe_on_other_cpus(usage) or _describe_on_gpus(usage)


def _describe_on_gpus(usage: Mapping[str, float]) -> str:
    if usage.get("gpu_lost"):
        return "the driver lost the GPU of the launch"
    if usage.get("steady_ptx_cache_filled_bytes"):
        return "the driver compiled GPU code during the measurement"
    foreign = usage.get("gpu_foreign_processes", 0.0)
    if foreign:
        return (
            ("another process used the GPU of the launch")
            if foreign == 1
            else f"{foreign:.0f} other processes used the GPU of the launch"
        )
    share, readings = usage.get("gpu_throttled_share", 0.0), usage.get("gpu_samples", 0.0)
    # without gpu_steady, the readings describe the whole launch, not only the timed part
    if not usage.get("gpu_steady") or share <= OWN_SHARE or round(share * readings) < SLOWED_READINGS:
        return ""
    by = next((words for name, words in _SLOWED_BY.items() if usage.get(name)), "its hardware")
    return f"{by} reduced the clock speed of its GPU in {share * 100:.0f} % of the readings"


def _describe_on_own_cpus(usage: Mapping[str, float]) -> str:
    seconds, own, cpus = (usage.get(name) for name in ("steady_seconds", "steady_cpu_seconds", "steady_own_cpus"))
    if not seconds or not cpus or own is None:
        return ""
    least = (ticks_seconds(usage) + OWN_SHARE * seconds) * cpus
    stolen = usage.get("steady_own_cpus_steal_seconds", 0.0)
    busy = usage.get("steady_own_cpus_busy_seconds", own) - own
    if stolen > least:
        return f"the hypervisor took {stolen / seconds:.2f} of the CPUs of the launch"
    return f"other processes used {busy / seconds:.2f} of the CPUs of the launch" if busy > least else ""


def _describe_on_other_cpus(usage: Mapping[str, float]) -> str:
    seconds, busy, cpus = (usage.get(f"steady_{name}") for name in ("seconds", "own_cpus_busy_seconds", "own_cpus"))
    # several slots of a machine measure at the same time; `harness fleet check` has tested how they affect each other
    if not seconds or not cpus or busy is None or "steady_cpu_seconds" not in usage or usage.get("slots", 1.0) > 1:
        return ""
    elsewhere, rest = usage.get("steady_all_cpus_busy_seconds", busy) - busy, usage.get("steady_all_cpus", cpus) - cpus
    if rest and elsewhere - ticks_seconds(usage) * rest > ELSEWHERE_SHARE * seconds * rest:
        return f"other processes used {elsewhere / seconds:.2f} of the other CPUs"
    # the load average may still contain the previous launch, which used as many CPUs
    load, machine = usage.get("load_before", 0.0), usage.get("steady_all_cpus", cpus)
    return f"the load average was {load:.2f} on {machine:.0f} CPUs" if load > machine + cpus else ""


def has_contention_readings(launch: Launch) -> bool:
    """Return whether the launch could observe other processes on its CPUs."""
    return "steady_own_cpus_busy_seconds" in launch.resources


def find_noisy_rounds(launches: Sequence[Launch]) -> dict[tuple[str, int, int], str]:
    """Return the interference in each noisy round, by group, round and attempt. It describes the first noisy launch."""
    by_round: dict[tuple[str, int, int], str] = {}
    for launch in launches:
        reason = "" if launch.role is Role.PILOT else describe_interference(launch)
        if reason:
            by_round.setdefault((launch.group, launch.round, launch.attempt), f"{launch.cell}: {reason}")
    return by_round


def find_interference(run: Run, launches: Sequence[Launch]) -> RunInterference:
    """Return the interference in a run. Interrupted rounds don't count."""
    interrupted = {
        (launch.group, launch.round, launch.attempt) for launch in launches if launch.status is Status.INTERRUPTED
    }
    measured = [
        launch
        for launch in launches
        if launch.role is not Role.PILOT and (launch.group, launch.round, launch.attempt) not in interrupted
    ]
    by_round = find_noisy_rounds(measured)
    # by group and round, the attempt that counts
    counting = select_counted(run.plan, launches)
    counts = {(launch.group, launch.round): launch.attempt for launch in counting}
    numbers = [launch for launch in counting if has_mean(launch)]
    return RunInterference(
        told=any(has_contention_readings(launch) for launch in measured),
        rounds=len({(launch.group, launch.round, launch.attempt) for launch in measured}),
        disturbed=[
            NoisyRound(group, number, reason, repeated=counts.get((group, number), attempt) > attempt)
            for (group, number, attempt), reason in by_round.items()
        ],
        launches=len(numbers),
        taken=sorted(
            share for launch in numbers if (share := compute_subtracted_share(launch)) and not was_throttled(launch)
        ),
        stopped=sorted(compute_subtracted_share(launch) for launch in numbers if was_throttled(launch)),
    )


@dataclass(frozen=True, slots=True)
class Contention:
    """CPU contention in the launches of a group, and the possible error of subtracting it.

    `losses` contains each cell's mean loss in each round. The loss of a launch is how much contention increased the log
    of its time (`rounds.compute_loss`). If two cells have different losses, a part of this difference may be an error
    of the subtraction. `unchecked` is this part, as a share from 0 to 1 (see `estimate_unchecked_share`).
    """

    losses: Mapping[Cell, Series]
    unchecked: float

    def bias(self, cell: Cell, other: Cell) -> float:
        """Return the possible error of the log ratio of two cells over their common rounds; 0 if they have none."""
        one, two = self.losses.get(cell, {}), self.losses.get(other, {})
        both = one.keys() & two.keys()
        means = [fmean(side[number] for number in both) for side in (one, two)] if both else [0.0, 0.0]
        return compute_possible_error(means[0], means[1], self.unchecked)


def find_contention(launches: Iterable[Launch]) -> Contention | None:
    """Return the CPU contention in a group's launches, which all have a result; None if nothing was subtracted."""
    all_launches = list(launches)
    taken_off = [compute_loss(launch) for launch in all_launches]
    if not any(taken_off):
        return None
    losses: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch, lost in zip(all_launches, taken_off, strict=True):
        losses[launch.cell][launch.round].append(lost)
    share = estimate_unchecked_share(
        [launch.cell for launch in all_launches],
        [(launch.round, launch.block) for launch in all_launches],
        [math.log(compute_mean(launch)) for launch in all_launches],
        taken_off,
    )
    means = {cell: {number: fmean(values) for number, values in rounds.items()} for cell, rounds in losses.items()}
    return Contention(means, share)


def compute_possible_error(loss: float, other: float, unchecked: float) -> float:
    """Return the possible error, in either direction, of the log ratio of two cells with the given mean losses.

    The cells of a round share a core, so their losses are similar. Two errors are possible: the share `unchecked` of
    the difference between the losses, and an error of each cell that is independent of the other cell's (the share
    `ERROR` of its loss).
    """
    return unchecked * abs(loss - other) + ERROR * math.hypot(loss, other)


def estimate_unchecked_share(
    cells: Sequence[Hashable], rounds: Sequence[Hashable], logs: Sequence[float], losses: Sequence[float]
) -> float:
    """Return the share of a difference in losses that may be wrong, from 0 to 1, estimated from a group's launches.

    Each launch has the log of its mean after the subtraction, and its loss. The regression of this log on the loss has
    an effect of each cell and of each round, because all launches of a round become slower or faster together. Its
    slope is 0 if the subtraction is correct. The slope is -1 if the subtracted time differs between launches although
    their real time doesn't. The result is the end of the slope's 95 % interval that is farther from 0. It is 1 if the
    slope can't be estimated, because there are too few launches, or because their losses are too similar.
    """
    left, freedom = residuals(cells, rounds, logs)
    lost, _ = residuals(cells, rounds, losses)
    square = float(lost @ lost)
    if freedom < 2 or square < RESOLUTION:
        return 1.0
    slope = float(left @ lost) / square
    rest = left - slope * lost
    error = math.sqrt(float(rest @ rest) / (freedom - 1.0) / square)
    return min(1.0, abs(slope) + student(freedom - 1.0) * error)
