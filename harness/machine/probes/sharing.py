"""What shares the machine by design: threads on a core, machines on a host."""

from collections.abc import Collection

from harness.machine.cpus import describe, idle, shared_with
from harness.machine.probes.finding import Finding, Level
from harness.machine.topology import Topology


def smt(cpus: Collection[int], allowed: Collection[int], topology: Topology) -> list[Finding]:
    """Whether the measured CPUs have their physical cores to themselves. Nothing in a virtual machine can tell."""
    chosen = tuple(sorted(cpus))
    cores = len({topology.cpu(cpu).siblings for cpu in chosen})
    shared = sorted(shared_with(chosen, topology, allowed))
    facts = {
        "where": describe(chosen, topology, allowed),
        "known": topology.known,
        "virtual": topology.virtual,
        "shared_with": shared,
        "kept_idle": sorted(idle(chosen, topology, allowed)),
        "cores": cores,
        "cpus": len(chosen),
    }
    return [Finding("SMT", _level(topology, shared=bool(shared) or cores < len(chosen)), facts)]


def _level(topology: Topology, *, shared: bool) -> Level:
    if topology.known and shared:
        return Level.WARN
    return Level.GOOD if topology.known and topology.virtual is False else Level.UNKNOWN


def virtual(topology: Topology) -> list[Finding]:
    """Whether other machines may run on the same host."""
    levels = {True: Level.WARN, False: Level.GOOD, None: Level.UNKNOWN}
    return [Finding("virtual machine", levels[topology.virtual], {"virtual": topology.virtual})]
