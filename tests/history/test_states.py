"""What is said of a history: which changes are watched, suspected, confirmed and refuted, and of which cause."""

import itertools
import math
from dataclasses import replace

import pytest

from harness.history.states import SearchOptions, State, find_changes, judge_series
from harness.model.history import Decision
from tests.history.series import KEY, noise, of_line, series, stepped

LOCK = {"lock": "bbbbbbbbbbbb"}
MOVED = "the lock of tf2.1 (aaaaaaaa → bbbbbbbb)"


def decision(finding, *, confirmed=True, **changed):
    made = Decision(finding.key, finding.since, list(finding.suspects), confirmed, "run-x", "2026", 1.08, 1.07, 1.09)
    return replace(made, **changed)


def test_a_step_is_suspected_from_the_night_on_in_which_the_lock_moved():
    (found,) = find_changes([series(stepped(40, 50), {40: LOCK})])
    assert (found.state, found.since, found.suspects) == (State.SUSPECTED, "run-040", [MOVED])
    assert found.low < 1.08 < found.high
    assert found.started.startswith("2026-02-10")


@pytest.mark.parametrize("apart", [-2, -1, 1, 2])
def test_a_mark_nearby_is_where_the_change_is(apart):
    (found,) = find_changes([series(stepped(40, 50, share=0.3), {40 + apart: LOCK})])
    assert (found.since, found.suspects) == (f"run-{40 + apart:03}", [MOVED])


def test_a_mark_far_away_is_no_suspect():
    (found,) = find_changes([series(stepped(40, 50, share=0.3), {36: LOCK})])
    assert (found.since, found.suspects) == ("run-040", [])


def test_what_changed_in_a_night_without_a_number_is_suspected():
    logs = stepped(40, 52, share=0.3)
    (found,) = find_changes([series([*logs[:40], *[None] * 6, *logs[40:]], {42: LOCK})])
    assert (found.since, found.suspects) == ("run-042", [MOVED])


@pytest.mark.parametrize("cut", [{"driver": "new"}, {"kit": "k2"}, {"reference_lock": "dddd"}])
def test_nothing_is_compared_across_a_cut(cut):
    seen = judge_series(series(stepped(40, 60, share=0.3), {40: cut}))
    assert (seen.changes, seen.findings) == ([], [])
    assert [entry.is_cut for entry in seen.breaks] == [True]


def test_a_change_is_found_in_either_epoch():
    logs = [*stepped(20, 40, 0.3), *stepped(20, 40, -0.3)]
    seen = judge_series(series(logs, {40: {"driver": "new"}}))
    assert [change.index for change in seen.changes] == [20, 60]
    assert [finding.ratio > 1.0 for finding in seen.findings] == [True, False]


def test_two_nights_are_watched_and_one_is_not():
    steps = [find_changes([series(stepped(40, 40 + nights))]) for nights in (1, 2, 3)]
    assert [[entry.state for entry in found] for found in steps] == [[], [State.WATCH], [State.SUSPECTED]]


def test_what_slow_swings_may_explain_is_watched():
    swings = [each + 0.04 * math.sin(night / 3.0) for night, each in enumerate(noise(40, spread=0.002))]
    (found,) = find_changes([series([*swings, *noise(6, 0.1, spread=0.002)])])
    assert (found.state, found.since) == (State.WATCH, "run-040")


def test_what_was_taken_back_is_over_unless_it_was_confirmed():
    of = series([*stepped(30, 40), *noise(10, seed=7)], {30: LOCK, 40: {"lock": "cccccccccccc"}})
    assert find_changes([of]) == []
    (was,) = find_changes([series(of_first(of, 40), {30: LOCK})])
    again = find_changes([of], [decision(was)])
    assert [entry.state for entry in again] == [State.CONFIRMED, State.SUSPECTED]
    assert again[-1].ratio < 1.0


def of_first(of, nights):
    return [point.log_ratio for point in of.points[:nights]]


