"""Checks of the system: other processes' use of the CPUs, and settings that affect CPU speed.

The battery is read here, because psutil mistakes a wireless mouse's battery for the machine's.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.machine import sysfs
from harness.machine.cpus import describe, find_idle_siblings, find_shared_siblings
from harness.machine.doctor.check import (
    NOT_SHOWN,
    CheckResult,
    Level,
    format_gibibytes,
    format_number,
    grade,
    make_result,
)
from harness.machine.doctor.counters import CPUS, Period
from harness.machine.quota import read_quota
from harness.model.texts import counted, format_plain

if TYPE_CHECKING:
    import psutil

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

#: With less than this share of the memory available, the next launch may make the machine swap.
SHORT = 0.1


def check_steal(period: Period) -> CheckResult:
    """Check the share of CPU time that the hypervisor gave to other machines.

    If the hypervisor has reported none since the machine started, it may not report steal time at all.
    """
    used_ticks = period.ticks(period.place.cpus)
    if used_ticks is None or used_ticks.total <= 0:
        return make_result("steal", Level.UNKNOWN, None, {"percent": None, "reported": None})
    percent = 100 * used_ticks.stolen / used_ticks.total
    level = Level.UNKNOWN
    value = "none, and none since the machine started, but this hypervisor may not report steal time"
    reported = any(ticks.stolen for ticks in period.after.ticks.values()) or period.place.topology.virtual is False
    if reported:
        level = grade(percent, STEAL_WARN_PERCENT, STEAL_BAD_PERCENT)
        value = f"{format_number(percent)} % of the time went to other virtual machines on the host"
    return make_result(
        "steal",
        level,
        value,
        {"percent": percent, "reported": reported},
        advice="Other virtual machines use this CPU. Measure at another time, or rent a machine with dedicated CPUs "
        "(a dedicated host or bare metal).",
    )


def compute_shares(period: Period) -> dict["psutil.Process", float]:
    """Return the CPU use of other processes, in percent of one CPU. Processes that have ended are missing."""
    before, after = period.before.processes, period.after.processes
    return {
        process: 100 * (use.seconds - (before[process].seconds if process in before else 0.0)) / period.seconds
        for process, use in after.items()
        if process.pid != os.getpid()
    }


def find_busiest(period: Period) -> list[dict[str, Any]]:
    """Return the busiest other processes: number, name, percent of one CPU."""
    shares = compute_shares(period)
    busiest = sorted(shares, key=lambda process: (-shares[process], process.pid))[:NAMED]
    return [
        {"pid": process.pid, "name": period.after.processes[process].name, "percent": shares[process]}
        for process in busiest
        if shares[process] >= FEWEST_PERCENT
    ]


def _count_cpus_used_by_others(period: Period, cpus: Collection[int]) -> float | None:
    """Return how many of these CPUs other processes kept busy, or None if one CPU can't be read."""
    ticks = period.ticks(cpus)
    if ticks is None:
        return None
    own_seconds = period.after.own - period.before.own
    return max(0.0, (ticks.busy / os.sysconf("SC_CLK_TCK") - own_seconds) / period.seconds)


