"""What the kernel has counted, and the time between two readings of it.

psutil tells of processes and memory. CPU times are read here: psutil numbers CPUs by their place in a list, which is
another CPU's once one is offline.
"""

import os
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.machine import sysfs
from harness.machine.topology import Topology

#: Where the kernel tells of CPUs, seen from the root.
CPUS = "sys/devices/system/cpu"

#: What psutil takes a page of memory to be, in bytes, where it counts those that were swapped.
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen: the CPUs, those that this process may use, and where the system's files are."""

    cpus: tuple[int, ...]
    allowed: frozenset[int]
    topology: Topology
    root: Path = Path("/")


@dataclass(frozen=True, slots=True)
class Ticks:
    """Clock ticks of a CPU: all, those in which it was busy, those stolen from it."""

    total: int
    busy: int
    stolen: int


@dataclass(frozen=True, slots=True)
class CpuUse:
    """A process's short name, and the seconds of CPU that it has used."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, and the pages swapped in or out since the machine started, None where these are not counted."""

    total: int
    available: int
    swap_total: int
    swap_used: int
    swapped_pages: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel has counted since the machine started, and when it was read, in seconds.

    `own` is the CPU that this process has used, in seconds; `ticks` and `throttles` are by CPU.
    """

    seconds: float
    own: float
    ticks: Mapping[int, Ticks]
    processes: Mapping[psutil.Process, CpuUse]
    throttles: Mapping[int, int]
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class Period:
    """The time for which the doctor listened: the counters at its ends, and the load average before it."""

    place: Place
    before: Counters
    after: Counters
    load: float | None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.after.seconds - self.before.seconds

    def ticks(self, cpus: Collection[int]) -> Ticks | None:
        """What these CPUs did meanwhile, together; None where one of them cannot be read."""
        before, after = self.before.ticks, self.after.ticks
        if not cpus or not set(cpus) <= before.keys() & after.keys():
            return None
        return Ticks(
            total=sum(after[cpu].total - before[cpu].total for cpu in cpus),
            busy=sum(max(0, after[cpu].busy - before[cpu].busy) for cpu in cpus),
            stolen=sum(max(0, after[cpu].stolen - before[cpu].stolen) for cpu in cpus),
        )


def read_counters(place: Place, now: float, own: float) -> Counters:
    """All the counters, at the time `now`; `own` is the CPU that this process has used, both in seconds."""
    return Counters(
        now, own, read_ticks(place.root), read_processes(), read_throttles(place.root, place.cpus), read_memory()
    )


def load_average() -> float | None:
    """How many threads wanted to run, over the last minute."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def read_ticks(root: Path) -> dict[int, Ticks]:
    """Each CPU's ticks since the machine started, from /proc/stat; empty where they cannot be read."""
    found = {}
    text = sysfs.text(root / "proc/stat") or ""
    for cpu, counts in re.findall(r"^cpu(\d+)((?: +\d+){8})", text, re.MULTILINE):
        # what guests used is in `user` already
        user, nice, system, idle, iowait, irq, softirq, stolen = map(int, counts.split())
        busy = user + nice + system + irq + softirq
        found[int(cpu)] = Ticks(busy + idle + iowait + stolen, busy, stolen)
    return found


def read_processes() -> dict[psutil.Process, CpuUse]:
    """All that are seen from here."""
    return {
        process: CpuUse(sysfs.printable(process.info["name"] or ""), times.user + times.system)
        for process in psutil.process_iter(["name", "cpu_times"])
        if (times := process.info["cpu_times"]) is not None
    }


def read_throttles(root: Path, cpus: Collection[int]) -> dict[int, int]:
    """How often each of `cpus` was slowed down for its heat since the machine started, where that is counted."""
    found = {}
    for cpu in cpus:
        folder = root / CPUS / f"cpu{cpu}/thermal_throttle"
        counts = [sysfs.integer(folder / f"{part}_throttle_count") for part in ("core", "package")]
        if counts != [None, None]:
            found[cpu] = sum(count or 0 for count in counts)
    return found


def read_memory() -> Memory | None:
    """The machine's memory; None where it is not told."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    except (OSError, KeyError):
        return None
    # psutil warns, and counts zero, where the kernel does not count it
    is_counted = not any("'sin'" in str(each.message) for each in said)
    pages = (swap.sin + swap.sout) // _PAGE if is_counted else None
    return Memory(memory.total, memory.available, swap.total, swap.used, pages)
