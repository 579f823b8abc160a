import pytest

from harness.bisect.candidates import Candidate
from harness.bisect.comparison import LOOKS
from harness.bisect.search import EqualEndpointsError, ReversedEndpointsError, SearchEnd, narrow, scan
from harness.model.errors import CannotRunHereError
from tests.bisect.machine import Machine, MachineRun


def narrowed(machine, budget=1e9, *, first=None, **changes):
    search = machine.search(**changes)
    if first:
        first(search, machine)
    narrow(search, budget, machine)
    return search, machine.said


@pytest.mark.parametrize("place", [0, 7, 18])
def test_the_step_is_found_and_confirmed_side_by_side(place):
    machine = Machine([1.0] * (place + 1) + [2.0] * (19 - place))
    search, _ = narrowed(machine)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (place, place + 1))
    assert machine.asked[0] == ("ends", ["c0", "c19"], 3)
    assert machine.asked[-1][:2] == ("pair", [f"c{place}", f"c{place + 1}"])
    # as bisection where a round is clear: some five probes of one round
    assert 3 <= sum(kind == "probe" for kind, *_ in machine.asked) <= 7


def test_a_fix_is_a_step_down():
    search, _ = narrowed(Machine([9.0, 9.0, 9.0, 1.0, 1.0]), is_fix=True)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (2, 3))


@pytest.mark.parametrize("absent", [[3], [2, 3, 4]])
def test_what_cannot_be_made_or_measured_is_skipped_with_its_reason(absent):
    machine = Machine([1.0] * 4 + [2.0] * 4, absent=absent, broken=[5])
    search, said = narrowed(machine)
    assert search.unknown == dict.fromkeys(absent, "it was yanked") | ({5: "it fails"} if 5 in search.unknown else {})
    assert f"c{absent[0]} is skipped: it was yanked." in said or absent[0] not in search.unknown
    first, last = search.found
    assert first <= 3 < last
    assert search.ended is SearchEnd.CONFIRMED


def test_what_is_known_to_be_unknown_is_never_made():
    machine = Machine([1.0, 1.0, 1.0, 2.0, 2.0])
    search = machine.search()
    search.candidates = [Candidate(f"c{at}", unknown="yanked" if at == 2 else "") for at in range(5)]
    narrow(search, 1e9, machine)
    assert search.found == (1, 3)
    assert search.unknown == {2: "yanked"}
    assert "c2" not in machine.made


def test_ends_that_do_not_differ_are_told_before_any_probe():
    machine = Machine([1.0, 1.0, 5.0, 1.0])
    with pytest.raises(EqualEndpointsError) as raised:
        narrowed(machine, first=scan)
    assert "c0 and c3 do not differ: c3 takes ×1 (0.990 to 1.01, 3 rounds: same)." in str(raised.value)
    # the scan saw what lies between
    assert "×5.00 from c1 to c2" in str(raised.value)
    assert [kind for kind, *_ in machine.asked] == ["scan", "ends"]


@pytest.mark.parametrize(("budget", "looks"), [(1.0, [3]), (450.0, [3, 2]), (1e9, [3, 2, 3, 5, 8, 13])])
def test_unclear_ends_get_more_rounds_within_half_of_the_budget_and_are_not_said_to_be_alike(budget, looks):
    machine = Machine([1.0, 1.05], off=0.06)
    with pytest.raises(EqualEndpointsError) as raised:
        narrowed(machine, budget)
    assert [rounds for _, _, rounds in machine.asked] == looks
    shown = f"c1 takes ×1.05 (0.989 to 1.11, {sum(looks)} rounds: unclear)"
    assert raised.value.message == f"c0 and c1 are not shown to differ: {shown}."
    # while a larger budget may help, the command that gives it is added where the folder is known
    assert raised.value.advice == ("" if budget < 1e9 else "Pass different versions or commits to --good and --bad.")


def test_ends_within_half_a_margin_are_no_step_however_sure_they_differ():
    with pytest.raises(EqualEndpointsError, match="c0 and c1 do not differ"):
        narrowed(Machine([1.0, 1.015], off=0.005))


