"""What is said of a history: which changes are watched, suspected, likely, confirmed or refuted, and why."""

import itertools
from dataclasses import replace

from harness.history.states import State, find_changes
from harness.model.history import Decision
from tests.history.nights import judge_series
from tests.history.series import KEY, noise, of_line, series, stepped

LOCK = {"lock": "bbbbbbbbbbbb"}
MOVED = "the lock of tf2.1 (aaaaaaaa → bbbbbbbb)"


def decision(finding, *, confirmed=True, **changes):
    values = (finding.key, finding.since, list(finding.suspects), confirmed, "run-x", "2026", 1.08, 1.07, 1.09)
    return replace(Decision(*values), **changes)


def find_one(logs, origins=None, decisions=(), key=KEY):
    (finding,) = find_changes([series(logs, origins, key)], decisions)
    return finding


def test_a_step_is_suspected_from_the_night_on_in_which_something_moved():
    finding = find_one(stepped(40, 50), {40: LOCK})
    assert (finding.state, finding.since, finding.suspects) == (State.SUSPECTED, "run-040", [MOVED])
    assert finding.low < 1.08 < finding.high
    assert finding.started.startswith("2026-02-10")
    # a mark nearby is where the change is, and one farther away is no suspect
    logs = stepped(40, 50, share=0.3)
    for night in (38, 39, 41, 42):
        finding = find_one(logs, {night: LOCK})
        assert (finding.since, finding.suspects) == (f"run-{night:03}", [MOVED])
    for night in (36, 37):
        finding = find_one(logs, {night: LOCK})
        assert (finding.since, finding.suspects) == ("run-040", [])
    # nights without a number don't count
    finding = find_one([*logs[:40], *[None] * 6, *logs[40:]], {42: LOCK})
    assert (finding.since, finding.suspects) == ("run-042", [MOVED])


def test_nothing_is_compared_across_a_cut_and_each_side_of_it_is_searched():
    for cut in ({"driver": "new"}, {"kit": "k2"}, {"reference_lock": "dddd"}):
        judged = judge_series(series(stepped(40, 60, share=0.3), {40: cut}))
        assert (judged.changes, judged.findings) == ([], [])
        assert [boundary.is_cut for boundary in judged.breaks] == [True]
    judged = judge_series(series([*stepped(20, 40, 0.3), *stepped(20, 40, -0.3)], {40: {"driver": "new"}}))
    assert [change.index for change in judged.changes] == [20, 60]
    assert [finding.ratio > 1.0 for finding in judged.findings] == [True, False]


def test_a_step_is_watched_in_its_first_night_and_likely_and_confirmed_by_runs_side_by_side():
    steps = [find_changes([series(stepped(40, 40 + nights))]) for nights in (1, 2, 3)]
    assert [[finding.state for finding in findings] for findings in steps] == [
        [State.WATCH],
        [State.WATCH],
        [State.SUSPECTED],
    ]
    ((first,), _, (last,)) = steps
    assert (first.since, first.decision, last.since) == ("run-040", None, "run-040")
    likely, again = (decision(first, run=run) for run in ("run-040-x", "run-041-x"))
    refuted = replace(again, confirmed=False)
    for decisions, states in (
        ([likely], [State.LIKELY]),
        ([likely, again], [State.CONFIRMED]),
        # nothing is left of it, and it isn't found again
        ([likely, refuted], []),
        ([refuted], []),
    ):
        findings = find_changes([series(stepped(40, 42))], decisions)
        assert [finding.state for finding in findings] == states, decisions
    # of a change that the series shows, one is enough
    assert find_one(stepped(40, 43), decisions=[likely]).state is State.CONFIRMED


def test_more_work_is_watched_in_its_first_night_until_a_confirmation_saw_it():
    quiet = series(noise(41))
    points = [point._replace(calls=848.0 if night < 40 else 1197.0) for night, point in enumerate(quiet.points)]
    (finding,) = find_changes([replace(quiet, points=points)])
    assert (finding.state, finding.since) == (State.WATCH, "run-040")
    assert find_changes([replace(quiet, points=points)], [decision(finding, confirmed=False)]) == []
    later = series(noise(44))
    points = [point._replace(calls=848.0 if night < 40 else 1197.0) for night, point in enumerate(later.points)]
    assert find_changes([replace(later, points=points)]) == []
    less = [point._replace(calls=1197.0 if night < 40 else 848.0) for night, point in enumerate(quiet.points)]
    assert find_changes([replace(quiet, points=less)]) == []


