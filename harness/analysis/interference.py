"""Interference: noisy launches and rounds, detected from other activity on the machine, never from the times.

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

#: The smallest number of readings with a slowed GPU that counts as interference. One reading may be a clock change.
SLOWED_READINGS = 2
#: The cause of a slowed GPU, by the resource that shows it. The first recorded cause counts. The power cap isn't among
#: the causes, because the work itself reaches that limit in every launch.
_SLOWDOWN_CAUSES = {
    "gpu_hw_thermal_share": "heat",
    "gpu_sw_thermal_share": "heat",
    "gpu_power_brake_share": "the power supply",
    "gpu_hw_slowdown_share": "the hardware",
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
    own_clause = _describe_on_own_cpus(usage)
    if own_clause:
        return f"{own_clause} (subtracted from its time)" if compute_subtracted_share(launch) else own_clause
    return _describe_on_other_cpus(usage) or _describe_on_gpus(usage)


def _describe_on_gpus(usage: Mapping[str, float]) -> str:
    if usage.get("gpu_lost"):
        return "the driver lost the GPU of the launch"
    if usage.get("steady_ptx_cache_filled_bytes"):
        return "the driver compiled GPU code during the measurement"
    other_processes = usage.get("gpu_foreign_processes", 0.0)
    if other_processes == 1:
        return "another process used the GPU of the launch"
    if other_processes:
        return f"{other_processes:.0f} other processes used the GPU of the launch"
    share, readings = usage.get("gpu_throttled_share", 0.0), usage.get("gpu_samples", 0.0)
    # without gpu_steady, the readings describe the whole launch, not only the timed part
    if not usage.get("gpu_steady") or share <= OWN_SHARE or round(share * readings) < SLOWED_READINGS:
        return ""
    cause = next((cause_words for name, cause_words in _SLOWDOWN_CAUSES.items() if usage.get(name)), "the hardware")
    return f"{cause} reduced the clock speed of the launch's GPU in {share * 100:.0f} % of the readings"


def _describe_on_own_cpus(usage: Mapping[str, float]) -> str:
    seconds, own_seconds, cpus = (
        usage.get(name) for name in ("steady_seconds", "steady_cpu_seconds", "steady_own_cpus")
    )
    if not seconds or not cpus or own_seconds is None:
        return ""
    threshold = (ticks_seconds(usage) + OWN_SHARE * seconds) * cpus
    stolen_seconds = usage.get("steady_own_cpus_steal_seconds", 0.0)
    other_seconds = usage.get("steady_own_cpus_busy_seconds", own_seconds) - own_seconds
    if stolen_seconds > threshold:
        return f"the hypervisor took {stolen_seconds / seconds:.2f} of the CPUs of the launch"
    if other_seconds > threshold:
        return f"other processes used {other_seconds / seconds:.2f} of the CPUs of the launch"
    return ""


def _describe_on_other_cpus(usage: Mapping[str, float]) -> str:
    seconds, own_busy, cpus = (usage.get(f"steady_{name}") for name in ("seconds", "own_cpus_busy_seconds", "own_cpus"))
    # several slots of a machine measure at the same time; `harness fleet check` has tested how they affect each other
    if not seconds or not cpus or own_busy is None or "steady_cpu_seconds" not in usage or usage.get("slots", 1.0) > 1:
        return ""
    other_busy = usage.get("steady_all_cpus_busy_seconds", own_busy) - own_busy
    other_cpus = usage.get("steady_all_cpus", cpus) - cpus
    if other_cpus and other_busy - ticks_seconds(usage) * other_cpus > ELSEWHERE_SHARE * seconds * other_cpus:
        return f"other processes used {other_busy / seconds:.2f} of the other CPUs"
    # the load average may still contain the previous launch, which used as many CPUs
    load, machine_cpus = usage.get("load_before", 0.0), usage.get("steady_all_cpus", cpus)
    return f"the load average was {load:.2f} on {machine_cpus:.0f} CPUs" if load > machine_cpus + cpus else ""


def has_contention_readings(launch: Launch) -> bool:
    """Return whether the launch could observe other processes on its CPUs."""
    return "steady_own_cpus_busy_seconds" in launch.resources


def find_noisy_rounds(launches: Sequence[Launch]) -> dict[tuple[str, int, int], str]:
    """Return a clause about the first noisy launch of each noisy round, by group, round and attempt."""
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
    # the attempt that counts, by group and round, is in counted_attempts
    counted = select_counted(run.plan, launches)
    counted_attempts = {(launch.group, launch.round): launch.attempt for launch in counted}
    with_mean = [launch for launch in counted if has_mean(launch)]
    return RunInterference(
        told=any(has_contention_readings(launch) for launch in measured),
        rounds=len({(launch.group, launch.round, launch.attempt) for launch in measured}),
        disturbed=[
            NoisyRound(group, number, reason, repeated=counted_attempts.get((group, number), attempt) > attempt)
            for (group, number, attempt), reason in by_round.items()
        ],
        launches=len(with_mean),
        taken=sorted(
            share for launch in with_mean if (share := compute_subtracted_share(launch)) and not was_throttled(launch)
        ),
        stopped=sorted(compute_subtracted_share(launch) for launch in with_mean if was_throttled(launch)),
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
        losses, other_losses = self.losses.get(cell, {}), self.losses.get(other, {})
        common_rounds = losses.keys() & other_losses.keys()
        if not common_rounds:
            return 0.0
        mean, other_mean = (fmean(side[number] for number in common_rounds) for side in (losses, other_losses))
        return compute_possible_error(mean, other_mean, self.unchecked)


def find_contention(launches: Iterable[Launch]) -> Contention | None:
    """Return the CPU contention in a group's launches, which all have a result; None if nothing was subtracted."""
    all_launches = list(launches)
    launch_losses = [compute_loss(launch) for launch in all_launches]
    if not any(launch_losses):
        return None
    losses: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch, loss in zip(all_launches, launch_losses, strict=True):
        losses[launch.cell][launch.round].append(loss)
    share = estimate_unchecked_share(
        [launch.cell for launch in all_launches],
        [(launch.round, launch.block) for launch in all_launches],
        [math.log(compute_mean(launch)) for launch in all_launches],
        launch_losses,
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
    their true time doesn't. The result is the end of the slope's 95 % interval that is farther from 0. It is 1 if the
    slope can't be estimated, because there are too few launches, or because their losses are too similar.
    """
    log_residuals, freedom = residuals(cells, rounds, logs)
    loss_residuals, _ = residuals(cells, rounds, losses)
    loss_square = float(loss_residuals @ loss_residuals)
    if freedom < 2 or loss_square < RESOLUTION:
        return 1.0
    slope = float(log_residuals @ loss_residuals) / loss_square
    errors = log_residuals - slope * loss_residuals
    error = math.sqrt(float(errors @ errors) / (freedom - 1.0) / loss_square)
    return min(1.0, abs(slope) + student(freedom - 1.0) * error)