@pytest.mark.parametrize(("confirmed", "state"), [(True, State.CONFIRMED), (False, State.REFUTED)])
def test_a_decision_is_remembered_in_the_nights_after(confirmed, state):
    (found,) = find_changes([series(stepped(40, 44), {40: LOCK})])
    of = series(stepped(40, 60), {40: LOCK})
    (later,) = find_changes([of], [decision(found, confirmed=confirmed)])
    assert later.state is state
    assert later.since == found.since


def test_a_decision_is_of_its_suspects_and_of_its_series():
    of = series(stepped(40, 60), {40: LOCK})
    (found,) = find_changes([of])
    others = [
        decision(found, confirmed=False, suspects=["the lock of tf2.1 (aaaaaaaa → eeeeeeee)"]),
        decision(found, confirmed=False, suspects=[]),
        decision(found, confirmed=False, key=replace(KEY, environment="tf2.2")),
    ]
    assert find_changes([of], others) == [found]


def test_a_decision_of_a_change_without_a_suspect_is_of_its_place():
    of = series(stepped(40, 60))
    (found,) = find_changes([of])
    near, far = (decision(found, confirmed=False, since=f"run-{night:03}") for night in (42, 43))
    assert find_changes([of], [near])[0].state is State.REFUTED
    assert find_changes([of], [far]) == [found]


def test_the_last_decision_counts():
    of = series(stepped(40, 60), {40: LOCK})
    (found,) = find_changes([of])
    both = [decision(found, confirmed=False), decision(found)]
    assert find_changes([of], both)[0].state is State.CONFIRMED


def test_one_cause_is_of_one_environment_or_of_one_file_on_one_machine():
    def cause(changed, **key):
        (found,) = find_changes([series(stepped(40, 60), {40: changed}, replace(KEY, **key))])
        return found.cause

    assert cause(LOCK) == cause(LOCK, axes=(("call", "train"),)) == cause(LOCK, scenario="other")
    assert len({cause(LOCK), cause(LOCK, environment="tf2.2"), cause(LOCK, machine="m-2"), cause({})}) == 4
    file = {"scenario": "s2"}
    assert cause(file) == cause(file, environment="tf2.2")


def test_series_without_a_reference_have_no_finding():
    assert find_changes([series([None] * 50)]) == []


def test_the_options_are_those_of_the_detector():
    of = series(stepped(40, 60, 0.05))
    assert find_changes([of])
    assert not find_changes([of], options=SearchOptions(least=math.log1p(0.2)))
    for strict in (SearchOptions(fewest=30), SearchOptions(p=1e-200)):
        assert [change.state for change in find_changes([of], options=strict)] == [State.WATCH]


def test_a_decision_on_a_line_is_about_the_place_and_not_about_the_versions_of_one_night():
    of = of_line(stepped(40, 50, share=0.3))
    (found,) = find_changes([of])
    assert found.suspects == ["the version of tf-nightly (tf-nightly==2.23.0.dev039 → tf-nightly==2.23.0.dev040)"]
    pair = ["tf-nightly==2.23.0.dev041", "tf-nightly==2.23.0.dev042"]
    for near in ({"since": "run-042"}, {"since": "gone", "pair": pair}):
        (again,) = find_changes([of], [decision(found, **{"suspects": ["another version"], **near})])
        assert again.state is State.CONFIRMED
        assert (" → ".join(pair) in again.cause) == ("pair" in near)
    (far,) = find_changes([of], [decision(found, since="run-020", suspects=["another version"])])
    assert far.state is State.SUSPECTED


def test_the_difference_between_two_rounds_of_a_night_changes_no_finding():
    steady = series(stepped(40, 50))
    points = [
        point._replace(rounds=2, low=point.log_ratio - width, high=point.log_ratio + width)
        for point, width in zip(steady.points, itertools.cycle([0.001, 0.8, 0.05]), strict=False)
    ]
    same = [point._replace(rounds=2) for point in steady.points]
    assert judge_series(replace(steady, points=points)).changes == judge_series(replace(steady, points=same)).changes
    assert find_changes([replace(steady, points=points)])
