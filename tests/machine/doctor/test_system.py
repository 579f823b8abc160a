"""What else uses the CPUs and what decides their speed: levels and sentences, on systems made of files."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.machine.doctor import system
from harness.machine.doctor.counters import Counters, CpuPlace, CpuUse, Period, Ticks
from harness.machine.doctor.system import CPUS
from harness.machine.quota import read_quota
from harness.machine.topology import Topology
from tests.machine.conftest import cores
from tests.machine.doctor.checks import read_checks

#: Ticks of one CPU in the seconds that each period lasts.
SECONDS = 10.0
ALL = round(SECONDS * os.sysconf("SC_CLK_TCK"))


def period(
    cpus: tuple[int, ...] = (0,),
    topology: Topology | None = None,
    root: Path = Path("/nowhere"),
    *,
    allowed: tuple[int, ...] = (),
    used: float = 0.0,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Period:
    """Ten seconds on some CPUs; `before` and `after` are the counters that are not empty."""
    place = CpuPlace(cpus, frozenset(allowed or cpus), topology or cores((0,)), root)
    start = Counters(0.0, 0.0, {}, {})
    return Period(place, replace(start, **before or {}), replace(start, seconds=SECONDS, own=used, **after or {}))


def test_steal_is_unknown_where_it_was_never_reported(snapshot):
    def check(percent, virtual):
        after = {"ticks": {0: Ticks(1000, 0, round(10 * percent))}}
        before = {"ticks": {0: Ticks(0, 0, 0)}}
        return system.check_steal(period(topology=cores((0,), virtual=virtual), before=before, after=after))

    same = {"ticks": {0: Ticks(1000, 0, 0)}}
    unread = [period(), period(before=same, after=same), period((), before=same, after=same)]
    checks = {
        "good": [check(0, False), check(0.1, True)],
        "warn": [check(0.5, True), check(0.9, False)],
        "bad": [check(2, True)],
        "unknown": [check(0, None), check(0, True), *map(system.check_steal, unread)],
    }
    assert read_checks(checks) == snapshot


def loaded(machine_cpus: float | None, here: float | None) -> Period:
    """Four CPUs of which other processes use so many, and so much of CPU 0; this process used one CPU's time."""
    start = {n: Ticks(0, 0, 0) for n in range(4)}
    ticks = {} if machine_cpus is None else dict(start)
    if machine_cpus is not None:
        ticks[1] = Ticks(ALL, round((machine_cpus - (here or 0.0)) * ALL), 0)
        ticks[0] = Ticks(ALL, round((1.0 + (here or 0.0)) * ALL), 0)
    cpus = (0,) if here is not None else (9,)
    return period(cpus, used=SECONDS, before={"ticks": start}, after={"ticks": ticks})


def test_other_load_weighs_more_where_launches_run(snapshot):
    def check(others, here):
        return system.check_other_load(loaded(others, here))

    checks = {
        "good": [check(0.0, 0.0), check(-0.1, -0.1)],
        "warn": [check(0.05, 0.03), check(0.2, 0.0)],
        "bad": [check(0.06, 0.06), check(2.1, 0.0)],
        "unknown": [check(None, None), check(0.0, None)],
    }
    assert read_checks(checks) == snapshot


class Other:
    """A process that is not this one, by number and start: a number may be given again."""

    def __init__(self, pid: int) -> None:
        self.pid = pid


def test_the_busiest_are_those_that_used_most_meanwhile(snapshot):
    old, idle, reused, mid, fourth, us = (Other(pid) for pid in (1, 2, 2, 3, 4, os.getpid()))
    before = {old: CpuUse("old", 90.0), idle: CpuUse("idle", 0.05), mid: CpuUse("mid", 0.0), us: CpuUse("us", 0.0)}
    after = {
        old: CpuUse("old", 91.0),
        idle: CpuUse("idle", 0.05),
        reused: CpuUse("reused", 4.0),
        mid: CpuUse("mid", 3.0),
        fourth: CpuUse("fourth", 0.5),
        us: CpuUse("us", 10.0),
    }
    ticks = {"before": {0: Ticks(0, 0, 0)}, "after": {0: Ticks(ALL, ALL, 0)}}
    result = system.check_other_load(
        period(
            used=1.0,
            before={"processes": before, "ticks": ticks["before"]},
            after={"processes": after, "ticks": ticks["after"]},
        )
    )
    assert read_checks({"bad": [result]}) == snapshot


