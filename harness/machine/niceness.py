"""Gives launches priority on their CPUs, with a low nice value."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.machine import sysfs

#: The lowest nice value: 87 times the weight of a usual process.
LOWEST = -20

_AUTOGROUP_FILE = Path("/proc/sys/kernel/sched_autogroup_enabled")


def can_lower() -> bool:
    """Return whether this process may start processes with the lowest nice value, and whether that has an effect.

    If harness itself has a nice value, the user has chosen it, also for launches. If the kernel groups processes by
    session (autogroup), nice values count only within a session. Then they have no effect, because each launch is a
    separate session.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) or sysfs.read_text(_AUTOGROUP_FILE) == "1":
        return False
    try:
        with run_at_nice_value(LOWEST):
            return True
    except PermissionError:
        return False


@contextlib.contextmanager
def run_at_nice_value(value: int) -> Iterator[None]:
    """Run the block and the processes that it starts at this nice value. Raises PermissionError if not permitted."""
    previous_value = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, value)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, previous_value)