def check_other_load(period: Period) -> CheckResult:
    """Check other processes' use of the whole machine, and of the measured CPUs and their siblings."""
    place, count, busiest = period.place, len(period.after.ticks), find_busiest(period)
    used_cpus = _count_cpus_used_by_others(period, period.after.ticks.keys())
    used_here = _count_cpus_used_by_others(period, {*place.cpus, *place.topology.others(place.cpus)})
    level = Level.GOOD
    if used_cpus is None or used_here is None:
        level = Level.UNKNOWN
    elif used_here >= HERE_BAD or used_cpus >= MACHINE_BAD * count:
        level = Level.BAD
    elif used_here >= HERE_WARN or used_cpus >= MACHINE_WARN:
        level = Level.WARN
    # the sum misses processes that have ended, and processes in other containers
    visible_cpus = sum(compute_shares(period).values()) / 100
    is_mostly_unseen = used_cpus is not None and used_cpus >= MACHINE_WARN and visible_cpus < used_cpus / 2
    description = NOT_SHOWN if used_cpus is None else f"other processes use {used_cpus:.2f} of {count} CPUs"
    if used_cpus is not None and used_here is not None:
        description += f", including {used_here:.2f} where launches run"
    parts = [
        description,
        "" if period.load is None else f"load average before: {period.load:.2f}",
        ", ".join(f"{process['name']} (process {process['pid']}) {process['percent']:.0f} %" for process in busiest),
        "mostly by processes that have ended or aren't visible" if is_mostly_unseen else "",
    ]
    facts = {
        "others": used_cpus,
        "here": used_here,
        "cpus": count,
        "average": period.load,
        "busiest": busiest,
        "mostly_unseen": is_mostly_unseen,
    }
    return make_result(
        "other load",
        level,
        "; ".join(filter(None, parts)),
        facts,
        advice=f"End {'the processes that are named here' if busiest else 'other processes'}, or wait until they end. "
        "Processes in containers and of other users count, too.",
        command="top -o %CPU",
    )


def check_smt(period: Period) -> CheckResult:
    """Check whether the measured CPUs have their own physical cores. In a virtual machine, this is unknown."""
    place = period.place
    cpus, topology = tuple(sorted(place.cpus)), place.topology
    cores = len({topology.cpu(cpu).siblings for cpu in cpus})
    shared_siblings = sorted(find_shared_siblings(cpus, topology, place.allowed))
    level = Level.GOOD if topology.known and topology.virtual is False else Level.UNKNOWN
    if topology.known and (shared_siblings or cores < len(cpus)):
        level = Level.WARN
    cpu_description = describe(cpus, topology, place.allowed)
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
    return make_result(
        "SMT",
        level,
        cpu_description + note,
        {
            "where": cpu_description,
            "known": topology.known,
            "virtual": topology.virtual,
            "shared_with": shared_siblings,
            "kept_idle": sorted(find_idle_siblings(cpus, topology, place.allowed)),
            "cores": cores,
            "cpus": len(cpus),
        },
        advice=advice,
        # in a virtual machine, only the host can change this
        command="" if topology.virtual else "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    )


def check_governor(period: Period) -> CheckResult:
    """Check the frequency governor of the CPUs, which a virtual machine can't see."""
    folders = [period.place.root / CPUS / f"cpu{cpu}/cpufreq" for cpu in period.place.cpus]
    names = {sysfs.read_text(folder / "scaling_governor") for folder in folders}
    name = None if None in names else _join_names(names)
    driver = _join_names(sysfs.read_text(folder / "scaling_driver") for folder in folders)
    return make_result(
        "governor",
        Level.GOOD if name == "performance" else Level.WARN,
        f"{name} (driver {driver})" if name and driver else name,
        {"governor": name, "driver": driver},
        advice="The frequency follows the load, so launches start slowly. Keep the frequency high while you measure.",
        command="sudo cpupower frequency-set -g performance",
    )


def _join_names(names: Iterable[str | None]) -> str | None:
    return ", ".join(sorted({name for name in names if name})) or None


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
                {"on": is_on, "switch": switch},
                advice="The frequency depends on heat and on how many cores are busy. To measure small differences, "
                "turn turbo off.",
                command=f"echo {1 - value_on} | sudo tee /{CPUS}/{switch}",
            )
    return make_result("turbo", Level.UNKNOWN, None, {"on": None, "switch": ""})


def check_throttling(period: Period) -> CheckResult:
    """Check whether heat slowed down one of the CPUs during the check."""
    cpus, before, after = period.place.cpus, period.before.throttles, period.after.throttles
    if not cpus or not set(cpus) <= before.keys() & after.keys():
        return make_result("throttling", Level.UNKNOWN, None, {"times": None, "since_start": None})
    times, since_start = sum(after[cpu] - before[cpu] for cpu in cpus), sum(after[cpu] for cpu in cpus)
    return make_result(
        "throttling",
        Level.BAD if times else Level.GOOD,
        f"{times} times during the check, {since_start} since the machine started",
        {"times": times, "since_start": since_start},
        advice="The CPU gets too hot and reduces its speed. Improve the cooling, end other processes, or turn turbo "
        "off.",
    )


