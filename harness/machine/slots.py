"""Worker slots: parts of a machine that can measure at the same time. Each slot has separate CPUs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.machine import sysfs, topology
from harness.machine.topology import Topology
from harness.model.errors import UsageError
from harness.model.gpu import Gpu
from harness.model.texts import format_cpu_list


@dataclass(frozen=True, slots=True)
class Slot:
    """A part of the machine: whole cores, and the index of a GPU (empty for a CPU slot)."""

    cpus: tuple[int, ...]
    gpu: str = ""

    @property
    def names(self) -> list[str]:
        """Names of its CPUs and its GPU. Each name has a lock (machine/lock.py)."""
        return [*(f"cpu{number}" for number in self.cpus), *([f"gpu{self.gpu}"] if self.gpu else [])]

    def __str__(self) -> str:
        cpus = f"CPU{'' if len(self.cpus) == 1 else 's'} {format_cpu_list(self.cpus)}"
        return f"GPU {self.gpu} with {cpus}" if self.gpu else cpus


def divide_machine(
    count: int | None, allowed: Iterable[int], gpus: Sequence[Gpu] = (), *, known: Topology | None = None
) -> list[Slot]:
    """Divide the machine into `count` slots. Default: one per GPU in `gpus`, or per last-level cache or NUMA node.

    The CPUs of one core are never in two slots. `allowed` are the CPUs that this process may use, and `known` is the
    topology (default: this machine's). If several GPUs are near the same cores, the cores are divided evenly among the
    GPUs. Raises UsageError if there are fewer cores or GPUs than slots.
    """
    machine = known or topology.read()
    cores = list(machine.group_by_core(allowed).values())
    if gpus:
        return _divide_by_gpus(count, cores, gpus)
    domains: dict[frozenset[int], list[list[int]]] = {}
    for core in cores:
        cpu = machine.cpu(core[0])
        shared_cpus = cpu.cache or frozenset(other.number for other in machine.cpus.values() if other.node == cpu.node)
        domains.setdefault(shared_cpus, []).append(core)
    # among parts of the same size, the part with CPU 0 is last, because interrupts run on this CPU
    parts = sorted(domains.values(), key=lambda part: (-len(part), 0 in part[0]))
    total = count or len(parts)
    if total > len(cores):
        raise _make_too_many_error(
            total, f"{len(cores)} physical cores (CPUs {format_cpu_list(allowed)}) that this process may use"
        )
    while len(parts) < total:
        largest = max(parts, key=len)
        index = parts.index(largest)
        parts[index : index + 1] = [largest[: len(largest) // 2], largest[len(largest) // 2 :]]
    return [_make_slot(part) for part in parts[:total]]


def _divide_by_gpus(count: int | None, cores: Sequence[list[int]], gpus: Sequence[Gpu]) -> list[Slot]:
    total = count or len(gpus)
    if total > len(gpus):
        raise _make_too_many_error(total, f"{len(gpus)} GPUs for slots")
    chosen = gpus[:total]
    if total > len(cores):
        raise _make_too_many_error(total, f"{len(cores)} physical cores that this process may use")
    # a GPU whose near cores are unknown may use all cores
    all_cpus = frozenset(cpu for core in cores for cpu in core)
    by_place: dict[frozenset[int], list[Gpu]] = {}
    for gpu in chosen:
        by_place.setdefault((_find_near_cpus(gpu) & all_cpus) or all_cpus, []).append(gpu)
    free_cores = list(cores)
    slots: dict[int, Slot] = {}
    for local_cpus, local_gpus in sorted(by_place.items(), key=lambda entry: len(entry[0])):
        slot_cores = [core for core in free_cores if local_cpus.issuperset(core)]
        later_gpus = total - len(slots) - len(local_gpus)
        slot_cores = slot_cores[: max(len(local_gpus), len(free_cores) - later_gpus)]
        if len(slot_cores) < len(local_gpus):
            slot_cores = free_cores[: len(local_gpus)]
        free_cores = [core for core in free_cores if core not in slot_cores]
        for index, gpu in enumerate(local_gpus):
            slots[gpu.index] = _make_slot(slot_cores[index :: len(local_gpus)], str(gpu.index))
    return [slots[gpu.index] for gpu in chosen]


def _find_near_cpus(gpu: Gpu) -> frozenset[int]:
    """Return the CPUs that the kernel reports as local to a GPU's bus, or an empty set."""
    return sysfs.read_cpu_list(Path("/sys/bus/pci/devices") / gpu.pci / "local_cpulist") or frozenset()


def _make_slot(cores: Iterable[list[int]], gpu: str = "") -> Slot:
    return Slot(tuple(sorted(cpu for core in cores for cpu in core)), gpu)


def _make_too_many_error(count: int, available: str) -> UsageError:
    return UsageError(f"--slots {count}: this machine has {available}.", "Use fewer slots.")
