"""What else uses the CPUs and what decides their speed: levels, sentences and facts, on systems made of files."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.machine.doctor import system
from harness.machine.doctor.counters import CPUS, Counters, CpuPlace, CpuUse, Memory, Period, Ticks
from harness.machine.quota import read_quota
from harness.machine.topology import Topology
from tests.machine.conftest import Tree, cores

#: Ticks of one CPU in the seconds that each period lasts.
SECONDS = 10.0
ALL = round(SECONDS * os.sysconf("SC_CLK_TCK"))

PLENTY = Memory(total=8 * 2**30, available=4 * 2**30, swap_total=2**30, swap_used=0, swapped_pages=7)


def period(
    cpus: tuple[int, ...] = (0,),
    topology: Topology | None = None,
    root: Path = Path("/nowhere"),
    *,
    allowed: tuple[int, ...] = (),
    own: float = 0.0,
    load: float | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Period:
    """Ten seconds on some CPUs; `before` and `after` are the counters that are not empty."""
    place = CpuPlace(cpus, frozenset(allowed or cpus), topology or cores((0,)), root)
    start = Counters(0.0, 0.0, {}, {}, {}, None)
    return Period(place, replace(start, **before or {}), replace(start, seconds=SECONDS, own=own, **after or {}), load)


@pytest.mark.parametrize(
    ("percent", "virtual", "level", "value"),
    [
        (0, False, "good", "0 % of the time went"),
        (0, None, "unknown", "none, and none since the machine started"),
        (0, True, "unknown", "none, and none since the machine started"),
        (0.1, True, "good", "0.1 % of the time went"),
        (0.5, True, "warn", "0.5 % of the time went to other virtual machines"),
        (0.9, False, "warn", "0.9 % of the time went"),
        (2, True, "bad", "2 % of the time went"),
    ],
)
def test_steal_is_unknown_where_it_was_never_reported(
    percent: float, virtual: bool | None, level: str, value: str
) -> None:
    taken = Ticks(1000, 0, round(10 * percent))
    check = system.check_steal(
        period(
            topology=cores((0,), virtual=virtual), before={"ticks": {0: Ticks(0, 0, 0)}}, after={"ticks": {0: taken}}
        )
    )
    assert check.level == level
    assert check.value.startswith(value)
    assert check.facts["percent"] == percent
    assert ("rent a machine" in check.advice) == (level in ("warn", "bad"))


def test_steal_that_cannot_be_read_is_unknown() -> None:
    same = {"ticks": {0: Ticks(1000, 0, 0)}}
    for found in (period(), period(before=same, after=same), period((), before=same, after=same)):
        assert system.check_steal(found).level == "unknown"


def loaded(machine_cpus: float | None, here: float | None, *, named: Mapping[str, float] | None = None) -> Period:
    """Four CPUs of which other processes use so many, and so much of CPU 0; this process used one CPU's time."""
    start = {n: Ticks(0, 0, 0) for n in range(4)}
    ticks = {} if machine_cpus is None else dict(start)
    if machine_cpus is not None:
        ticks[1] = Ticks(ALL, round((machine_cpus - (here or 0.0)) * ALL), 0)
        ticks[0] = Ticks(ALL, round((1.0 + (here or 0.0)) * ALL), 0)
    used = {psutil.Process(1): CpuUse(name, share * SECONDS) for name, share in (named or {}).items()}
    return period(
        (0,) if here is not None else (9,),
        own=SECONDS,
        load=1.25,
        before={"ticks": start},
        after={"ticks": ticks, "processes": used},
    )


@pytest.mark.parametrize(
    ("others", "here", "level"),
    [
        (0.0, 0.0, "good"),
        (-0.1, -0.1, "good"),
        (0.05, 0.03, "warn"),
        (0.2, 0.0, "warn"),
        (0.06, 0.06, "bad"),
        (2.1, 0.0, "bad"),
        (None, None, "unknown"),
        (0.0, None, "unknown"),
    ],
)
def test_other_load_weighs_more_where_launches_run(others: float | None, here: float | None, level: str) -> None:
    check = system.check_other_load(loaded(others, here))
    assert check.level == level
    assert check.facts["others"] is None or check.facts["others"] == pytest.approx(max(0.0, others or 0.0), abs=0.01)
    assert "load average before: 1.25" in check.value
    assert "None" not in check.value
    assert (check.advice, check.command) == (
        (
            "End other processes, or wait until they end. Processes in containers and of other users count, too.",
            "top -o %CPU",
        )
        if level in ("warn", "bad")
        else ("", "")
    )


