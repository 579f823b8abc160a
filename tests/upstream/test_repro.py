"""Which issues there are, and what measures them."""

from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.results import Results
from harness.model.defaults import CLAIM_MEASURE, CLAIM_WARMUP, ISSUE_BUDGET, MOST_ISSUES_BUDGET
from harness.model.errors import CannotRunHereError
from harness.model.launch import Launch
from harness.model.run import Shard
from harness.model.scenario import Cell
from harness.session.options import EVENLY
from harness.session.planning.plan import plan
from harness.session.reporting import Gate
from harness.session.request import Request
from harness.upstream import repro
from harness.upstream.stored import load_index
from tests.claims import BETTER, CLAIM, WORSE, claimed_scenario
from tests.errors import read_refusal
from tests.factories import rounds, run

LENGTHS = ("long", "short")


@pytest.mark.usefixtures("claiming")
def test_issues_are_found_by_name_by_family_and_all_of_them():
    index = load_index()
    assert index.select_issues([], every=True) == ["K#7", "T#1001"]
    assert index.select_issues([], "calls") == ["K#7", "T#1001"]
    assert index.select_issues(["1001", "T#1001"]) == ["T#1001"]


@pytest.mark.usefixtures("claiming")
def test_what_there_is_not_is_refused(snapshot):
    index = load_index()
    selections: list[tuple[list[str], dict[str, Any]]] = [
        ([], {}),
        (["T#1001"], {"every": True}),
        (["T#1001"], {"family": "calls"}),
        ([], {"family": "cals"}),
        (["T#1002"], {}),
        (["predict"], {}),
    ]
    refusals = {
        f"{words} {options}": read_refusal(lambda words=words, options=options: index.select_issues(words, **options))  # type: ignore[misc]
        for words, options in selections
    }
    planned = plan(repro.request(Request(backend="local"), index.select_issues(["K#7"]), ""))
    assert planned.cells == []
    refusals["K#7 without a GPU"] = read_refusal(planned.refuse_nothing)
    assert refusals == snapshot


@pytest.mark.usefixtures("claiming")
def test_what_is_measured_is_the_claims_cells_for_a_short_time_until_they_are_clear():
    issues = load_index().select_issues(["T#1001"])
    planned = plan(repro.request(Request(backend="local"), issues, ""))
    assert sorted(map(str, planned.cells)) == [f"sums {name} {size}" for name in ("new", "old") for size in LENGTHS]
    assert (planned.plan.claims, planned.plan.budget_seconds) == (["T#1001"], ISSUE_BUDGET)
    sampling = planned.plan.sampling
    assert (sampling.warmup_seconds, sampling.measure_seconds) == (CLAIM_WARMUP, CLAIM_MEASURE)
    # a claim of five times needs no control, and no pilot where lengths are given
    assert [(group.control, group.piloted) for group in planned.plan.groups] == [(None, False)]
    assert planned.plan.launches(0) == 0
    precise = plan(Request(backend="local", claims=["T#1001"])).plan
    assert [group.piloted for group in precise.groups] == [True]
    # what is typed is taken
    requested = Request(budget=10.0, warmup=0.0, measure=1.0, environments=["new"])
    request = repro.request(requested, issues, "night")
    assert (request.budget, request.warmup, request.measure) == (10.0, 0.0, 1.0)
    assert request.environments == ["new", "night"]
    # many issues have a longer budget
    every = load_index().select_issues([], every=True)
    assert repro.request(Request(), every, "").budget == 2 * ISSUE_BUDGET
    assert repro.request(Request(), every * 40, "").budget == MOST_ISSUES_BUDGET


@pytest.mark.slow
def test_claims_about_a_leak_have_a_control_of_growth():
    # of the catalogue's own: 40 % and more of what is claimed is enough to tell, so that no other claim has one
    planned = plan(repro.request(Request(backend="local"), load_index().select_issues(["T#33009"]), ""))
    assert [str(group.control) for group in planned.plan.groups] == ["predict_memory tf2.0 predict"]


@pytest.mark.slow
def test_a_shard_of_many_claims_has_all_groups_of_a_scenario():
    # of the catalogue's own: the claims of a scenario are judged together
    issues = load_index().select_issues([], "memory")
    parts = [
        plan(repro.request(Request(backend="local", shard=Shard(number, 2), balance=EVENLY), issues, "")).plan
        for number in (1, 2)
    ]
    scenarios = [{group.scenario for group in part.groups} for part in parts]
    assert all(scenarios)
    assert not scenarios[0] & scenarios[1]
    assert len(parts[0].groups) + len(parts[1].groups) > len(scenarios[0] | scenarios[1])


def claimed_results(launches: list[Launch], *cells: Cell) -> Results:
    one_run = run([WORSE, BETTER, *cells], scenarios=[claimed_scenario()])
    return Results(replace(one_run, plan=replace(one_run.plan, claims=[CLAIM.issue.short])), launches)


def test_a_gate_of_claims():
    gates = {
        (3.0, "confirmed"): (Gate.SLOWER, []),
        (3.0, "fixed"): (Gate.PASSED, []),
        (1.0, "confirmed"): (Gate.PASSED, []),
        (None, "confirmed"): (Gate.NOTHING_JUDGED, [CLAIM.issue.short]),
    }
    results = {}
    for times, wanted in gates:
        measured = claimed_results(rounds({WORSE: 0.01 * times, BETTER: 0.01}, 5, 0.01) if times else [])
        results[times, wanted] = (repro.gate(measured, wanted), repro.find_unfinished(measured))
    assert results == gates
    # claims that nobody requested are passed over
    launches = rounds({WORSE: 0.03, BETTER: 0.01}, 5, 0.01)
    unrequested = Results(run([WORSE, BETTER], scenarios=[claimed_scenario()]), launches)
    assert repro.gate(unrequested, "confirmed") is Gate.NOTHING_JUDGED
    # one that is gone later is fixed
    later = replace(WORSE, environment="tf2.1"), replace(BETTER, environment="tf2.1")
    launches = rounds({WORSE: 0.03, BETTER: 0.01, later[0]: 0.01, later[1]: 0.01}, 5, 0.005)
    assert repro.gate(claimed_results(launches, *later), "fixed") is Gate.SLOWER


def test_a_nightly_that_cannot_be_had_is_said(claiming, monkeypatch):
    def refuse(_: object, names: list[str]) -> None:
        raise CannotRunHereError(f"{names[0]}: the index does not answer.")

    monkeypatch.setattr(repro, "add_requested", refuse)
    for request, package in ((Request(), "tf-nightly-cpu"), (Request(gpu=True), "tf-nightly")):
        sentences: list[str] = []
        assert repro.find_nightly(request, sentences.append) == ""
        assert sentences == [f"Not measured in {package}: {package}: the index does not answer."]
