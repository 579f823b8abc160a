"""The topology of the CPUs: which of them share physical cores, caches and NUMA nodes, and their kinds by speed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine import sysfs

#: CPUs of one kind have at least this share of the speed of the fastest CPU of the kind. The slow cores of hybrid chips
#: reach 65 to 81 % of the fast cores' frequency. Cores of one kind differ by up to 10 %, because vendors give the best
#: cores a higher frequency.
SAME_KIND = 0.85


@dataclass(frozen=True, slots=True)
class Cpu:
    """One CPU, with the kernel's number.

    `siblings` are the CPUs of its physical core, including itself. `speed` is a relative number without a unit. The
    scheduler gives no work to an `isolated` CPU unless a process is pinned to it. `cache` are the CPUs that share its
    last-level cache (level 3), including itself; it is empty if the kernel reports no such cache.
    """

    number: int
    siblings: frozenset[int]
    package: int = 0
    node: int | None = None
    speed: int = 0
    isolated: bool = False
    cache: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Topology:
    """A machine's CPUs.

    `known`: the kernel reports which CPUs share a core. `virtual`: the CPUs belong to a virtual machine, so they may
    share cores that the kernel doesn't report; None if it isn't known.
    """

    cpus: Mapping[int, Cpu]
    known: bool = True
    virtual: bool | None = False

    def cpu(self, number: int) -> Cpu:
        """Return a CPU by its number. A CPU that the kernel doesn't describe counts as a separate core."""
        return self.cpus.get(number) or Cpu(number, frozenset({number}))

    def others(self, cpus: Iterable[int]) -> frozenset[int]:
        """Return the other CPUs that share a physical core with one of these CPUs."""
        given = frozenset(cpus)
        return frozenset[int]().union(*(self.cpu(number).siblings for number in given)) - given

    def group_by_core(self, cpus: Iterable[int]) -> dict[frozenset[int], list[int]]:
        """Group these CPUs by physical core (its CPUs), in the order of their numbers."""
        cores: dict[frozenset[int], list[int]] = {}
        for cpu in sorted(cpus):
            cores.setdefault(self.cpu(cpu).siblings, []).append(cpu)
        return cores

    def kinds(self, cpus: Iterable[int]) -> list[frozenset[int]]:
        """Group these CPUs by speed, the fastest kind first."""
        kinds: list[set[int]] = []
        fastest = 0
        for number in sorted(cpus, key=lambda number: (-self.cpu(number).speed, number)):
            speed = self.cpu(number).speed
            if not kinds or speed < SAME_KIND * fastest:
                kinds.append(set())
                fastest = speed
            kinds[-1].add(number)
        return [frozenset(kind) for kind in kinds]


def read(root: Path = Path("/")) -> Topology:
    """Read the topology from the kernel's files under `root`. Without them, every CPU counts as a separate core."""
    folder = root / "sys/devices/system/cpu"
    numbers = _read_online(folder)
    siblings = {number: _read_siblings(folder / f"cpu{number}/topology") for number in numbers}
    isolated = sysfs.read_cpu_list(folder / "isolated") or frozenset()
    nodes = _read_nodes(root / "sys/devices/system/node")
    speeds = _read_speeds(folder, numbers)
    cpus = {
        number: Cpu(
            number,
            siblings=(siblings[number] or frozenset()) | {number},
            package=sysfs.read_integer(folder / f"cpu{number}/topology/physical_package_id") or 0,
            node=nodes.get(number),
            speed=speeds.get(number, 0),
            isolated=number in isolated,
            cache=_read_cache(folder / f"cpu{number}/cache"),
        )
        for number in numbers
    }
    is_known = bool(numbers) and all(group is not None for group in siblings.values())
    return Topology(cpus, is_known, is_virtual(root))


def is_virtual(root: Path = Path("/")) -> bool | None:
    """Return whether this is a virtual machine, or None if the CPU's flags aren't readable."""
    flags = re.search(r"^flags\s*:(.*)$", sysfs.read_text(root / "proc/cpuinfo") or "", re.MULTILINE)
    return "hypervisor" in flags[1].split() if flags else None


def _read_online(folder: Path) -> list[int]:
    """Return the online CPUs. The kernel doesn't describe offline CPUs."""
    described = {int(path.name[3:]) for path in folder.glob("cpu[0-9]*") if re.fullmatch(r"cpu\d+", path.name)}
    online = sysfs.read_cpu_list(folder / "online")
    return sorted(described if online is None else described & online)


def _read_siblings(folder: Path) -> frozenset[int] | None:
    for name in ("core_cpus_list", "thread_siblings_list"):  # older kernels use the second name
        if (cpus := sysfs.read_cpu_list(folder / name)) is not None:
            return cpus
    return None


def _read_cache(folder: Path) -> frozenset[int]:
    """Return the CPUs that share the level 3 cache."""
    for path in folder.glob("index[0-9]*"):
        if sysfs.read_integer(path / "level") == 3:
            return sysfs.read_cpu_list(path / "shared_cpu_list") or frozenset()
    return frozenset()


def _read_nodes(folder: Path) -> dict[int, int]:
    """Return the NUMA node of each CPU."""
    paths = [path for path in folder.glob("node[0-9]*") if re.fullmatch(r"node\d+", path.name)]
    return {cpu: int(path.name[4:]) for path in paths for cpu in sysfs.read_cpu_list(path / "cpulist") or ()}


def _read_speeds(folder: Path, numbers: Iterable[int]) -> dict[int, int]:
    """Return each CPU's capacity if it differs between CPUs, otherwise the highest frequency in kHz.

    While SMT is on, kernels report the same capacity for every CPU of a hybrid chip.
    """
    speeds: dict[int, int] = {}
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        values = {number: sysfs.read_integer(folder / f"cpu{number}/{name}") for number in numbers}
        speeds = {number: value for number, value in values.items() if value is not None}
        if len(speeds) == len(values) and len(set(speeds.values())) > 1:
            return speeds
    return {}
