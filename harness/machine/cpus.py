"""Chooses the CPUs to which a launch is pinned."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator

from harness.machine import topology as machine
from harness.machine.topology import Topology
from harness.model.errors import UsageError
from harness.model.texts import counted, format_cpu_list, parse_cpus


def choose(value: str, allowed: set[int], topology: Topology | None = None) -> tuple[int, ...] | None:
    """Return the CPUs for `--cpus`: a count, `all` (None: no pinning), or a list such as `0,2-3`.

    For a count, the CPUs share no physical core with each other or with other CPUs, if `topology` (default: this
    machine) allows it. `allowed` are the CPUs that this process may use. Raises UsageError if there are too few allowed
    CPUs, or if a CPU in the list isn't allowed.
    """
    if value == "all":
        return None
    if value.isdecimal():
        return _choose_count(int(value), allowed, topology)
    return _read_cpu_list(value, allowed)


def choose_most(counts: Iterable[int], pool: Collection[int]) -> tuple[int, ...]:
    """Return as many CPUs of `pool` as the largest value of the axis `cpus`. Raises UsageError if there are too few.

    Launches on fewer cores are pinned to some of these CPUs, so that all launches use the same part of the machine.
    """
    largest_count = max(counts)
    if largest_count > len(pool):
        raise UsageError(
            f"-a cpus={largest_count}: launches may use {len(pool)} CPUs ({format_cpu_list(pool)}).",
            "Use fewer cores for each launch.",
        )
    return _choose_count(largest_count, set(pool), None)


def _choose_count(count: int, allowed: set[int], topology: Topology | None) -> tuple[int, ...]:
    if not 1 <= count <= len(allowed):
        raise UsageError(
            f"--cpus {count}: this process may use {len(allowed)} CPUs ({format_cpu_list(allowed)}).",
            "Use fewer CPUs, or `--cpus all`. To select one CPU by its number: `--cpus 1,` or `--cpus 1-1`.",
        )
    topology = topology or machine.read()
    pool = _list_candidates(count, allowed, topology)
    places = {_find_place(cpu, topology) for cpu in pool}
    parts = [{cpu for cpu in pool if _find_place(cpu, topology) == place} for place in places]
    choices = [_choose_spread_cpus(count, part, allowed, topology) for part in [*parts, pool]]
    return max(choices, key=lambda chosen: _rank_choice(chosen, allowed, topology))


def _list_candidates(count: int, allowed: Collection[int], topology: Topology) -> set[int]:
    """Return the candidates: the CPUs of the fastest kind that has enough CPUs.

    One CPU is chosen from the isolated CPUs if possible. Several CPUs are chosen from the other CPUs if possible,
    because the scheduler doesn't move threads between isolated CPUs: all threads of a launch would stay on one CPU.
    """
    isolated = {cpu for cpu in allowed if topology.cpu(cpu).isolated}
    preferred = isolated if count == 1 and isolated else set(allowed) - isolated
    pool = preferred if len(preferred) >= count else set(allowed)
    return next((set(kind) for kind in topology.kinds(pool) if len(kind) >= count), pool)


def _choose_spread_cpus(
    count: int, cpus: Iterable[int], allowed: Collection[int], topology: Topology
) -> tuple[int, ...]:
    """Return one CPU per physical core, the best cores first. If there are too few cores, add siblings."""
    cores = topology.group_by_core(cpus)
    # interrupts and other processes prefer the lowest numbers, and CPU 0 most of all
    ranked = sorted(cores, key=lambda core: (core <= set(allowed), 0 not in core, cores[core][-1]), reverse=True)
    best_of_cores = [cores[core][-1] for core in ranked]
    siblings = [cpu for core in ranked for cpu in reversed(cores[core][:-1])]
    return tuple(sorted([*best_of_cores, *siblings][:count]))


def _rank_choice(chosen: tuple[int, ...], allowed: Collection[int], topology: Topology) -> tuple[object, ...]:
    """Return a sort key for choices, with the most important criterion first."""
    cores = {topology.cpu(cpu).siblings for cpu in chosen}
    return (
        len(chosen),
        len(cores),
        sum(core <= set(allowed) for core in cores),
        len({_find_place(cpu, topology) for cpu in chosen}) == 1,
        not any(0 in core for core in cores),
        chosen,
    )


def _find_place(cpu: int, topology: Topology) -> tuple[int, int]:
    details = topology.cpu(cpu)
    return details.package, -1 if details.node is None else details.node


def _read_cpu_list(value: str, allowed: set[int]) -> tuple[int, ...]:
    try:
        cpus = parse_cpus(value)
    except ValueError as error:
        advice = "Use a count, `all`, or a list of CPUs such as `0,2-3`."
        raise UsageError(f"--cpus {value}: {error}.", advice) from None
    missing = cpus - allowed
    if missing or not cpus:
        refused = format_cpu_list(missing) or "none"
        raise UsageError(f"--cpus {value}: this process may use the CPUs {format_cpu_list(allowed)}, not {refused}.")
    return tuple(sorted(cpus))


def choose_starting_cpus(
    cpus: tuple[int, ...] | None, allowed: Collection[int], topology: Topology | None = None
) -> tuple[int, ...]:
    """Return the CPUs on which launches can start at the same time, one on each, before they are measured on `cpus`.

    The first CPU is the measured one. `allowed` are the CPUs that this process may use. Moving a launch from one of the
    other CPUs to the measured CPU doesn't change the launch's speed:

    - They have the same kind and last-level cache, because libraries choose code and block sizes at their start.
    - They have the same NUMA node, because memory stays in the node of the CPU that first wrote to it.
    - They share no physical core with each other or with the measured CPU.

    If launches are measured on several CPUs, the result is empty: each launch must see all these CPUs when it starts,
    because libraries size their thread pools then.
    """
    if cpus is None or len(cpus) != 1:
        return ()
    topology = topology or machine.read()
    measured = topology.cpu(cpus[0])
    kind = next(kind for kind in topology.kinds({*allowed, *cpus}) if measured.number in kind)
    candidates = [topology.cpu(number) for number in sorted(kind & set(allowed) - measured.siblings)]
    cores = {
        candidate.siblings: candidate.number  # the last CPU of each core
        for candidate in candidates
        if _find_place(candidate.number, topology) == _find_place(measured.number, topology)
        and candidate.cache == measured.cache
    }
    # the highest numbers first, because interrupts prefer the lowest ones
    return (measured.number, *sorted(cores.values(), reverse=True))


def describe(cpus: tuple[int, ...] | None, topology: Topology, allowed: Collection[int]) -> str:
    """Describe the CPUs of launches: `CPU 7, alone on its physical core`. Without pinning, the text is empty."""
    if not cpus:
        return ""
    is_single = len(cpus) == 1
    name = _format_numbers(cpus)
    if not topology.known:
        return name
    # a core of a virtual machine may be half of a physical core
    core = "virtual core" if topology.virtual else "physical core"
    idle_siblings = find_idle_siblings(cpus, topology, allowed)
    shared_siblings = find_shared_siblings(cpus, topology, allowed)
    note = f" (harness leaves {_format_numbers(idle_siblings)} to other work)" if idle_siblings else ""
    if shared_siblings:
        sharing = f"whose {core} it shares" if is_single else f"whose {core}s they share"
        return f"{name}, {sharing} with {_format_numbers(shared_siblings)}{note}"
    cores = len({topology.cpu(cpu).siblings for cpu in cpus})
    if cores < len(cpus):
        return f"{name}, on {counted(cores, core)}{note}"
    return f"{name}, {'' if is_single else 'each '}alone on its {core}{note}"


def find_idle_siblings(cpus: Collection[int], topology: Topology, allowed: Collection[int]) -> set[int]:
    """Return the allowed siblings of `cpus`, which harness avoids; empty if harness would have no other CPU."""
    siblings = topology.others(cpus) & set(allowed)
    return set(siblings) if set(allowed) - set(cpus) - siblings else set()


def find_shared_siblings(cpus: Collection[int], topology: Topology, allowed: Collection[int]) -> set[int]:
    """Return the siblings of `cpus` that other processes may use, or that harness itself must use."""
    return set(topology.others(cpus)) - find_idle_siblings(cpus, topology, allowed)


def _format_numbers(cpus: Collection[int]) -> str:
    """Format CPU numbers: `CPU 7`, or `CPUs 0, 2-3`."""
    return f"CPU{'' if len(cpus) == 1 else 's'} {format_cpu_list(cpus)}"


def can_pin() -> bool:
    """Return whether this process may choose its CPUs. Some sandboxes forbid that."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError:
        return False
    return True


def keep_process_off(
    cpus: tuple[int, ...] | None, topology: Topology | None = None
) -> contextlib.AbstractContextManager[None]:
    """Keep this process off the launches' CPUs, and off their siblings if other CPUs remain."""
    allowed = os.sched_getaffinity(0)
    chosen = set(cpus or ())
    siblings = (topology or machine.read()).others(chosen) if chosen else set()
    return run_on_cpus(allowed - chosen - siblings or allowed - chosen if chosen else allowed)


@contextlib.contextmanager
def run_on_cpus(cpus: Collection[int]) -> Iterator[None]:
    """Keep this process and its children on these CPUs during the block. Without CPUs, nothing changes."""
    previous_cpus = os.sched_getaffinity(0)
    if not cpus or set(cpus) == previous_cpus:
        yield  # some sandboxes forbid even a change that changes nothing
        return
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, previous_cpus)
