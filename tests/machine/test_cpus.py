import contextlib
import os
from collections.abc import Collection
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.machine.cpus import choose, choose_most, choose_starting_cpus, describe, keep_process_off
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


def test_launches_start_on_one_cpu_of_each_core_that_is_like_the_measured_one():
    for count in (2, 4, 8):
        machine = cores(*((cpu,) for cpu in range(count)))
        assert choose_starting_cpus((count - 1,), range(count), machine) == (*reversed(range(count)),)
    assert choose_starting_cpus((7,), range(8), SMT) == (7, 6, 5, 4)
    assert choose_starting_cpus((7,), {1, 2, 3, 7}, SMT) == (7, 2, 1)
    assert choose_starting_cpus((3,), {3, 7}, SMT) == (3,), "the sibling alone"
    # launches of several CPUs start where they are measured
    for cpus in (None, (2, 3)):
        assert choose_starting_cpus(cpus, range(4), PLAIN) == ()
    plain = {n: Cpu(n, frozenset({n}), node=0, speed=100, cache=frozenset(range(4))) for n in range(4)}
    assert choose_starting_cpus((3,), range(4), Topology(plain)) == (3, 2, 1, 0)
    for change in ({"node": 1}, {"package": 1}, {"speed": 70}, {"cache": frozenset({1})}):
        assert choose_starting_cpus((3,), range(4), Topology({**plain, 1: replace(plain[1], **change)})) == (3, 2, 0)


def test_the_best_cores_are_chosen():
    packages = Topology({n: Cpu(n, frozenset({n}), package=int(n >= 3), node=int(n >= 3)) for n in range(5)})
    isolated = Topology({n: Cpu(n, frozenset({n}), isolated=n in {1, 2}) for n in range(4)})
    fast = {n: Cpu(n, frozenset({n, n ^ 1}), speed=5000) for n in range(4)}
    kinds = Topology(fast | {n: Cpu(n, frozenset({n}), speed=3900) for n in range(4, 10)})
    table: list[tuple[str, Topology, Collection[int], tuple[int, ...]]] = [
        # CPU 0 and its sibling are left where another core is as good
        ("1", cores((0, 3), (1, 2)), range(4), (2,)),
        # cores of one package or node
        ("2", packages, range(5), (3, 4)),
        ("3", packages, range(5), (0, 1, 2)),
        ("4", packages, range(5), (1, 2, 3, 4)),
        # one isolated CPU, but of two the scheduler would leave both threads on one
        ("1", isolated, range(4), (2,)),
        ("2", isolated, range(4), (0, 3)),
        ("3", isolated, range(4), (1, 2, 3)),
        # all of the fastest kind that has enough
        ("1", kinds, range(10), (3,)),
        ("4", kinds, range(10), (0, 1, 2, 3)),
        ("5", kinds, range(10), (5, 6, 7, 8, 9)),
        ("1", kinds, range(4, 10), (9,)),
    ]
    assert [(*case, choose(case[0], set(case[2]), case[1])) for *case, _ in table] == table


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


def test_the_harness_keeps_off_siblings_where_that_leaves_it_a_cpu_however_the_work_ends(monkeypatch):
    cpus: set[int] = set()

    def move(_: int, others: Collection[int]) -> None:
        cpus.clear()
        cpus.update(others)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))
    monkeypatch.setattr(os, "sched_setaffinity", move)
    for allowed, left in (({0, 3, 4, 7}, {0, 4}), ({3, 7}, {3}), ({7}, {7}), (set(range(8)), {0, 1, 2, 4, 5, 6})):
        move(0, allowed)
        with contextlib.suppress(KeyboardInterrupt), keep_process_off((7,), SMT):
            assert cpus == left
            raise KeyboardInterrupt
        assert cpus == allowed
    # a sandbox can forbid each change
    monkeypatch.delattr(os, "sched_setaffinity")
    with keep_process_off(None):
        assert cpus == allowed


def test_the_largest_launches_of_an_axis_decide_which_cpus_all_of_them_use(monkeypatch, snapshot):
    monkeypatch.setattr("harness.machine.topology.read", lambda: SMT)
    assert choose_most([1, 4, 2], range(8)) == (4, 5, 6, 7)
    assert catch_text(UsageError, choose_most, [1, 3], {0, 1}) == snapshot
