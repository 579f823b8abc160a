"""Monitors this machine's CPUs while steps are timed, with Linux's counters. Without them, the results are empty."""

import os
from collections import namedtuple
from contextlib import contextmanager
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter, process_time, time

STAT = "/proc/stat"
THREADS = "/proc/self/task"
# The children that this thread started. Some kernels don't have this file.
CHILDREN = "/proc/thread-self/children"

NANOSECOND = 1e-9

# Values that are the same in every piece, so they aren't summed.
COUNTS = {"steady_own_cpus", "steady_all_cpus"}

# stat: the bytes of /proc/stat, or None if it can't be read; waited: the result of `waiting`; faults: the result of
# `minor_faults`; now: seconds since 1970; wall, cpu: seconds of the two clocks.
Reading = namedtuple("Reading", "stat waited faults now wall cpu")


class Telemetry:
    """Monitors its `with` blocks, which run one after the other. Each block is a piece of the timed steps.

    This is a class and not a function that calls the steps, because an additional stack frame takes time (see
    `outcome.py`). The readings before and after a piece are parsed after it, and stored as a few numbers. With
    TensorFlow on one CPU, which has 5 to 8 threads, both readings together take 0.4 ms. With 50 threads, they take 2
    ms.
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
        if hasattr(os, "sched_getaffinity"):  # without harness, a scenario can run on other systems
            self._cpus = os.sched_getaffinity(0)
        # The clocks are read next to the steps, here and at the end.
        self._before = Reading(read(self._stat), waiting(self._threads), minor_faults(), time(), perf_counter(), cpu())
        return self

    def __exit__(self, kind, error, trace):
        wall, used, now = perf_counter(), cpu(), time()
        if kind is None:
            faults = minor_faults()  # first, because the next readings can cause page faults
            after = Reading(read(self._stat), waiting(self._threads), faults, now, wall, used)
            if not self._pieces:
                self._started = self._before.now
            self._ended = now
            self._pieces.append(piece(self._before, after, self._cpus))

    @contextmanager
    def between(self):
        """Return a context for a wait between two pieces."""
        wall, used = perf_counter(), cpu()
        yield
        self._between.append((perf_counter() - wall, cpu() - used))

    def resources(self):
        """Return numbers by the names of docs/dev/worker-protocol.md, in seconds and CPUs, without unknown ones."""
        numbers = {} if self._load is None else {"load_before": self._load}
        if self._between:
            numbers["between_seconds"] = sum(wall for wall, _ in self._between)
            numbers["between_cpu_seconds"] = sum(cpu_seconds for _, cpu_seconds in self._between)
        if not self._pieces:
            return numbers
        # the GPU monitor, outside of this process, uses the same clock
        numbers["steady_started"], numbers["steady_ended"] = self._started, self._ended
        numbers["steady_pieces"] = len(self._pieces)
        for name, first in self._pieces[0].items():
            if all(name in part for part in self._pieces):  # if one piece is unknown, the sum is unknown
                numbers[name] = first if name in COUNTS else sum(part[name] for part in self._pieces)
        return numbers


def cpu():
    """Return the CPU seconds of this process and of its children.

    For a running child, they include its threads, but not its own children.
    """
    children = getrusage(RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime + sum(map(child_cpu, (read(CHILDREN) or b"").split()))


def child_cpu(child):
    """Return the CPU seconds of a process, exact to a clock tick; 0 if it has ended."""
    # The second field is the command's name in parentheses, with any characters.
    fields = (read("/proc/{}/stat".format(child.decode())) or b"").rpartition(b")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def minor_faults():
    """Return the number of minor page faults of this process and of its finished children.

    An allocator that returns freed memory to the kernel causes them repeatedly. Their number depends on the memory
    layout of the process.
    """
    return getrusage(RUSAGE_SELF).ru_minflt + getrusage(RUSAGE_CHILDREN).ru_minflt


def load():
    """Return the load average of the last minute, or None if the system doesn't report it."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def read(path):
    """Return the bytes of a file, or None if it can't be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # a buffer would double the time
            return file.read()
    except OSError:
        return None


def waiting(threads):
    """Return the seconds for which each thread of this process waited for a CPU, by thread id; None if unknown.

    threads: the folder of its threads in /proc. Source: Documentation/scheduler/sched-stats.rst in the Linux kernel.
    """
    seconds = {}
    has_statistics = False
    try:
        for number in os.listdir(threads):
            text = read(os.path.join(threads, number, "schedstat"))
            if text:  # an empty file: the thread has ended
                run_time, wait_time, _ = map(int, text.split())
                has_statistics = has_statistics or run_time > 0  # a kernel without these statistics writes zeros
                seconds[number] = wait_time * NANOSECOND
    except (OSError, ValueError):
        return None
    return seconds if has_statistics else None


def piece(before, after, own):
    """Return the activity between two readings, on the CPUs `own` and on all CPUs, as numbers by name."""
    wall, cpu_seconds = after.wall - before.wall, after.cpu - before.cpu
    numbers = {
        "steady_seconds": wall,
        "steady_cpu_seconds": cpu_seconds,
        "steady_minor_faults": after.faults - before.faults,
    }
    if before.waited is not None and after.waited is not None:
        # a new thread started with 0; threads that ended in between aren't known
        waited_seconds = sum(
            max(0.0, seconds - before.waited.get(number, 0.0)) for number, seconds in after.waited.items()
        )
        numbers["steady_waited_seconds"] = max(0.0, min(wall - cpu_seconds, waited_seconds))
    numbers.update(between(cpu_ticks(before.stat), cpu_ticks(after.stat), own))
    return numbers


def cpu_ticks(stat):
    """Return two numbers of clock ticks per online CPU, by CPU number: its busy time, and its stolen time.

    Both count from the start of the machine. stat: the bytes of /proc/stat. The result is empty if they are None or
    invalid, or if all counters are 0.
    """
    ticks = {}
    for line in (stat or b"").split(b"\n"):
        name, *fields = line.split() or [b""]
        if not name.startswith(b"cpu"):
            break  # the CPUs come first, and the rest is long
        if name == b"cpu":  # the line with the totals
            continue
        try:
            # The next fields are guest times, which user time contains already.
            user, nice, system, idle, _, irq, softirq, steal = map(int, fields[:8])
            if user or nice or system or idle:  # a sandbox without these counters writes zeros
                ticks[int(name[3:])] = user + nice + system + irq + softirq, steal
        except ValueError:
            return {}
    return ticks


def between(before, after, own):
    """Return the busy and stolen seconds between two results of `cpu_ticks`, by name.

    They are for the CPUs `own`, and for all CPUs that were online both times.
    """
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
