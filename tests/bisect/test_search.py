import pytest

from harness.analysis.looks import LOOKS_AT_PAIRS
from harness.bisect.candidates import Candidate
from harness.bisect.search import EqualEndpointsError, SearchEnd, narrow, scan
from tests.bisect.machine import MachineRun, SearchedMachine
from tests.errors import read_refusal


def search_on(machine, budget=1e9, *, first=None, **changes):
    search = machine.search(**changes)
    if first:
        first(search, machine)
    narrow(search, budget, machine)
    return search


def test_the_step_is_found_and_confirmed_side_by_side():
    for place in (0, 7, 18):
        machine = SearchedMachine([1.0] * (place + 1) + [2.0] * (19 - place))
        search = search_on(machine)
        assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (place, place + 1))
        assert machine.asked[0] == ("ends", ["c0", "c19"], 3)
        assert machine.asked[-1][:2] == ("pair", [f"c{place}", f"c{place + 1}"])
        # as bisection where a round is clear: some five probes of one round
        assert 3 <= sum(kind == "probe" for kind, *_ in machine.asked) <= 7
    search = search_on(SearchedMachine([9.0, 9.0, 9.0, 1.0, 1.0]), is_fix=True)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (2, 3))


def test_what_cannot_be_made_or_measured_is_skipped_with_its_reason():
    for absent in ([3], [2, 3, 4]):
        machine = SearchedMachine([1.0] * 4 + [2.0] * 4, absent=absent, broken=[5])
        search = search_on(machine)
        reasons = {5: "it fails"} if 5 in search.unknown else {}
        assert search.unknown == dict.fromkeys(absent, "it was yanked") | reasons
        assert f"c{absent[0]} is skipped: it was yanked." in machine.said
        first, last = search.found
        assert first <= 3 < last
        assert search.ended is SearchEnd.CONFIRMED
    # one of the likeliest pair
    machine = SearchedMachine([1.0, 1.0, 1.0, 9.0], absent=[2])
    search = search_on(machine)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (1, 3))
    assert all("c2" not in texts for _, texts, _ in machine.asked)


def test_what_is_known_to_be_unknown_is_never_made():
    machine = SearchedMachine([1.0, 1.0, 1.0, 2.0, 2.0])
    search = machine.search()
    search.candidates = [Candidate(f"c{place}", unknown="yanked" if place == 2 else "") for place in range(5)]
    narrow(search, 1e9, machine)
    assert search.found == (1, 3)
    assert search.unknown == {2: "yanked"}
    assert "c2" not in machine.made


def test_ends_that_leave_nothing_to_search_are_errors(snapshot):
    cases = {
        "equal, but the scan saw what lies between": (SearchedMachine([1.0, 1.0, 5.0, 1.0]), {"first": scan}),
        "within half a margin": (SearchedMachine([1.0, 1.015], off=0.005), {}),
        "reversed": (SearchedMachine([2.0, 1.5, 1.0]), {}),
        "reversed, for a fix": (SearchedMachine([1.0, 1.5, 2.0]), {"is_fix": True}),
        "the last is absent": (SearchedMachine([1.0, 1.0, 2.0, 2.0], absent=[3]), {}),
        "the first is broken": (SearchedMachine([1.0, 1.0, 2.0, 2.0], broken=[0]), {}),
        "no release has a result": (SearchedMachine([1.0, 1.0, 2.0], broken=[0, 1, 2]), {"first": scan}),
    }
    errors = {
        name: read_refusal(lambda machine=machine, options=options: search_on(machine, **options))
        for name, (machine, options) in cases.items()
    }
    assert errors == snapshot
    # before any probe
    assert [[kind for kind, *_ in machine.asked] for machine, _ in cases.values()] == [
        ["scan", "ends"],
        ["ends"],
        ["ends"],
        ["ends"],
        [],
        ["ends"],
        ["scan"],
    ]


def test_unclear_ends_get_more_rounds_within_half_of_the_budget_and_are_not_said_to_be_alike(snapshot):
    errors = {}
    for budget, looks in ((1.0, 1), (450.0, 2), (1e9, 6)):
        machine = SearchedMachine([1.0, 1.05], off=0.06)
        with pytest.raises(EqualEndpointsError) as raised:
            search_on(machine, budget)
        rounds = [rounds for _, _, rounds in machine.asked]
        assert rounds == list(LOOKS_AT_PAIRS[:looks])
        assert f"{rounds[-1]} rounds: unclear" in raised.value.message
        # while a larger budget may help, the command that gives it is added where the folder is known
        assert bool(raised.value.advice) == (budget == 1e9)
        errors[budget] = str(raised.value)
    assert errors[1e9] == snapshot


class Vague(SearchedMachine):
    """A machine that measures the ends exactly, and all other pairs with wide intervals."""

    def measure(self, kind, texts, rounds, earlier=None):
        result = super().measure(kind, texts, rounds, earlier)
        return MachineRun(self.values, rounds, {}, off=1.0) if kind == "pair" else result


def test_a_pair_that_is_not_confirmed_is_found_only_and_the_largest_change_is_searched():
    search = search_on(Vague([1.0, 1.0, 1.0, 1.5, 1.5, 1.5]))
    assert (search.ended, search.found) == (SearchEnd.FOUND, (2, 3))
    assert search.pair.relation == "are not shown to differ"
    # as many rounds as the looks have
    assert search.pair.rounds == LOOKS_AT_PAIRS[-1]
    # and not even that if the budget ends before
    assert search_on(Vague([1.0, 1.0, 1.0, 1.5, 1.5, 1.5]), 400.0).ended is SearchEnd.BUDGET
    machine = SearchedMachine([1.0, 1.1, 17.0, 1.2, 1.2, 1.2, 3.0, 3.0])
    search = search_on(machine, first=scan)
    assert (search.low, search.high) == (0, 2)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (1, 2))
    assert any("both slower and faster" in sentence for sentence in machine.said)
    assert [change.pair for change in search.changes] == [(1, 2), (2, 3), (5, 6)]


def test_a_scan_of_a_large_step_leaves_little_to_probe_and_a_budget_ends_the_search():
    machine = SearchedMachine([1.0] * 6 + [4.0] * 6)
    assert search_on(machine, first=scan).found == (5, 6)
    assert not any(kind == "probe" for kind, *_ in machine.asked)
    for budget in (95.0, 130.0):
        machine = SearchedMachine([1.0] * 100 + [2.0] * 100)
        search = search_on(machine, budget)
        assert search.ended is SearchEnd.BUDGET
        assert machine.spent <= budget
        assert not search.posterior.is_found
