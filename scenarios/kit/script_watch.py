"""Watches a plain script while it runs: does it wait forever, and is it still running near its time limit?

A thread checks this once per second, which takes about 50 µs of CPU time. The script doesn't see the thread, because
the module `threading` doesn't list it.
"""

import _thread
import faulthandler
import os
import sys
import threading
import traceback
from time import monotonic, process_time, time

from .process import resident_bytes, start_time

# Seconds between checks, and seconds without CPU use after which a script is ended. A script uses no CPU if its threads
# use less than BUSY seconds of CPU time in all of these seconds.
LOOK, IDLE, BUSY = 1.0, 15.0, 0.075

# Seconds before the time limit at which the memory use is reported: at least, and as a share of the limit.
BEFORE, SHARE = 2.0, 0.1

# The most memory readings. If there are more, every second one is left out.
POINTS = 120

# Linux system calls on x86-64: timed sleeps (nanosleep, clock_nanosleep, select, pselect6, poll, ppoll, epoll_wait,
# epoll_pwait), and futex, whose fourth argument is a time limit.
SLEEPS, FUTEX = {"35", "230", "23", "270", "7", "271", "232", "281"}, "202"

TASKS = "/proc/self/task"


class ScriptWatch:
    """Watches the main thread while its `with` block runs.

    end: is called with the seconds without CPU use and the main thread's frame, and must end the process. None if a
    script may wait. report: is called once with the memory readings (pairs of seconds and bytes), shortly before
    `limit` seconds have passed since the process started. limit: None for no time limit.
    """

    def __init__(self, end, report, limit=None):
        self._end = end
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
        begun = since = monotonic()
        used, points = process_time(), []
        while not self._over.acquire(True, LOOK):
            now, spent = monotonic(), process_time()
            points = [*points, [round(now - begun, 3), resident_bytes() or 0]]
            if len(points) > POINTS:
                points = points[::2]
            if self._left is not None and now - begun >= self._left:
                self._left = None
                self._report(points)
            if self._end is None or spent - used >= BUSY or (now - since >= IDLE / 2 and not is_waiting()):
                since, used = now, spent
            elif now - since >= IDLE:
                self._end(now - since, sys._current_frames().get(self._main))
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
        for thread in os.listdir(tasks):
            with open(os.path.join(tasks, thread, "syscall")) as file:
                number, *arguments = file.read().split()
            if number in SLEEPS or (thread == main and number == FUTEX and int(arguments[3], 16)):
                return False
        return not any(is_active(process) for process in os.listdir("/proc") if process.isdigit() and process != main)
    except (OSError, ValueError, IndexError):
        return False


def is_active(process):
    """Return whether another process of this session can run, or used CPU time in the last second."""
    try:
        with open("/proc/{}/stat".format(process)) as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return False
    return int(fields[3]) == os.getsid(0) and fields[0] in "RD"


def stack_text(frame, path):
    """Return the stack of the main thread from the script's own code on, as a traceback shows it."""
    entries = traceback.extract_stack(frame)
    own = [number for number, entry in enumerate(entries) if entry[0] == path]
    return "".join(["Most recent call last:\n", *traceback.format_list(entries[own[0] if own else 0 :])])


def dump_threads():
    """Write the Python stacks of all threads to standard error."""
    faulthandler.dump_traceback(2, all_threads=True)
