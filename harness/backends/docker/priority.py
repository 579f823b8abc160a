"""Gives measured containers priority over other work, with a CPU weight."""

from collections.abc import Collection
from dataclasses import dataclass

from harness.backends.docker.engine import Engine

#: The largest number of CPU shares that an engine accepts. A process without a control group has 1024.
SHARES = 262144

#: The name of the root control group for each cgroup driver of the engine. By default, all containers are in a common
#: group, which has only the weight of one process. So measured containers are placed in the root group.
_ROOT_GROUPS = {"cgroupfs": "/", "systemd": "-.slice"}


@dataclass(frozen=True, slots=True)
class Priority:
    """Priority over other work on `cpus`, for a container whose control group is in the group `parent`."""

    parent: str
    cpus: Collection[int]

    def get_shares(self, cpus: Collection[int] | None) -> int | None:
        """Return the CPU shares of a container on these CPUs (all CPUs if None); None if it gets no priority."""
        return SHARES if cpus and set(cpus) <= set(self.cpus) else None


def find_priority(engine: Engine, cpus: Collection[int]) -> Priority | None:
    """Return the priority that containers may have on these CPUs; None if they can't have priority.

    A rootless engine can't leave its user's control group, and it isn't known whether Podman accepts the root group. If
    launches had priority on all CPUs of the machine, the engine itself would get no CPU time.
    """
    parent = _ROOT_GROUPS.get(engine.info.get("CgroupDriver", ""))
    if parent is None or engine.is_podman or engine.facts.rootless or len(cpus) >= engine.info.get("NCPU", 0):
        return None
    return Priority(parent, tuple(cpus))
