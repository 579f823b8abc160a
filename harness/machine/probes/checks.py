"""The checks of `harness doctor`, in the order in which they are shown. A check gives findings about what was heard."""

from collections.abc import Callable, Sequence

from harness.machine.probes import (
    frequency,
    interruptions,
    load,
    memory,
    noise,
    power,
    processes,
    quota,
    sharing,
    ticks,
    timer,
)
from harness.machine.probes.finding import Finding
from harness.machine.probes.listening import Heard, hertz

Check = Callable[[Heard], list[Finding]]


def other_load(heard: Heard) -> list[Finding]:
    """What else ran: on the whole machine, and on the CPUs that are measured with their siblings."""
    before, after, place = heard.before, heard.after, heard.place
    here = {*place.cpus, *place.topology.others(place.cpus)}
    whole, near = (
        busy / hertz() / heard.seconds if busy is not None else None
        for busy in (
            ticks.busy(before.ticks, after.ticks, after.ticks.keys()) if after.ticks else None,
            ticks.busy(before.ticks, after.ticks, here),
        )
    )
    own = (after.own - before.own) / heard.seconds
    busiest = processes.busiest(before.processes, after.processes, heard.seconds, hertz())
    return load.findings(load.Use(whole, near, own), len(after.ticks), heard.load, busiest)


def cpu_quota(heard: Heard) -> list[Finding]:
    """Whether the control group's quota would stop a launch."""
    found, limit = quota.read(heard.place.root)
    return quota.findings(found, limit, len(heard.place.cpus))


CHECKS: Sequence[Check] = (
    lambda heard: noise.findings(heard.noise),
    lambda heard: interruptions.findings(heard.gaps),
    lambda heard: timer.findings(heard.timer),
    lambda heard: ticks.steal(heard.before.ticks, heard.after.ticks, heard.place.cpus, heard.place.topology.virtual),
    other_load,
    lambda heard: sharing.smt(heard.place.cpus, heard.place.allowed, heard.place.topology),
    lambda heard: frequency.governor(heard.place.root, heard.place.cpus),
    lambda heard: frequency.turbo(heard.place.root),
    lambda heard: frequency.throttling(heard.before.throttles, heard.after.throttles, heard.place.cpus),
    lambda heard: power.findings(heard.place.root),
    cpu_quota,
    lambda heard: memory.findings(heard.before.memory, heard.after.memory),
    lambda heard: sharing.virtual(heard.place.topology),
)


def findings(heard: Heard) -> list[Finding]:
    """What every check found."""
    return [finding for check in CHECKS for finding in check(heard)]