def test_other_load_names_who_used_most() -> None:
    check = system.check_other_load(loaded(1.0, 0.5, named={"`x`": 0.996}))
    assert check.value == (
        "other processes use 1.00 of 4 CPUs, including 0.50 where launches run; load average before: 1.25; "
        "`x` (process 1) 100 %"
    )
    assert check.advice.startswith("End the processes that are named here")


@pytest.mark.parametrize(("others", "unseen"), [(0.05, False), (0.9, False), (1.1, True), (None, False)])
def test_load_that_no_process_explains_is_said_to_be_unseen(others: float | None, unseen: bool) -> None:
    check = system.check_other_load(loaded(others, None if others is None else 0.0, named={"a": 0.5}))
    assert check.facts["mostly_unseen"] is unseen
    assert ("aren't visible" in check.value) is unseen


class Other:
    """A process that is not this one, by number and start: a number may be given again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid


def test_the_busiest_are_those_that_used_most_meanwhile() -> None:
    old, idle, again, mid, fourth, us = (Other(pid) for pid in (1, 2, 2, 3, 4, os.getpid()))
    before = {old: CpuUse("old", 90.0), idle: CpuUse("idle", 0.05), mid: CpuUse("mid", 0.0), us: CpuUse("us", 0.0)}
    after = {
        old: CpuUse("old", 91.0),
        idle: CpuUse("idle", 0.05),
        again: CpuUse("again", 4.0),
        mid: CpuUse("mid", 3.0),
        fourth: CpuUse("fourth", 0.5),
        us: CpuUse("us", 10.0),
    }
    assert system.find_busiest(period(before={"processes": before}, after={"processes": after})) == [
        {"pid": 2, "name": "again", "percent": 40.0},
        {"pid": 3, "name": "mid", "percent": 30.0},
        {"pid": 1, "name": "old", "percent": 10.0},
    ]


@pytest.mark.parametrize(
    ("topology", "cpus", "allowed", "level", "words"),
    [
        (cores((0,), (1,)), (1,), (0, 1), "good", "CPU 1, alone on its physical core"),
        (cores((0, 2), (1, 3)), (3,), (0, 1, 2, 3), "good", ""),
        (cores((0, 1)), (1,), (0, 1), "warn", "Work on the other CPU of a core"),
        (cores((0, 2), (1, 3)), (3,), (0, 2, 3), "warn", "use whole cores"),
        (cores((0, 2), (1, 3)), (1, 3), (0, 1, 2, 3), "warn", "Use 1 CPU at most"),
        (cores((0, 1), virtual=True), (1,), (0, 1), "warn", "hypervisor may put two"),
        (cores((0,), (1,), virtual=True), (1,), (0, 1), "unknown", "hypervisor may put two"),
        (cores((0,), (1,), virtual=None), (1,), (0, 1), "unknown", "whether this is a virtual machine: this system"),
        (cores((0,), (1,), known=False), (1,), (0, 1), "unknown", "which CPUs share a core: this system"),
    ],
)
def test_a_core_of_ones_own_is_good_where_it_is_known(
    topology: Topology, cpus: tuple[int, ...], allowed: tuple[int, ...], level: str, words: str
) -> None:
    check = system.check_smt(period(cpus, topology, allowed=allowed))
    assert check.level == level
    assert words in f"{check.value} {check.advice}"
    assert bool(check.command) == (level == "warn" and topology.virtual is False)


@pytest.mark.parametrize(
    ("governors", "level", "value"),
    [
        (["performance", "performance"], "good", "performance (driver intel_pstate)"),
        (["performance", "powersave"], "warn", "performance, powersave (driver intel_pstate)"),
        (["schedutil", "schedutil"], "warn", "schedutil (driver intel_pstate)"),
        (["performance"], "unknown", "this system doesn't report it"),
        ([], "unknown", "this system doesn't report it"),
    ],
)
def test_only_the_governor_performance_is_good(tree: Tree, governors: list[str], level: str, value: str) -> None:
    files = {f"{CPUS}/cpu{n}/cpufreq/scaling_governor": f"{name}\n" for n, name in enumerate(governors)}
    files |= {f"{CPUS}/cpu{n}/cpufreq/scaling_driver": "intel_pstate\n" for n in range(len(governors))}
    check = system.check_governor(period((0, 1), root=tree(files)))
    assert (check.level, check.value) == (level, value)
    assert bool(check.advice) == bool(check.command) == (level == "warn")


@pytest.mark.parametrize(
    ("files", "value", "level", "command"),
    [
        (
            {"intel_pstate/no_turbo": "0"},
            "on",
            "warn",
            "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        ({"intel_pstate/no_turbo": "1"}, "off", "good", ""),
        ({"cpufreq/boost": "1"}, "on", "warn", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
        ({"cpufreq/boost": "0"}, "off", "good", ""),
        ({"cpufreq/boost": "?"}, "this system doesn't report it", "unknown", ""),
        ({}, "this system doesn't report it", "unknown", ""),
    ],
)
def test_turbo_has_a_switch_of_two_kinds(
    tree: Tree, files: dict[str, str], value: str, level: str, command: str
) -> None:
    check = system.check_turbo(period(root=tree({f"{CPUS}/{name}": text for name, text in files.items()})))
    assert (check.value, check.level, check.command) == (value, level, command)
    assert ("heat" in check.advice) == bool(command)


@pytest.mark.parametrize(
    ("before", "after", "level", "value"),
    [
        ({1: 5}, {1: 5}, "good", "0 times during the check, 5 since the machine started"),
        ({1: 5}, {1: 7}, "bad", "2 times during the check, 7 since the machine started"),
        ({}, {1: 7}, "unknown", "this system doesn't report it"),
    ],
)
def test_throttling_is_what_was_counted_meanwhile(
    before: dict[int, int], after: dict[int, int], level: str, value: str
) -> None:
    check = system.check_throttling(period((1,), before={"throttles": before}, after={"throttles": after}))
    assert (check.level, check.value) == (level, value)
    assert ("too hot" in check.advice) == (level == "bad")
    assert system.check_throttling(period(())).level == "unknown"


@pytest.mark.parametrize(
    ("files", "level"),
    [
        ({}, "unknown"),
        ({"AC/type": "Mains", "AC/online": "1", "BAT0/type": "Battery", "BAT0/status": "Full"}, "good"),
        ({"AC/type": "Mains", "AC/online": "0", "BAT0/type": "Battery", "BAT0/status": "Discharging"}, "warn"),
        ({"BAT0/type": "Battery", "BAT0/status": "Discharging"}, "warn"),
        ({"BAT0/type": "Battery", "BAT0/status": "Charging"}, "good"),
        ({"BAT0/type": "Battery", "BAT0/status": "Unknown"}, "unknown"),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, "good"),
    ],
)
def test_a_machine_on_its_battery_is_a_warning(tree: Tree, files: dict[str, str], level: str) -> None:
    check = system.check_power(
        period(root=tree({f"sys/class/power_supply/{name}": text for name, text in files.items()}))
    )
    assert check.level == level
    values = {"good": "not on battery", "warn": "on battery", "unknown": "this system doesn't report it"}
    assert check.value == values[level]
    assert check.advice.startswith("Connect" if level == "warn" else "")


def test_a_machine_without_supplies_has_no_battery(tmp_path: Path) -> None:
    (tmp_path / "sys/class/power_supply").mkdir(parents=True)
    assert system.check_power(period(root=tmp_path)).level == "good"


CGROUP = "sys/fs/cgroup"
V2 = {"proc/self/cgroup": "0::/user.slice/app\n", f"{CGROUP}/cgroup.controllers": "cpu\n"}
V1 = {"proc/self/cgroup": "5:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n0::/\n", f"{CGROUP}/cpu,cpuacct/tasks": "1\n"}


def quota_v1(folder: str, quota: str) -> dict[str, str]:
    return {f"{CGROUP}/{folder}/cpu.cfs_quota_us": quota, f"{CGROUP}/{folder}/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (V2, (True, None)),
        (V2 | {f"{CGROUP}/user.slice/app/cpu.max": "max 100000\n"}, (True, None)),
        (V2 | {f"{CGROUP}/user.slice/app/cpu.max": "150000 100000\n"}, (True, 1.5)),
        (
            V2 | {f"{CGROUP}/user.slice/cpu.max": "50000 100000", f"{CGROUP}/user.slice/app/cpu.max": "max 100000"},
            (True, 0.5),
        ),
        (V2 | {f"{CGROUP}/user.slice/cpu.max": "50000"}, (True, 0.5)),
        (V2 | {f"{CGROUP}/user.slice/cpu.max": "what"}, (True, None)),
        ({"proc/self/cgroup": "0::/\n", f"{CGROUP}/cpu.max": "200000 100000"}, (True, 2.0)),
        (V1, (True, None)),
        (V1 | quota_v1("cpu,cpuacct/docker/abc", "-1"), (True, None)),
        (V1 | quota_v1("cpu,cpuacct", "50000"), (True, 0.5)),
        (V1 | quota_v1("cpuset/x", "1"), (True, None)),
        ({}, (False, None)),
        ({"proc/self/cgroup": "0::/\n"}, (False, None)),
    ],
)
def test_the_quota_is_the_smallest_of_the_group_and_those_above_it(
    tree: Tree, files: dict[str, str], found: tuple[bool, float | None]
) -> None:
    assert read_quota(tree(files)) == found


def test_another_processs_quota_is_that_of_its_group(tree: Tree) -> None:
    files = {"proc/71/cgroup": "0::/docker/abc\n", f"{CGROUP}/docker/cpu.max": "50000 100000"}
    assert read_quota(tree(files), "71") == (True, 0.5)
    assert read_quota(tree(files)) == (False, None)


@pytest.mark.parametrize(
    ("limit", "level", "value"),
    [
        ("max", "good", "none"),
        ("250000", "good", "this process and its child processes may use 2.5 CPUs; a launch gets 2"),
        ("200000", "warn", "this process and its child processes may use 2 CPUs; a launch gets 2"),
        ("50000", "bad", "this process and its child processes may use 0.5 CPUs; a launch gets 2"),
        (None, "unknown", "this system doesn't report it"),
    ],
)
def test_a_quota_must_leave_room_beside_what_is_measured(tree: Tree, limit: str | None, level: str, value: str) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{limit} 100000"} if limit else {}
    check = system.check_cpu_quota(period((0, 1), root=tree(files)))
    assert (check.level, check.value) == (level, value)
    assert ("docker run" in check.advice) == (level in ("warn", "bad"))


@pytest.mark.parametrize(
    ("after", "level"),
    [
        (PLENTY, "good"),
        (replace(PLENTY, swap_used=2**30), "good"),
        (replace(PLENTY, swapped_pages=8), "warn"),
        (replace(PLENTY, available=PLENTY.total // 11), "warn"),
        (replace(PLENTY, available=PLENTY.total // 11, swapped_pages=8), "bad"),
        (replace(PLENTY, swapped_pages=None), "unknown"),
        (replace(PLENTY, swapped_pages=None, swap_total=0), "good"),
        (None, "unknown"),
    ],
)
def test_swapping_and_short_memory_are_not_good(after: Memory | None, level: str) -> None:
    check = system.check_memory(period(before={"memory": PLENTY}, after={"memory": after}))
    assert check.level == level
    assert "None" not in check.value
    assert bool(check.advice) == bool(check.command) == (level in ("warn", "bad"))


def test_memory_is_said_in_gibibytes() -> None:
    after = replace(PLENTY, available=2**28, swap_used=2**30, swapped_pages=19)
    check = system.check_memory(period(before={"memory": PLENTY}, after={"memory": after}))
    assert check.value == "0.2 GiB of 8.0 GiB available, 1.0 GiB swapped out; 12 pages swapped during the check"


@pytest.mark.parametrize(
    ("virtual", "level", "value"),
    [(True, "warn", "yes"), (False, "good", "no"), (None, "unknown", "this system doesn't report it")],
)
def test_a_virtual_machine_is_a_warning(virtual: bool | None, level: str, value: str) -> None:
    check = system.check_virtual_machine(period(topology=cores((0,), virtual=virtual)))
    assert (check.level, check.value) == (level, value)
    assert ("bare metal" in check.advice) == (level == "warn")
