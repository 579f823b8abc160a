import os
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.cpus import choose, choose_most, choose_starting_cpus, describe, keep_process_off, run_on_cpus
from harness.machine.topology import Cpu, Topology
from harness.model.errors import UsageError
from tests.errors import catch_text
from tests.machine.conftest import cores

#: Four CPUs, each a core of its own.
PLAIN = cores((0,), (1,), (2,), (3,))
#: Four cores of two threads, numbered as most machines do.
SMT = cores((0, 4), (1, 5), (2, 6), (3, 7))


def test_a_wish_is_a_number_or_a_list_of_cpus(snapshot):
    allowed = {0, 1, 2, 3}
    wishes = {"1": (3,), "2": (2, 3), "all": None, "0,2-3": (0, 2, 3), "1,": (1,), "1-1": (1,)}
    assert {wish: choose(wish, allowed, PLAIN) for wish in wishes} == wishes
    wrong = ("0", "5", "4,5", "x", "1-", "-1", "3-1", "0-99999999", "")
    assert {wish: catch_text(UsageError, choose, wish, allowed, PLAIN) for wish in wrong} == snapshot


def test_launches_start_on_one_cpu_of_each_core_the_measured_one_first():
    for count in (2, 4, 8):
        machine = cores(*((cpu,) for cpu in range(count)))
        assert choose_starting_cpus((count - 1,), range(count), machine) == (*reversed(range(count)),)
    assert choose_starting_cpus((7,), range(8), SMT) == (7, 6, 5, 4)
    assert choose_starting_cpus((7,), {1, 2, 3, 7}, SMT) == (7, 2, 1)
    assert choose_starting_cpus((3,), {3, 7}, SMT) == (3,), "the sibling alone"
    # launches of several CPUs start where they are measured
    for cpus in (None, (2, 3)):
        assert choose_starting_cpus(cpus, range(4), PLAIN) == ()


def test_launches_start_on_cpus_that_are_like_the_measured_one_and_share_its_cache_and_memory():
    plain = {n: Cpu(n, frozenset({n}), node=0, speed=100, cache=frozenset(range(4))) for n in range(4)}
    assert choose_starting_cpus((3,), range(4), Topology(plain)) == (3, 2, 1, 0)
    for change in ({"node": 1}, {"package": 1}, {"speed": 70}, {"cache": frozenset({1})}):
        assert choose_starting_cpus((3,), range(4), Topology({**plain, 1: replace(plain[1], **change)})) == (3, 2, 0)


def test_cpu_0_and_its_sibling_are_left_where_another_core_is_as_good():
    assert choose("1", {0, 1, 2, 3}, cores((0, 3), (1, 2))) == (2,)


def test_cores_of_one_package_or_node_are_better_than_of_two():
    machine = Topology({n: Cpu(n, frozenset({n}), package=int(n >= 3), node=int(n >= 3)) for n in range(5)})
    assert choose("2", set(range(5)), machine) == (3, 4)
    assert choose("3", set(range(5)), machine) == (0, 1, 2)
    assert choose("4", set(range(5)), machine) == (1, 2, 3, 4)


def test_one_isolated_cpu_is_the_best_and_more_of_them_the_worst():
    machine = Topology({n: Cpu(n, frozenset({n}), isolated=n in {1, 2}) for n in range(4)})
    assert choose("1", {0, 1, 2, 3}, machine) == (2,)
    # the scheduler would leave two threads on one of them
    assert choose("2", {0, 1, 2, 3}, machine) == (0, 3)
    assert choose("3", {0, 1, 2, 3}, machine) == (1, 2, 3)


def test_all_cores_are_of_the_fastest_kind_that_has_enough():
    fast = {n: Cpu(n, frozenset({n, n ^ 1}), speed=5000) for n in range(4)}
    machine = Topology(fast | {n: Cpu(n, frozenset({n}), speed=3900) for n in range(4, 10)})
    assert choose("1", set(range(10)), machine) == (3,)
    assert choose("4", set(range(10)), machine) == (0, 1, 2, 3)
    assert choose("5", set(range(10)), machine) == (5, 6, 7, 8, 9)
    assert choose("1", set(range(4, 10)), machine) == (9,)


