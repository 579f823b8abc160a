"""CPU weight that gives measured containers priority over other work."""

from collections.abc import Collection
from dataclasses import dataclass

from harness.backends.docker.engine import Engine

#: The most that an engine takes. A process that is in no control group has 1024.
SHARES = 262144

#: The root of the control groups, as the engine's driver calls it. Weights count among the members of one group, and
#: containers are in a group of their own by default, which has the weight of one process.
_ROOTS = {"cgroupfs": "/", "systemd": "-.slice"}


@dataclass(frozen=True, slots=True)
class Priority:
    """Priority over other work on `cpus`, for a container whose control group is in the group `parent`."""

    parent: str
    cpus: Collection[int]

    def get_shares(self, cpus: Collection[int] | None) -> int | None:
        """Return the CPU shares of a container on these CPUs (all CPUs if None); None if it isn't measured on them."""
        return SHARES if cpus and set(cpus) <= set(self.cpus) else None


def find_priority(engine: Engine, cpus: Collection[int]) -> Priority | None:
    """Return the priority that containers may have on these CPUs; None if this is unknown.

    A rootless engine can't leave its user's control group, and Podman isn't known to take the root. If launches had
    priority on all CPUs of the machine, the engine itself would get no CPU time.
    """
    parent = _ROOTS.get(engine.info.get("CgroupDriver", ""))
    is_podman = "BuildahVersion" in engine.info
    if parent is None or is_podman or engine.facts.rootless or len(cpus) >= engine.info.get("NCPU", 0):
        return None
    return Priority(parent, tuple(cpus))