def test_a_core_of_ones_own_is_good_where_it_is_known(snapshot):
    def check(topology, cpus, allowed):
        return system.check_smt(period(cpus, topology, allowed=allowed))

    pairs, every = cores((0, 2), (1, 3)), (0, 1, 2, 3)
    checks = {
        "good": [check(cores((0,), (1,)), (1,), (0, 1)), check(pairs, (3,), every)],
        "warn": [check(cores((0, 1)), (1,), (0, 1)), check(pairs, (3,), (0, 2, 3)), check(pairs, (1, 3), every)],
        "unknown": [
            check(cores((0,), (1,), virtual=True), (1,), (0, 1)),
            check(cores((0,), (1,), virtual=None), (1,), (0, 1)),
            check(cores((0,), (1,), known=False), (1,), (0, 1)),
        ],
    }
    assert read_checks(checks) == snapshot


def test_only_the_governor_performance_is_good(tree, snapshot):
    def check(*governors):
        files = {f"{CPUS}/cpu{n}/cpufreq/scaling_governor": f"{name}\n" for n, name in enumerate(governors)}
        return system.check_governor(period((0, 1), root=tree(files, ",".join(governors))))

    checks = {
        "good": [check("performance", "performance")],
        "warn": [check("performance", "powersave"), check("schedutil", "schedutil")],
        "unknown": [check("performance"), check()],
    }
    assert read_checks(checks) == snapshot


def test_turbo_has_a_switch_of_two_kinds(tree, snapshot):
    def check(**switches):
        names = {"no_turbo": "intel_pstate/no_turbo", "boost": "cpufreq/boost"}
        files = {f"{CPUS}/{names[name]}": text for name, text in switches.items()}
        return system.check_turbo(period(root=tree(files, str(switches))))

    checks = {
        "good": [check(no_turbo="1"), check(boost="0")],
        "warn": [check(no_turbo="0"), check(boost="1")],
        "unknown": [check(boost="?"), check()],
    }
    assert read_checks(checks) == snapshot


CGROUP = "sys/fs/cgroup"
V2 = {"proc/self/cgroup": "0::/user.slice/app\n", f"{CGROUP}/cgroup.controllers": "cpu\n"}
V1 = {"proc/self/cgroup": "5:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n0::/\n", f"{CGROUP}/cpu,cpuacct/tasks": "1\n"}


def quota_v1(folder: str, quota: str) -> dict[str, str]:
    return {f"{CGROUP}/{folder}/cpu.cfs_quota_us": quota, f"{CGROUP}/{folder}/cpu.cfs_period_us": "100000"}


def test_the_quota_is_the_smallest_of_the_group_and_those_above_it(tree):
    above, group = f"{CGROUP}/user.slice/cpu.max", f"{CGROUP}/user.slice/app/cpu.max"
    table: list[tuple[dict[str, str], tuple[bool, float | None]]] = [
        (V2 | {group: "max 100000\n"}, (True, None)),
        (V2 | {group: "150000 100000\n"}, (True, 1.5)),
        (V2 | {above: "50000 100000", group: "max 100000"}, (True, 0.5)),
        (V2 | {above: "50000"}, (True, 0.5)),
        (V2 | {above: "what"}, (True, None)),
        ({"proc/self/cgroup": "0::/\n", f"{CGROUP}/cpu.max": "200000 100000"}, (True, 2.0)),
        (V1 | quota_v1("cpu,cpuacct/docker/abc", "-1"), (True, None)),
        (V1 | quota_v1("cpu,cpuacct", "50000"), (True, 0.5)),
        (V1 | quota_v1("cpuset/x", "1"), (True, None)),
        ({"proc/self/cgroup": "0::/\n"}, (False, None)),
    ]
    assert [(files, read_quota(tree(files, number))) for number, (files, _) in enumerate(table)] == table
    # another process's quota is that of its group
    root = tree({"proc/71/cgroup": "0::/docker/abc\n", f"{CGROUP}/docker/cpu.max": "50000 100000"}, "another")
    assert (read_quota(root, "71"), read_quota(root)) == ((True, 0.5), (False, None))


def test_a_quota_must_leave_room_beside_what_is_measured(tree, snapshot):
    def check(limit):
        files = {"proc/self/cgroup": "0::/\n", f"{CGROUP}/cpu.max": f"{limit} 100000"} if limit else {}
        return system.check_cpu_quota(period((0, 1), root=tree(files, limit)))

    checks = {
        "unknown": [check("")],
        "good": [check("max"), check("250000")],
        "warn": [check("200000")],
        "bad": [check("50000")],
    }
    assert read_checks(checks) == snapshot


def test_a_virtual_machine_is_a_warning(snapshot):
    def check(virtual):
        return system.check_virtual_machine(period(topology=cores((0,), virtual=virtual)))

    assert read_checks({"warn": [check(True)], "good": [check(False)], "unknown": [check(None)]}) == snapshot
