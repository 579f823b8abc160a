"""Processes on a GPU that are not the launch's own."""

import re
from collections.abc import Callable, Collection
from pathlib import Path

#: The first process namespace of a Linux machine has this number (PROC_PID_INIT_INO in the kernel).
_FIRST_NAMESPACE = 0xEFFFFFFC

#: The container that a process is in: its id, empty for one that is in none, None where that is not known.
ContainerOf = Callable[[int], str | None]


def count(before: Collection[int], now: Collection[int], container_of: ContainerOf) -> int:
    """How many others compute on a GPU: processes `now` of which some were there `before` the launch began.

    The launch is one container, so a new process outside all containers is another's, and so is each further
    container. A new one of which nothing is known is taken for the launch's own.
    """
    old = {pid for pid in now if pid in before}
    homes = [home for pid in now if pid not in old and (home := container_of(pid)) is not None]
    containers = {home for home in homes if home}
    return len(old) + homes.count("") + max(0, len(containers) - 1)


def container_of(pid: int, root: Path = Path("/")) -> str | None:
    """The id of the container that a process of this machine is in; see ContainerOf.

    Not known where this process is in a container itself: NVML numbers processes as the host does.
    """
    try:
        if (root / "proc/self/ns/pid").stat().st_ino != _FIRST_NAMESPACE:
            return None
        text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"[0-9a-f]{64}", text)
    return found[0] if found else ""
