"""Interference: noisy launches and rounds, judged by other activity of the machine, never by the times.

Everything is about the steady state, which is the timed part: the CPUs as the worker sees them, and the GPUs as harness
sees them from outside. See docs/dev/worker-protocol.md. CPU contention is subtracted from the times (see
`rounds.compute_taken_share`). `Contention` is the possible error of this subtraction.
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
    centre,
    compute_loss,
    compute_taken_share,
    has_mean,
    select_counted,
    ticks_seconds,
    was_throttled,
)
from harness.analysis.statistics import RESOLUTION, student
from harness.model.launch import Launch, Role, Status
from harness.model.run import Run
from harness.model.scenario import Cell

#: The possible error of the log of a cell's time, as a share of its loss log 1/(1 - taken). In the stored runs, times
#: still rise by 0.088 ± 0.043 of the loss, and this share differs between cells with a standard deviation of at most
#: 0.08 (`python -m bench.contention`).
ERROR = 0.12

#: Other processes may use this share of the other CPUs, which share caches, memory and clock speed with the launch.
ELSEWHERE_SHARE = 0.25

#: The smallest number of readings of a slowed GPU that count as interference. A single one may be a change of clocks.
SLOWED_READINGS = 2
#: The causes of a slow GPU, by resource; the first recorded one counts. The power cap isn't among them, because the
#: work reaches that limit in every launch.
_SLOWED_BY = {
    "gpu_hw_thermal_share": "heat",
    "gpu_sw_thermal_share": "heat",
    "gpu_power_brake_share": "its power supply",
    "gpu_hw_slowdown_share": "its hardware",
}


@dataclass(frozen=True, slots=True)
class NoisyRound:
    """An attempt at a round of a group with interference, its description, and whether a later attempt replaces it."""

    group: str
    round: int
    reason: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class RunInterference:
    """Interference in `rounds` measured rounds, including repetitions. `told`: the launches monitored it.

    `taken` contains the shares of time that other processes had, one for each of the `launches` from whose times it is
    subtracted. `stopped` contains the shares of launches that a CPU quota stopped, including contention.
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
    """Describe the interference in a launch in a clause; empty if there was none or it is unknown."""
    usage = launch.resources
    on_own = _describe_on_own_cpus(usage)
    if on_own:
        return f"{on_own} (subtracted from its time)" if compute_taken_share(launch) else on_own
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
    # readings of the whole launch don't describe the timed part
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
    # other slots of the machine measure at the same time; `harness fleet check` has tested their influence
    if not seconds or not cpus or busy is None or "steady_cpu_seconds" not in usage or usage.get("slots", 1.0) > 1:
        return ""
    elsewhere, rest = usage.get("steady_all_cpus_busy_seconds", busy) - busy, usage.get("steady_all_cpus", cpus) - cpus
    if rest and elsewhere - ticks_seconds(usage) * rest > ELSEWHERE_SHARE * seconds * rest:
        return f"other processes used {elsewhere / seconds:.2f} of the other CPUs"
    # the average also contains the launch before this one, which used as many CPUs
    load, machine = usage.get("load_before", 0.0), usage.get("steady_all_cpus", cpus)
    return f"the load average was {load:.2f} on {machine:.0f} CPUs" if load > machine + cpus else ""


def has_contention_readings(launch: Launch) -> bool:
    """Return whether the launch could observe other processes on its CPUs."""
    return "steady_own_cpus_busy_seconds" in launch.resources


def find_noisy_rounds(launches: Sequence[Launch]) -> dict[tuple[str, int, int], str]:
    """Return the group, round and attempt of each noisy round, with the interference of its first noisy launch."""
    by_round: dict[tuple[str, int, int], str] = {}
    for launch in launches:
        reason = "" if launch.role is Role.PILOT else describe_interference(launch)
        if reason:
            by_round.setdefault((launch.group, launch.round, launch.attempt), f"{launch.cell}: {reason}")
    return by_round


def find_interference(run: Run, launches: Sequence[Launch]) -> RunInterference:
    """Return which rounds were noisy. Interrupted rounds don't count."""
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
            share for launch in numbers if (share := compute_taken_share(launch)) and not was_throttled(launch)
        ),
        stopped=sorted(compute_taken_share(launch) for launch in numbers if was_throttled(launch)),
    )


@dataclass(frozen=True, slots=True)
class Contention:
    """CPU contention in the launches of a group, and the error of its subtraction as shown by these launches.

    `losses` contains, by cell and round, the mean of log 1/(1 - taken) over the launches. `unchecked` is the share,
    from 0 to 1, of a difference between the losses of two cells that may be wrong (see `estimate_unchecked_share`).
    """

    losses: Mapping[Cell, Series]
    unchecked: float

    def bias(self, cell: Cell, other: Cell) -> float:
        """Return the possible error of the log ratio of two cells, over common rounds; 0 without any."""
        one, two = self.losses.get(cell, {}), self.losses.get(other, {})
        both = one.keys() & two.keys()
        means = [fmean(side[number] for number in both) for side in (one, two)] if both else [0.0, 0.0]
        return compute_possible_error(means[0], means[1], self.unchecked)


def find_contention(launches: Iterable[Launch]) -> Contention | None:
    """Return the CPU contention in a group's launches with a result; None if nothing was subtracted."""
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
        [math.log(centre(launch)) for launch in all_launches],
        taken_off,
    )
    means = {cell: {number: fmean(values) for number, values in rounds.items()} for cell, rounds in losses.items()}
    return Contention(means, share)


def compute_possible_error(loss: float, other: float, unchecked: float) -> float:
    """Return the possible error of the log ratio of two cells with these mean losses, in either direction.

    The cells of a round share a core, and have similar losses. So the `unchecked` share of a difference between their
    losses may be an error, and each cell may have its own error: `ERROR` of its loss, independent of the other cell's
    error.
    """
    return unchecked * abs(loss - other) + ERROR * math.hypot(loss, other)


def estimate_unchecked_share(
    cells: Sequence[Hashable], rounds: Sequence[Hashable], logs: Sequence[float], losses: Sequence[float]
) -> float:
    """Return the share of a difference in losses that may be wrong, estimated from a group's launches: from 0 to 1.

    Each launch provides its log centre after the subtraction, and its loss. The model has an effect of each cell and
    each round (the speed of a launch changes together with its round). The slope of the centre on the loss is 0 if the
    subtraction is correct. It is -1 if the subtracted time differs between launches although their real time doesn't.
    The result is the end of the slope's 95 % interval that is farther from 0. It is 1 if there are too few launches, or
    if their losses are too similar, to decide.
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
