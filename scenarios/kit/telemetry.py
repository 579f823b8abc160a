"""What this machine's CPUs did while the steps were timed, by Linux's own books; nothing where there are none."""

import os
from collections import namedtuple
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter, process_time, time

STAT = "/proc/stat"

# stat: the bytes of /proc/stat, None where it cannot be read; now: seconds since 1970; wall, cpu: of the two clocks.
Reading = namedtuple("Reading", "stat now wall cpu")


class Telemetry:
    """Watches what stands in its `with` block: the timed steps.

    It is no function that calls them, because frames cost (see `outcome.py`). Each end is one read of a file; what was
    read is understood later, by `resources`.
    """

    def __init__(self, stat=STAT):
        self._stat = stat
        self._load = load()
        self._cpus = frozenset()
        self._before = self._after = None

    def __enter__(self):
        if hasattr(os, "sched_getaffinity"):  # by hand a scenario runs on other systems too
            self._cpus = os.sched_getaffinity(0)
        # The clocks stand next to the steps, here and at the end.
        self._before = Reading(read(self._stat), time(), perf_counter(), cpu())
        return self

    def __exit__(self, kind, error, trace):
        wall, used = perf_counter(), cpu()
        if kind is None:
            self._after = Reading(read(self._stat), time(), wall, used)

    def resources(self):
        """Numbers by the names of docs/contracts.md, in seconds and CPUs; what cannot be known is left out."""
        found = {} if self._load is None else {"load_before": self._load}
        if self._after is None:
            return found
        # who watches from outside has the same clock: when the steps began and ended, to some microseconds
        found["steady_started"], found["steady_ended"] = self._before.now, self._after.now
        found["steady_seconds"] = self._after.wall - self._before.wall
        found["steady_cpu_seconds"] = self._after.cpu - self._before.cpu
        found.update(between(cpu_ticks(self._before.stat), cpu_ticks(self._after.stat), self._cpus))
        return found


def cpu():
    """CPU seconds of this process, and of the children that it waited for: both are its own work."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def load():
    """The load average of the last minute, None where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def read(path):
    """The bytes of a file, None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def cpu_ticks(stat):
    """Clock ticks for which each online CPU was busy, and was stolen, since the machine started, by its number.

    stat: the bytes of /proc/stat. Empty where that is None or no such text, or its books are not kept.
    """
    ticks = {}
    for line in (stat or b"").split(b"\n"):
        name, *fields = line.split() or [b""]
        if not name.startswith(b"cpu"):
            break  # they come first, and what follows is long
        if name == b"cpu":  # all together
            continue
        try:
            # Guest time, which follows these, is contained in user time.
            user, nice, system, idle, _, irq, softirq, steal = map(int, fields[:8])
            if user or nice or system or idle:  # a sandbox that keeps no books writes zeros
                ticks[int(name[3:])] = user + nice + system + irq + softirq, steal
        except ValueError:
            return {}
    return ticks


def between(before, after, own):
    """What happened between two of `cpu_ticks` on the CPUs `own` and on all that were online at both, in seconds."""
    second = os.sysconf("SC_CLK_TCK")
    busy = {cpu: (after[cpu][0] - before[cpu][0]) / second for cpu in before if cpu in after}
    found = {}
    if own and busy.keys() >= own:
        found["steady_own_cpus"] = len(own)
        found["steady_own_cpus_busy_seconds"] = sum(busy[cpu] for cpu in own)
        found["steady_own_cpus_steal_seconds"] = sum(after[cpu][1] - before[cpu][1] for cpu in own) / second
    if busy:
        found["steady_all_cpus"] = len(busy)
        found["steady_all_cpus_busy_seconds"] = sum(busy.values())
    # A count that went back, as stolen time does where a machine is moved to another, tells nothing.
    return {name: value for name, value in found.items() if value >= 0}
