"""The activity of this machine's CPUs while steps were timed, from Linux's counters; empty without these."""

import os
from collections import namedtuple
from contextlib import contextmanager
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter, process_time, time

STAT = "/proc/stat"
THREADS = "/proc/self/task"

NANOSECOND = 1e-9

# Values of a piece that aren't amounts: they are equal in every piece, and aren't summed.
COUNTS = {"steady_own_cpus", "steady_all_cpus"}

# stat: the bytes of /proc/stat, None where it cannot be read; waited: of `waiting`; faults: of `minor_faults`; now:
# seconds since 1970; wall, cpu: of the two clocks.
Reading = namedtuple("Reading", "stat waited faults now wall cpu")


class Telemetry:
    """Monitors its `with` blocks, one after the other: the timed steps, whole or in pieces.

    It isn't a function that calls them, because frames cost time (see `outcome.py`). Readings at a piece's ends are
    parsed after it, so that a piece is stored as a few numbers. Beside TensorFlow on one CPU, which has 5 to 8 threads,
    both ends together take 0.4 ms; with 50 threads it is 2 ms.
    """

    def __init__(self, stat=STAT, threads=THREADS):
        self._stat = stat
        self._threads = threads
        self._load = load()
        self._cpus = frozenset()
        self._before = self._started = self._ended = None
        self._pieces = []
        self._between = []

    def __enter__(self):
        if hasattr(os, "sched_getaffinity"):  # by hand a scenario runs on other systems too
            self._cpus = os.sched_getaffinity(0)
        # The clocks are read next to the steps, here and at the end.
        self._before = Reading(read(self._stat), waiting(self._threads), minor_faults(), time(), perf_counter(), cpu())
        return self

    def __exit__(self, kind, error, trace):
        wall, used, now = perf_counter(), cpu(), time()
        if kind is None:
            faults = minor_faults()  # what is read next may have some of its own
            after = Reading(read(self._stat), waiting(self._threads), faults, now, wall, used)
            if not self._pieces:
                self._started = self._before.now
            self._ended = now
            self._pieces.append(piece(self._before, after, self._cpus))

    @contextmanager
    def between(self):
        """Called around a wait between two pieces of work."""
        wall, used = perf_counter(), cpu()
        yield
        self._between.append((perf_counter() - wall, cpu() - used))

    def resources(self):
        """Return numbers by the names of docs/dev/worker-protocol.md, in seconds and CPUs, without unknown ones."""
        numbers = {} if self._load is None else {"load_before": self._load}
        if self._between:
            numbers["between_seconds"] = sum(wall for wall, _ in self._between)
            numbers["between_cpu_seconds"] = sum(used for _, used in self._between)
        if not self._pieces:
            return numbers
        # who watches from outside has the same clock: when the steps began and ended, to some microseconds
        numbers["steady_started"], numbers["steady_ended"] = self._started, self._ended
        numbers["steady_pieces"] = len(self._pieces)
        for name, first in self._pieces[0].items():
            if all(name in part for part in self._pieces):  # what is not known of one piece is not known of the sum
                numbers[name] = first if name in COUNTS else sum(part[name] for part in self._pieces)
        return numbers


def cpu():
    """CPU seconds of this process, and of the children that it waited for: both are its own work."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def minor_faults():
    """How often the kernel gave this process, or a child that it waited for, a page of memory when it was touched.

    Allocators that hand freed memory back meet them again and again, how often depends on what lies where in a process.
    """
    return getrusage(RUSAGE_SELF).ru_minflt + getrusage(RUSAGE_CHILDREN).ru_minflt


def load():
    """The load average of the last minute, None where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def read(path):
    """The bytes of a file, None where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # half of the time that a buffer takes
            return file.read()
    except OSError:
        return None


def waiting(threads):
    """Return the seconds for which each thread of this process was ready and didn't run, by thread id.

    threads: the folder of its threads in /proc. None if the kernel doesn't report it
    (Documentation/scheduler/sched-stats.rst).
    """
    seconds = {}
    kept = False
    try:
        for number in os.listdir(threads):
            books = read(os.path.join(threads, number, "schedstat"))
            if books:  # else the thread is gone
                ran, waited, _ = map(int, books.split())
                kept = kept or ran > 0  # a kernel that keeps no books writes zeros
                seconds[number] = waited * NANOSECOND
    except (OSError, ValueError):
        return None
    return seconds if kept else None


def piece(before, after, own):
    """Return the activity between two readings on the CPUs `own` and on all: numbers by name."""
    wall, used = after.wall - before.wall, after.cpu - before.cpu
    numbers = {
        "steady_seconds": wall,
        "steady_cpu_seconds": used,
        "steady_minor_faults": after.faults - before.faults,
    }
    if before.waited is not None and after.waited is not None:
        # a thread that began meanwhile waited meanwhile; of one that ended nothing is known
        waited = sum(max(0.0, seconds - before.waited.get(number, 0.0)) for number, seconds in after.waited.items())
        numbers["steady_waited_seconds"] = max(0.0, min(wall - used, waited))
    numbers.update(between(cpu_ticks(before.stat), cpu_ticks(after.stat), own))
    return numbers


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
    """Return the seconds between two readings of `cpu_ticks`: on `own`, and on all CPUs online at both."""
    second = os.sysconf("SC_CLK_TCK")
    busy = {cpu: (after[cpu][0] - before[cpu][0]) / second for cpu in before if cpu in after}
    numbers = {}
    if own and busy.keys() >= own:
        numbers["steady_own_cpus"] = len(own)
        numbers["steady_own_cpus_busy_seconds"] = sum(busy[cpu] for cpu in own)
        numbers["steady_own_cpus_steal_seconds"] = sum(after[cpu][1] - before[cpu][1] for cpu in own) / second
    if busy:
        numbers["steady_all_cpus"] = len(busy)
        numbers["steady_all_cpus_busy_seconds"] = sum(busy.values())
    # A counter that went back, such as steal time after a live migration, is ignored.
    return {name: value for name, value in numbers.items() if value >= 0}
