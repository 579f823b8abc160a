"""The nice value by which processes get the CPUs that they are measured on before other work."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.machine import sysfs

#: The lowest nice value: 87 times the weight of a usual process.
LOWEST = -20

_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def can_lower() -> bool:
    """Return whether this process may start others at the lowest nice value, and whether they gain by it.

    If the harness has a nice value already, the user chose that, for its launches too. If the kernel groups processes
    by session (autogroup), nice values count within a session only, and each launch is a session.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) or sysfs.text(_AUTOGROUP) == "1":
        return False
    try:
        with running_at(LOWEST):
            return True
    except PermissionError:
        return False


@contextlib.contextmanager
def running_at(value: int) -> Iterator[None]:
    """Keep this thread, and what it starts, at this nice value. Raises PermissionError if it may not."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, value)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