def check_power(period: Period) -> CheckResult:
    """Check whether the machine runs on battery. A machine without visible power supplies has no battery."""
    source = _read_power_source(period.place.root / "sys/class/power_supply")
    return make_result(
        "power",
        Level.WARN if source == "battery" else Level.GOOD,
        {"battery": "on battery", "mains": "not on battery", None: None}[source],
        {"source": source},
        advice="Connect the machine to mains power. On battery, it saves power and becomes slower.",
    )


def _read_power_source(folder: Path) -> Literal["mains", "battery"] | None:
    """Return the power source, or None if the kernel doesn't report it."""
    if not folder.is_dir():
        return None
    # leave out batteries of devices such as a mouse, which have this scope
    supplies = [path for path in folder.iterdir() if sysfs.read_text(path / "scope") != "Device"]
    batteries = [path for path in supplies if sysfs.read_text(path / "type") == "Battery"]
    states = {sysfs.read_text(path / "status") for path in batteries}
    if "Discharging" in states:
        return "battery"
    is_plugged = any(sysfs.read_integer(path / "online") == 1 for path in supplies if path not in batteries)
    return "mains" if is_plugged or not batteries or states & {"Charging", "Full", "Not charging"} else None


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
        {"quota": quota, "found": is_found, "cpus": cpus},
        advice="When a launch has used up the quota of a period, the kernel pauses it until the next period. Give "
        "this container or service more CPUs than a launch gets, or no quota (docker run without --cpus).",
    )


def check_memory(period: Period) -> CheckResult:
    """Check whether the machine swapped during the check, or is likely to swap soon."""
    before, after = period.before.memory, period.after.memory
    if before is None or after is None:
        return make_result("memory", Level.UNKNOWN, None, {"total": None})
    pages = None
    if before.swapped_pages is not None and after.swapped_pages is not None:
        pages = after.swapped_pages - before.swapped_pages
    is_short = after.available < SHORT * after.total
    if pages or is_short:
        level = Level.BAD if pages and is_short else Level.WARN
    else:
        level = Level.UNKNOWN if pages is None and after.swap_total else Level.GOOD
    value = f"{format_gibibytes(after.available)} of {format_gibibytes(after.total)} available"
    swap_text = f"; {pages} pages swapped during the check" if pages else ""
    return make_result(
        "memory",
        level,
        f"{value}, {format_gibibytes(after.swap_used)} swapped out{swap_text}",
        {
            "total": after.total,
            "available": after.available,
            "swap_used": after.swap_used,
            "swapped_pages": pages,
            "short": is_short,
        },
        advice="The machine swaps memory to its disk, or will do so soon, which makes measurements useless. End the "
        "processes that use the memory, or choose smaller models.",
        command="ps aux --sort=-rss | head",
    )


def check_virtual_machine(period: Period) -> CheckResult:
    """Check whether other machines may run on the same host."""
    virtual = period.place.topology.virtual
    return make_result(
        "virtual machine",
        Level.WARN if virtual else Level.GOOD,
        {True: "yes", False: "no", None: None}[virtual],
        {"virtual": virtual},
        advice="Other work on the host is invisible to harness. To measure differences of a few percent, use a "
        "machine without a hypervisor (bare metal), or repeat the run at another time of day.",
    )


#: All checks of the system, in the order of the output.
CHECKS: Sequence[Callable[[Period], CheckResult]] = (
    check_steal,
    check_other_load,
    check_smt,
    check_governor,
    check_turbo,
    check_throttling,
    check_power,
    check_cpu_quota,
    check_memory,
    check_virtual_machine,
)
