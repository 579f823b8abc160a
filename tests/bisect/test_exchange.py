"""The package whose exchange moves the time."""

from dataclasses import replace

from harness.bisect.exchange import exchange, list_differences
from harness.bisect.search import SearchEnd, narrow
from tests.bisect.machine import SearchedMachine

OLD = {"keras": "2.15.0", "numpy": "1.26.4", "tensorflow": "2.15.1"}
NEW = {"keras": "3.0.5", "numpy": "1.26.4", "tensorflow": "2.16.1"}


def confirmed(seconds, old=OLD, new=NEW, *, is_fix=False, **exchanged):
    """Return a machine and its search, whose answer is c0 .. c1. `exchanged` are seconds: `keras_3_0_5_in_c0`."""
    machine = SearchedMachine(seconds)
    machine.packages = {"c0": old, "c1": new}
    search = machine.search(is_fix=is_fix)
    narrow(search, 1e9, machine)
    assert search.ended is SearchEnd.CONFIRMED
    machine.values |= exchanged
    machine.asked.clear()
    return machine, search


def test_the_package_that_moves_the_time_makes_the_difference():
    machine, search = confirmed([1.0, 3.0], **{"c0+keras==3.0.5": 2.9})
    (entry,) = exchange(search, 1e9, machine)
    assert (entry.package, entry.base, entry.text) == ("keras", "c0", "c0+keras==3.0.5")
    assert entry.moves
    assert entry.role.startswith("makes")
    assert machine.asked == [("exchange", ["c0", "c0+keras==3.0.5"], 3)]


def test_one_that_hardly_moves_it_does_not():
    for seconds, off, role in ((1.01, 0.01, "doesn't make"), (1.2, 0.6, "may or may not make")):
        machine, search = confirmed([1.0, 3.0], **{"c0+keras==3.0.5": seconds})
        machine.off = off
        (entry,) = exchange(search, 1e9, machine)
        assert not entry.moves
        assert entry.role.startswith(role)


def test_where_the_older_release_cannot_have_it_the_newer_one_gets_the_older_version():
    machine, search = confirmed([3.0, 1.0], is_fix=True, **{"c1+keras==2.15.0": 2.8})
    machine.absent = {"c0+keras==3.0.5": "no solution"}
    impossible, entry = exchange(search, 1e9, machine)
    assert impossible.why_not == "no solution"
    assert entry.text == "c1+keras==2.15.0"
    assert entry.moves


def test_the_next_package_is_exchanged_if_the_first_one_does_not_move_the_time():
    new = {**NEW, "numpy": "2.0.0"}
    machine, search = confirmed([1.0, 3.0], new=new, **{"c0+keras==3.0.5": 1.0, "c0+numpy==2.0.0": 3.0})
    assert [(entry.package, entry.moves) for entry in exchange(search, 1e9, machine)] == [
        ("keras", False),
        ("numpy", True),
    ]


def test_a_spent_budget_measures_no_exchange():
    machine, search = confirmed([1.0, 3.0])
    assert {entry.why_not for entry in exchange(search, machine.spent, machine)} == {"the budget is spent"}


def test_nothing_is_exchanged_if_one_package_differs_or_commits_are_searched():
    machine, search = confirmed([1.0, 3.0], new={**OLD, "keras": "3.0.5"})
    assert list_differences(search, machine) == ["keras 3.0.5 instead of 2.15.0"]
    assert exchange(search, 1e9, machine) == []
    machine, search = confirmed([1.0, 3.0])
    search.candidates = [replace(candidate, title="a commit") for candidate in search.candidates]
    assert exchange(search, 1e9, machine) == []
