"""Checks of the system: other processes' use of the CPUs, and settings that affect CPU speed."""

import os
from collections.abc import Callable, Collection, Sequence

from harness.machine import sysfs
from harness.machine.cpus import describe, find_shared_siblings
from harness.machine.doctor.check import NOT_SHOWN, CheckResult, Level, grade, make_result
from harness.machine.doctor.counters import Period
from harness.machine.quota import read_quota
from harness.model.texts import counted, format_plain

#: Sysfs CPU directory, relative to the filesystem root.
CPUS = "sys/devices/system/cpu"

#: Percentages of steal time. One tick in 20 s is 0.05 %, so a lower value can't be distinguished from 0.
STEAL_WARN_PERCENT, STEAL_BAD_PERCENT = 0.2, 1.0

#: Other processes' use of the measured CPUs, in CPUs. Ticks are too coarse for values below 0.02.
HERE_WARN, HERE_BAD = 0.02, 0.05
#: Other processes' use of the whole machine, in CPUs. From 0.1 on, it affects shared caches and the frequency.
MACHINE_WARN = 0.1
#: Other processes' share of all CPUs from which no measurement is reliable.
MACHINE_BAD = 0.5
#: The largest number of listed processes, and the lowest CPU use of a listed process in percent of one CPU.
NAMED, FEWEST_PERCENT = 3, 1.0


def check_steal(period: Period) -> CheckResult:
    """Check the share of CPU time that the hypervisor gave to other machines.

    If the hypervisor has reported none since the machine started, it may not report steal time at all.
    """
    used_ticks = period.ticks(period.place.cpus)
    if used_ticks is None or used_ticks.total <= 0:
        return make_result("steal", Level.UNKNOWN, None)
    percent = 100 * used_ticks.stolen / used_ticks.total
    level = Level.UNKNOWN
    value = "none, and none since the machine started, but this hypervisor may not report steal time"
    if any(ticks.stolen for ticks in period.after.ticks.values()) or period.place.topology.virtual is False:
        level = grade(percent, STEAL_WARN_PERCENT, STEAL_BAD_PERCENT)
        value = f"{format_plain(percent, 2)} % of the time went to other virtual machines on the host"
    return make_result(
        "steal",
        level,
        value,
        "Other virtual machines use this CPU. Measure at another time, or rent a machine with dedicated CPUs "
        "(a dedicated host or bare metal).",
    )


def check_other_load(period: Period) -> CheckResult:
    """Check other processes' use of the whole machine, and of the measured CPUs and their siblings."""
    place, count = period.place, len(period.after.ticks)
    used_cpus = _count_cpus_used_by_others(period, period.after.ticks.keys())
    used_here = _count_cpus_used_by_others(period, {*place.cpus, *place.topology.others(place.cpus)})
    if used_cpus is None or used_here is None:
        return make_result("other load", Level.UNKNOWN, None)
    level = Level.GOOD
    if used_here >= HERE_BAD or used_cpus >= MACHINE_BAD * count:
        level = Level.BAD
    elif used_here >= HERE_WARN or used_cpus >= MACHINE_WARN:
        level = Level.WARN
    busiest = _list_busiest(period)
    value = f"other processes use {used_cpus:.2f} of {count} CPUs, including {used_here:.2f} where launches run"
    return make_result(
        "other load",
        level,
        f"{value}: {', '.join(busiest)}" if busiest else value,
        f"End {'the processes that are named here' if busiest else 'other processes'}, or wait until they end. "
        "Processes in containers and of other users count, too.",
        "top -o %CPU",
    )


def _count_cpus_used_by_others(period: Period, cpus: Collection[int]) -> float | None:
    """Return how many of these CPUs other processes kept busy, or None if one CPU can't be read."""
    ticks = period.ticks(cpus)
    if ticks is None:
        return None
    own_seconds = period.after.own - period.before.own
    return max(0.0, (ticks.busy / os.sysconf("SC_CLK_TCK") - own_seconds) / period.seconds)


def _list_busiest(period: Period) -> list[str]:
    """Return the busiest other processes with their percentage of one CPU, without processes that have ended."""
    before = period.before.processes
    shares = [
        (100 * (use.seconds - (before[process].seconds if process in before else 0.0)) / period.seconds, process, use)
        for process, use in period.after.processes.items()
        if process.pid != os.getpid()
    ]
    busiest = sorted(shares, key=lambda entry: (-entry[0], entry[1].pid))[:NAMED]
    return [
        f"{use.name} (process {process.pid}) {percent:.0f} %"
        for percent, process, use in busiest
        if percent >= FEWEST_PERCENT
    ]


