"""What the kernel counted on each CPU: busy with anything, and stolen by the hypervisor."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level, graded

#: One tick in twenty seconds is 0.05 %: less than this is too little to tell from none.
STEAL_WARN_PERCENT, STEAL_BAD_PERCENT = 0.2, 1.0


@dataclass(frozen=True, slots=True)
class Ticks:
    """Clock ticks of one CPU since the machine started: all, those in which it was busy, those stolen from it."""

    total: int
    busy: int
    stolen: int


def read(root: Path) -> dict[int, Ticks]:
    """Each CPU's ticks, from /proc/stat; empty where they cannot be read."""
    lines = [line.split() for line in (sysfs.text(root / "proc/stat") or "").splitlines()]
    return {
        int(name[3:]): _ticks([int(value) for value in values])
        for name, *values in (line for line in lines if line)
        if name.startswith("cpu") and name[3:].isdecimal() and len(values) >= 8
    }


def _ticks(values: list[int]) -> Ticks:
    user, nice, system, idle, iowait, irq, softirq, stolen = values[:8]  # what guests used is in `user` already
    busy = user + nice + system + irq + softirq
    return Ticks(total=busy + idle + iowait + stolen, busy=busy, stolen=stolen)


def busy(before: Mapping[int, Ticks], after: Mapping[int, Ticks], cpus: Collection[int]) -> int | None:
    """In how many ticks these CPUs were busy, together; None where one of them cannot be read."""
    if not set(cpus) <= before.keys() & after.keys():
        return None
    return sum(max(0, after[cpu].busy - before[cpu].busy) for cpu in cpus)


def steal(
    before: Mapping[int, Ticks], after: Mapping[int, Ticks], cpus: Collection[int], virtual: bool | None
) -> list[Finding]:
    """The share of the time of `cpus` that the hypervisor gave to others.

    A hypervisor that has never reported any since the machine started may be one that reports none.
    """
    if not cpus or not set(cpus) <= before.keys() & after.keys():
        return [Finding("steal", Level.UNKNOWN, {"percent": None, "reported": None})]
    total = sum(after[cpu].total - before[cpu].total for cpu in cpus)
    stolen = sum(max(0, after[cpu].stolen - before[cpu].stolen) for cpu in cpus)
    if total <= 0:
        return [Finding("steal", Level.UNKNOWN, {"percent": None, "reported": None})]
    reported = any(ticks.stolen for ticks in after.values()) or virtual is False
    percent = 100 * stolen / total
    level = graded(percent, STEAL_WARN_PERCENT, STEAL_BAD_PERCENT) if reported else Level.UNKNOWN
    return [Finding("steal", level, {"percent": percent, "reported": reported})]