class Vague(Machine):
    """A machine that measures the ends exactly, and all other pairs with wide intervals."""

    def measure(self, kind, texts, rounds, *, with_control=False):
        taken = super().measure(kind, texts, rounds, with_control=with_control)
        return MachineRun(self.values, rounds, {}, off=1.0) if kind == "pair" else taken


def test_a_pair_that_is_not_confirmed_side_by_side_is_found_and_no_more():
    machine = Vague([1.0, 1.0, 1.0, 1.5, 1.5, 1.5])
    search, _ = narrowed(machine)
    assert (search.ended, search.found) == (SearchEnd.FOUND, (2, 3))
    assert search.pair.relation == "are not shown to differ"
    # as many rounds as the looks have
    assert search.pair.rounds == LOOKS[-1]


def test_a_pair_that_the_budget_leaves_unconfirmed_is_not_found():
    search, _ = narrowed(Vague([1.0, 1.0, 1.0, 1.5, 1.5, 1.5]), 400.0)
    assert search.ended is SearchEnd.BUDGET


def test_a_candidate_of_the_likeliest_pair_that_cannot_be_made_is_skipped():
    machine = Machine([1.0, 1.0, 1.0, 9.0], absent=[2])
    search, _ = narrowed(machine)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (1, 3))
    assert all("c2" not in texts for kind, texts, _ in machine.asked)


@pytest.mark.parametrize(("seconds", "is_fix"), [([2.0, 1.5, 1.0], False), ([1.0, 1.5, 2.0], True)])
def test_ends_the_wrong_way_round_are_told_with_the_numbers_and_what_to_type(seconds, is_fix):
    machine = Machine(seconds)
    with pytest.raises(ReversedEndpointsError) as raised:
        narrowed(machine, is_fix=is_fix)
    good, bad = ("c2", "c0") if is_fix else ("c0", "c2")
    assert f"{bad} is not worse than {good}: c2 takes" in str(raised.value)
    assert f"--good {bad} --bad {good}" in str(raised.value)
    assert [kind for kind, *_ in machine.asked] == ["ends"]


def test_an_end_that_cannot_be_measured_is_an_error():
    with pytest.raises(CannotRunHereError, match="c3 cannot be measured: it was yanked"):
        narrowed(Machine([1.0, 1.0, 2.0, 2.0], absent=[3]))
    with pytest.raises(CannotRunHereError, match="c0 cannot be measured: it fails"):
        narrowed(Machine([1.0, 1.0, 2.0, 2.0], broken=[0]))


def test_of_releases_that_are_not_monotone_the_part_with_the_largest_change_is_searched():
    machine = Machine([1.0, 1.1, 17.0, 1.2, 1.2, 1.2, 3.0, 3.0])
    search, said = narrowed(machine, first=scan)
    assert (search.low, search.high) == (0, 2)
    assert (search.ended, search.found) == (SearchEnd.CONFIRMED, (1, 2))
    assert any("become both slower and faster" in entry for entry in said)
    assert [change.pair for change in search.changes] == [(1, 2), (2, 3), (5, 6)]


def test_a_scan_of_a_large_step_leaves_little_to_probe():
    machine = Machine([1.0] * 6 + [4.0] * 6)
    search, _ = narrowed(machine, first=scan)
    assert search.found == (5, 6)
    assert not any(kind == "probe" for kind, *_ in machine.asked)


def test_a_scan_of_releases_of_which_none_gives_a_number():
    with pytest.raises(CannotRunHereError, match="No release has a result"):
        narrowed(Machine([1.0, 1.0, 2.0], broken=[0, 1, 2]), first=scan)


@pytest.mark.parametrize("budget", [95.0, 130.0])
def test_a_budget_ends_the_search_with_what_is_likely_until_then(budget):
    machine = Machine([1.0] * 100 + [2.0] * 100)
    search, _ = narrowed(machine, budget)
    assert search.ended is SearchEnd.BUDGET
    assert machine.spent <= budget
    assert not search.posterior.is_found


def test_on_a_parallel_machine_both_possible_next_candidates_are_built_ahead():
    machine = Machine([1.0] * 20 + [2.0] * 20)
    machine.is_parallel, ahead = True, []
    machine.build_ahead = ahead.extend
    narrowed(machine)
    probed = [texts[1] for kind, texts, _ in machine.asked if kind == "probe"]
    assert set(probed[1:]) <= set(ahead)
