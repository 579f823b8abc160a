"""Counters of the kernel, and the period between two readings.

psutil reads processes. CPU times are read here, because psutil numbers CPUs by their position in a list. If a CPU is
offline, these positions differ from the CPU numbers.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.machine import sysfs
from harness.machine.topology import Topology


@dataclass(frozen=True, slots=True)
class CpuPlace:
    """The CPUs to check, the CPUs that this process may use, and the root of the system's files."""

    cpus: tuple[int, ...]
    allowed: frozenset[int]
    topology: Topology
    root: Path = Path("/")


@dataclass(frozen=True, slots=True)
class Ticks:
    """Clock ticks of a CPU: in total, busy, and stolen by the hypervisor."""

    total: int
    busy: int
    stolen: int


@dataclass(frozen=True, slots=True)
class CpuUse:
    """A process's short name, and its CPU seconds."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Counters:
    """The kernel's counters since the machine started, and the time of the reading in seconds.

    `own` are the CPU seconds of this process. The keys of `ticks` are CPU numbers.
    """

    seconds: float
    own: float
    ticks: Mapping[int, Ticks]
    processes: Mapping[psutil.Process, CpuUse]


@dataclass(frozen=True, slots=True)
class Period:
    """The period of a check: the counters at its start and end."""

    place: CpuPlace
    before: Counters
    after: Counters

    @property
    def seconds(self) -> float:
        """Length of the period in seconds."""
        return self.after.seconds - self.before.seconds

    def ticks(self, cpus: Collection[int]) -> Ticks | None:
        """Return the ticks of these CPUs in total, or None if one of them can't be read."""
        before, after = self.before.ticks, self.after.ticks
        if not cpus or not set(cpus) <= before.keys() & after.keys():
            return None
        return Ticks(
            total=sum(after[cpu].total - before[cpu].total for cpu in cpus),
            busy=sum(max(0, after[cpu].busy - before[cpu].busy) for cpu in cpus),
            stolen=sum(max(0, after[cpu].stolen - before[cpu].stolen) for cpu in cpus),
        )


def read_ticks(root: Path) -> dict[int, Ticks]:
    """Return each CPU's ticks since the machine started, from /proc/stat. It is empty if they can't be read."""
    ticks = {}
    text = sysfs.read_text(root / "proc/stat") or ""
    for cpu, counts in re.findall(r"^cpu(\d+)((?: +\d+){8})", text, re.MULTILINE):
        # `user` includes the time of guests
        user, nice, system, idle, iowait, irq, softirq, stolen = map(int, counts.split())
        busy = user + nice + system + irq + softirq
        ticks[int(cpu)] = Ticks(busy + idle + iowait + stolen, busy, stolen)
    return ticks


def read_processes() -> dict[psutil.Process, CpuUse]:
    """Return the CPU use of all visible processes."""
    return {
        process: CpuUse(sysfs.make_printable(process.info["name"] or ""), times.user + times.system)
        for process in psutil.process_iter(["name", "cpu_times"])
        if (times := process.info["cpu_times"]) is not None
    }