@st.composite
def machines(draw: st.DrawFn) -> tuple[Topology, set[int], int]:
    """Machines whose CPUs are of one kind, what is allowed on them, and how many are wished for."""
    count = draw(st.integers(1, 16))
    core = draw(st.lists(st.integers(0, 7), min_size=count, max_size=count))
    package = draw(st.lists(st.integers(0, 1), min_size=8, max_size=8))
    siblings = {n: frozenset(m for m in range(count) if core[m] == core[n]) for n in range(count)}
    topology = Topology({n: Cpu(n, siblings[n], package=package[core[n]]) for n in range(count)})
    allowed = draw(st.sets(st.integers(0, count - 1), min_size=1))
    return topology, allowed, draw(st.integers(1, len(allowed)))


@given(machines())
def test_a_choice_is_as_many_as_wished_allowed_sorted_and_of_untouched_cores(machine):
    topology, allowed, count = machine
    chosen = choose(str(count), allowed, topology)

    assert len(set(chosen)) == count
    assert set(chosen) <= allowed
    assert list(chosen) == sorted(chosen)
    assert chosen == choose(str(count), set(allowed), topology)
    # no two siblings while a core is untouched
    there = {topology.cpu(cpu).siblings for cpu in allowed}
    used = {topology.cpu(cpu).siblings for cpu in chosen}
    assert len(used) == min(count, len(there))
    complete = {core for core in there if core <= allowed}
    assert len(used & complete) == min(count, len(complete))


def test_a_choice_in_facts_claims_no_more_than_the_machine_shows(snapshot):
    choices: list[tuple[tuple[int, ...] | None, Topology, Collection[int]]] = [
        ((7,), SMT, range(8)),
        ((7,), SMT, [7, 6]),
        ((3,), SMT, [3, 7]),
        ((5, 6, 7), SMT, range(8)),
        ((2, 3, 6), SMT, range(8)),
        ((3, 7), SMT, range(8)),
        ((6, 7), SMT, [2, 6, 7]),
        ((6, 7), SMT, [1, 2, 6, 7]),
        (None, SMT, range(8)),
        ((3,), PLAIN, {2, 3}),
        ((3,), Topology(PLAIN.cpus, virtual=True), {2, 3}),
        ((3,), Topology({}, known=False), {2, 3}),
    ]
    assert [describe(cpus, topology, set(allowed)) for cpus, topology, allowed in choices] == snapshot


class Kernel:
    """An affinity without a machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cpus: set[int]) -> None:
        self.cpus = cpus
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(self.cpus))
        monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: setattr(self, "cpus", set(cpus)))


def test_the_harness_keeps_off_siblings_where_that_leaves_it_a_cpu(monkeypatch):
    for allowed, left in (({0, 3, 4, 7}, {0, 4}), ({3, 7}, {3}), ({7}, {7}), (set(range(8)), {0, 1, 2, 4, 5, 6})):
        kernel = Kernel(monkeypatch, allowed)
        with keep_process_off((7,), SMT):
            assert kernel.cpus == left
        assert kernel.cpus == allowed
    with keep_process_off(None):
        assert kernel.cpus == allowed


def test_running_on_some_cpus_ends_however_the_work_ends(monkeypatch):
    kernel = Kernel(monkeypatch, {0, 1})

    def work():
        with run_on_cpus((1,)):
            assert kernel.cpus == {1}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert kernel.cpus == {0, 1}


def test_the_largest_launches_of_an_axis_decide_which_cpus_all_of_them_use(monkeypatch, snapshot):
    monkeypatch.setattr("harness.machine.topology.read", lambda: SMT)
    assert choose_most([1, 4, 2], range(8)) == (4, 5, 6, 7)
    assert catch_text(UsageError, choose_most, [1, 3], {0, 1}) == snapshot
