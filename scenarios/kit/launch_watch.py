"""Watches a launch while it runs: does it wait forever, and is a plain script still running near its time limit?

A thread checks a scenario every five seconds, and a plain script every second, which takes about 50 µs of CPU time. The
code under test doesn't see the thread, because the module `threading` doesn't list it.
"""

import _thread
import faulthandler
import os
import sys
import threading
import traceback
from time import monotonic, process_time, time

from .process import affinity, resident_bytes, start_time

# Seconds between checks of a plain script and of a scenario.
LOOK, SELDOM = 1.0, 5.0

# Seconds without CPU use after which a launch is ended. A launch uses no CPU if its threads use less than BUSY seconds
# of CPU time in all of these seconds.
IDLE, BUSY = 15.0, 0.075

# The memory use is reported this long before the time limit: a number of seconds or, if that is longer, a share of the
# limit.
BEFORE, SHARE = 2.0, 0.1

# The most memory readings. If there are more, every second one is left out.
POINTS = 120

# Linux system calls per architecture: timed sleeps (nanosleep, clock_nanosleep, pselect6, ppoll, epoll_pwait and, on
# x86-64, select, poll, epoll_wait), and futex, whose fourth argument is a time limit.
CALLS = {
    "x86_64": ({"35", "230", "270", "271", "281", "23", "7", "232"}, "202"),
    "aarch64": ({"101", "115", "72", "73", "22"}, "98"),
}

TASKS = "/proc/self/task"


class LaunchWatch:
    """Watches the main thread while its `with` block runs.

    end: is called with the seconds without CPU use and the main thread's frame, and must end the process. None if the
    code may always wait. may_wait: returns whether it may wait now, for example for a command. look: the seconds
    between checks. report: is called once with the memory readings (pairs of seconds and bytes), shortly before `limit`
    seconds have passed since the process started. limit: None for no report.
    """

    def __init__(self, end, may_wait=lambda: False, look=LOOK, report=None, limit=None):
        self._end = end
        self._may_wait = may_wait
        self._look = look
        self._report = report
        self._left = None
        if limit is not None:
            self._left = limit - max(BEFORE, SHARE * limit) - age()
        self._main = threading.get_ident()
        self._over = _thread.allocate_lock()

    def __enter__(self):
        self._over.acquire()
        _thread.start_new_thread(self._watch, ())
        return self

    def __exit__(self, kind, error, trace):
        self._over.release()

    def _watch(self):
        start = idle_since = monotonic()
        cpu_seconds, points = process_time(), []
        while not self._over.acquire(True, self._look):
            current, cpu_now = monotonic(), process_time()
            if self._left is not None:
                points = [*points, [round(current - start, 3), resident_bytes() or 0]]
                if len(points) > POINTS:
                    points = points[::2]
                if current - start >= self._left:
                    self._left = None
                    self._report(points)
            is_idle = self._end is not None and cpu_now - cpu_seconds < BUSY and not self._may_wait()
            if not is_idle or (current - idle_since >= IDLE / 2 and not is_waiting()):
                idle_since, cpu_seconds = current, cpu_now
            elif current - idle_since >= IDLE:
                self._end(current - idle_since, sys._current_frames().get(self._main))
                return


def age():
    """Return the age of this process in seconds; 0 if it isn't known."""
    started = start_time()
    return 0.0 if started is None else max(0.0, time() - started)


def is_waiting(tasks=TASKS):
    """Return whether all threads wait without a time limit, and no other process of this session is active.

    If the system doesn't report it, the result is False.
    """
    try:
        main = str(os.getpid())
        sleeps, futex = CALLS[os.uname().machine]
        for thread in os.listdir(tasks):
            with open(os.path.join(tasks, thread, "syscall")) as file:
                number, *arguments = file.read().split()
            if number in sleeps or (thread == main and number == futex and int(arguments[3], 16)):
                return False
        return not any(is_active(process) for process in os.listdir("/proc") if process.isdigit() and process != main)
    except (OSError, ValueError, LookupError):
        return False


def is_active(process):
    """Return whether another process of this session can run, or used CPU time in the last second."""
    try:
        with open("/proc/{}/stat".format(process)) as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return False
    return int(fields[3]) == os.getsid(0) and fields[0] in "RD"


def idle_reason(seconds, frame, path, describe):
    """Return the reason for ending a launch that waits forever.

    The reason contains the line of the file `path` in which the launch waits. `describe` formats a line number.
    """
    function, location = "", ""
    while frame is not None:
        function = function or frame.f_code.co_name
        if frame.f_code.co_filename == path:
            location = " ({})".format(describe(frame.f_lineno))
            break
        frame = frame.f_back
    text = "it used no CPU time for {:.0f} s and was ended while it waited in {}{}{}"
    advice = ". It has one CPU core; try --cpus 2" if affinity() and len(affinity()) == 1 else ""
    return text.format(seconds, function or "a thread", location, advice)


def stack_text(frame, path):
    """Return the stack of the main thread from the file `path` on, as a traceback shows it."""
    entries = traceback.extract_stack(frame)
    own_entries = [number for number, entry in enumerate(entries) if entry[0] == path]
    first = own_entries[0] if own_entries else 0
    return "".join(["Most recent call last:\n", *traceback.format_list(entries[first:])])


def dump_threads():
    """Write the Python stacks of all threads to standard error."""
    faulthandler.dump_traceback(2, all_threads=True)