def test_a_refutation_is_not_of_what_came_later():
    before = find_one(stepped(40, 41))
    refuted = decision(before, confirmed=False, run="run-040-x")
    (finding,) = find_changes([series([*noise(41), *noise(4, 0.08)])], [refuted])
    assert (finding.state, finding.since) == (State.SUSPECTED, "run-041")


def test_a_drift_is_between_a_month_ago_and_the_newest_night():
    finding = find_one([*noise(30), *(value + 0.0015 * night for night, value in enumerate(noise(40, seed=1)))])
    assert (finding.state, finding.is_drift) == (State.WATCH, True)
    assert finding.since == "run-033"


def test_what_was_taken_back_is_over_unless_it_was_confirmed():
    one_series = series([*stepped(30, 40), *noise(10, seed=7)], {30: LOCK, 40: {"lock": "cccccccccccc"}})
    assert find_changes([one_series]) == []
    before = find_one([point.log_ratio for point in one_series.points[:40]], {30: LOCK})
    later = find_changes([one_series], [decision(before)])
    assert [finding.state for finding in later] == [State.CONFIRMED, State.SUSPECTED]
    assert later[-1].ratio < 1.0


def test_a_decision_is_remembered_for_its_suspects_series_or_place():
    before = find_one(stepped(40, 44), {40: LOCK})
    confirmed, refuted = decision(before), decision(before, confirmed=False)
    for decisions, state in (
        ([confirmed], State.CONFIRMED),
        ([refuted], State.REFUTED),
        ([refuted, confirmed], State.CONFIRMED),
        ([confirmed, refuted], State.REFUTED),
    ):
        finding = find_one(stepped(40, 60), {40: LOCK}, decisions)
        assert (finding.state, finding.since) == (state, before.since)
    one_series = series(stepped(40, 60), {40: LOCK})
    (finding,) = find_changes([one_series])
    others = [
        decision(finding, confirmed=False, suspects=["the lock of tf2.1 (aaaaaaaa → eeeeeeee)"]),
        decision(finding, confirmed=False, suspects=[]),
        decision(finding, confirmed=False, key=replace(KEY, environment="tf2.2")),
    ]
    assert find_changes([one_series], others) == [finding]
    one_series = series(stepped(40, 60))
    (finding,) = find_changes([one_series])
    near, far = (decision(finding, confirmed=False, since=f"run-{night:03}") for night in (42, 43))
    assert find_changes([one_series], [near])[0].state is State.REFUTED
    assert find_changes([one_series], [far]) == [finding]


def test_one_cause_is_of_one_environment_or_of_one_file_on_one_machine():
    def find_cause(origin, **changes):
        return find_one(stepped(40, 60), {40: origin}, key=replace(KEY, **changes)).cause

    plain = find_cause(LOCK)
    assert plain == find_cause(LOCK, axes=(("call", "train"),)) == find_cause(LOCK, scenario="other")
    assert len({plain, find_cause(LOCK, environment="tf2.2"), find_cause(LOCK, machine="m-2"), find_cause({})}) == 4
    assert find_cause({"scenario": "s2"}) == find_cause({"scenario": "s2"}, environment="tf2.2")


def test_a_decision_on_a_line_is_about_the_place_and_not_about_the_versions_of_one_night():
    one_series = of_line(stepped(40, 50, share=0.3))
    (finding,) = find_changes([one_series])
    assert finding.suspects == ["the version of tf-nightly (tf-nightly==2.23.0.dev039 → tf-nightly==2.23.0.dev040)"]
    pair = ["tf-nightly==2.23.0.dev041", "tf-nightly==2.23.0.dev042"]
    for near in ({"since": "run-042"}, {"since": "gone", "pair": pair}):
        (later,) = find_changes([one_series], [decision(finding, **{"suspects": ["another version"], **near})])
        assert later.state is State.CONFIRMED
        assert (" → ".join(pair) in later.cause) == ("pair" in near)
    other = decision(finding, since="run-020", suspects=["another version"], confirmed=False)
    (far,) = find_changes([one_series], [other])
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