def check_smt(period: Period) -> CheckResult:
    """Check whether the measured CPUs have their own physical cores. In a virtual machine, this is unknown."""
    place = period.place
    cpus, topology = tuple(sorted(place.cpus)), place.topology
    cores = len({topology.cpu(cpu).siblings for cpu in cpus})
    shared_siblings = find_shared_siblings(cpus, topology, place.allowed)
    level = Level.GOOD if topology.known and topology.virtual is False else Level.UNKNOWN
    if topology.known and (shared_siblings or cores < len(cpus)):
        level = Level.WARN
    note = "; the hypervisor may put two of its CPUs on one physical core" if topology.virtual else ""
    if not topology.known:
        note = f"; which CPUs share a core: {NOT_SHOWN}"
    elif topology.virtual is None:
        note = f"; whether this is a virtual machine: {NOT_SHOWN}"
    advice = (
        "Work on the other CPU of a core slows the measured CPU down. Let this process use whole cores, or turn SMT "
        "off."
    )
    if not shared_siblings:
        advice = f"Some of these CPUs share a core. Use {counted(cores, 'CPU')} at most, or turn SMT off."
    # in a virtual machine, only the host can change this
    command = "" if topology.virtual else f"echo off | sudo tee /{CPUS}/smt/control"
    return make_result("SMT", level, describe(cpus, topology, place.allowed) + note, advice, command)


def check_governor(period: Period) -> CheckResult:
    """Check the frequency governor of the CPUs, which a virtual machine can't see."""
    folders = [period.place.root / CPUS / f"cpu{cpu}/cpufreq" for cpu in period.place.cpus]
    names = {sysfs.read_text(folder / "scaling_governor") for folder in folders}
    return make_result(
        "governor",
        Level.GOOD if names == {"performance"} else Level.WARN,
        None if None in names else ", ".join(sorted(filter(None, names))),
        "The frequency follows the load, so launches start slowly. Keep the frequency high while you measure.",
        "sudo cpupower frequency-set -g performance",
    )


def check_turbo(period: Period) -> CheckResult:
    """Check whether the CPU may exceed its rated frequency while it is cool."""
    # Intel's driver has a file that is 1 if turbo is off; other drivers have one that is 1 if it is on
    for switch, value_on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        value = sysfs.read_integer(period.place.root / CPUS / switch)
        if value is not None:
            is_on = value == value_on
            return make_result(
                "turbo",
                Level.WARN if is_on else Level.GOOD,
                "on" if is_on else "off",
                "The frequency depends on heat and on how many cores are busy. To measure small differences, "
                "turn turbo off.",
                f"echo {1 - value_on} | sudo tee /{CPUS}/{switch}",
            )
    return make_result("turbo", Level.UNKNOWN, None)


def check_cpu_quota(period: Period) -> CheckResult:
    """Check whether the CPU quota of this process's control group would pause launches. Local launches share the group.

    The work of harness itself counts too. So if the quota is equal to the number of measured CPUs, launches are
    sometimes paused.
    """
    is_found, quota = read_quota(period.place.root)
    cpus = len(period.place.cpus)
    level, value = Level.GOOD, "none" if is_found else None
    if quota is not None:
        level = Level.GOOD if quota > cpus else Level.BAD if quota < cpus else Level.WARN
        value = f"this process and its child processes may use {format_plain(quota, 3)} CPUs; a launch gets {cpus}"
    return make_result(
        "CPU quota",
        level,
        value,
        "When a launch has used up the quota of a period, the kernel pauses it until the next period. Give "
        "this container or service more CPUs than a launch gets, or no quota (docker run without --cpus).",
    )


def check_virtual_machine(period: Period) -> CheckResult:
    """Check whether other machines may run on the same host."""
    virtual = period.place.topology.virtual
    return make_result(
        "virtual machine",
        Level.WARN if virtual else Level.GOOD,
        {True: "yes", False: "no", None: None}[virtual],
        "Other work on the host is invisible to harness. To measure differences of a few percent, use a "
        "machine without a hypervisor (bare metal), or repeat the run at another time of day.",
    )


#: All checks of the system, in the order of the output.
CHECKS: Sequence[Callable[[Period], CheckResult]] = (
    check_steal,
    check_other_load,
    check_smt,
    check_governor,
    check_turbo,
    check_cpu_quota,
    check_virtual_machine,
)
