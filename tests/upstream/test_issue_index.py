"""Which issues there are, and what measures them."""

import json
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.defaults import CLAIM_MEASURE, CLAIM_WARMUP, ISSUE_BUDGET, MOST_ISSUES_BUDGET
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.issues import parse
from harness.model.run import Shard
from harness.session.planning import plan
from harness.session.reporting import Gate
from harness.session.request import EVENLY, Request
from harness.upstream import repro
from harness.upstream.issue_index import KnownIssue, load_library
from tests.claims import BETTER, CLAIM, WORSE, claimed_scenario
from tests.cli.conftest import Harness
from tests.factories import rounds, run


def names(found: list[KnownIssue]) -> list[str]:
    return [entry.issue.short for entry in found]


@pytest.mark.usefixtures("claiming")
def test_issues_are_found_by_name_by_family_and_all_of_them() -> None:
    known = load_library()
    assert names(known.select([], every=True)) == ["K#7", "T#1001"]
    assert names(known.select([], "calls")) == ["K#7", "T#1001"]
    assert names(known.select(["1001", "T#1001"])) == ["T#1001"]
    assert (known.families, known.newest) == (["calls"], "new")


@pytest.mark.usefixtures("claiming")
@pytest.mark.parametrize(
    ("typed", "options", "told"),
    [
        ([], {}, "No issue is specified"),
        (["T#1001"], {"every": True}, "T#1001 and --all both select issues"),
        (["T#1001"], {"family": "calls"}, "T#1001 and --family both select issues"),
        ([], {"family": "cals"}, "Unknown family: 'cals'. Did you mean calls?"),
        (["T#1002"], {}, r"No scenario checks a claim of T#1002\."),
        (["predict"], {}, "'predict' is not a valid issue name"),
    ],
)
def test_what_there_is_not_is_told(typed: list[str], options: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        load_library().select(typed, **options)  # type: ignore[arg-type]


@pytest.mark.usefixtures("claiming")
def test_an_issue_is_told_as_json() -> None:
    known = load_library()
    (told,) = json.loads(known.document(known.select(["T#1001"])))
    assert told["issue"] == "T#1001"
    assert told["url"].endswith("/tensorflow/tensorflow/issues/1001")
    assert (told["families"], told["environments"]) == (["calls"], ["old"])
    assert told["claims"][0]["ratio"] == [5.0, 30.0]
    assert told["seconds"] > 0.0


def test_what_a_stored_run_took_is_known(claiming: Harness) -> None:
    assert load_library().issues[parse("T#1001")].took == 0.0
    (claiming.root / "docs").mkdir()
    kept = claiming.root / "docs" / "upstream.json"
    kept.write_text('[{"issue": "T#1001", "seconds": 90}, {"issue": "T#1001", "seconds": 45}]')
    known = load_library()
    assert (known.issues[parse("T#1001")].seconds(known.newest), known.issues[parse("K#7")].took) == (90, 0.0)
    kept.write_text("[{}]")
    assert load_library().issues[parse("T#1001")].took == 0.0


@pytest.mark.usefixtures("claiming")
def test_what_is_measured_is_the_claims_cells_for_a_short_time_until_they_are_clear() -> None:
    found = load_library().select(["T#1001"])
    planned = plan(repro.request(Request(backend="local"), found, ""))
    assert [str(cell) for cell in planned.cells] == [
        "sums old long",
        "sums new long",
        "sums old short",
        "sums new short",
    ]
    made = planned.plan
    assert (made.claims, made.budget_seconds) == (["T#1001"], ISSUE_BUDGET)
    assert (made.sampling.warmup_seconds, made.sampling.measure_seconds) == (CLAIM_WARMUP, CLAIM_MEASURE)
    # a claim of five times needs no control, and no pilot where lengths are given
    assert [(group.control, group.piloted) for group in made.groups] == [(None, False)]
    assert made.launches(0) == 0
    precise = plan(Request(backend="local", claims=["T#1001"])).plan
    assert [group.piloted for group in precise.groups] == [True]


def test_claims_about_a_leak_have_a_control_of_growth() -> None:
    # of the catalogue's own: 40 % and more of what is claimed is enough to tell, so that no other claim has one
    planned = plan(repro.request(Request(backend="local"), load_library().select(["T#33009"]), ""))
    assert [str(group.control) for group in planned.plan.groups] == ["predict_memory tf2.0 predict"]


def test_a_shard_of_many_claims_has_all_groups_of_a_scenario() -> None:
    # of the catalogue's own: the claims of a scenario are judged together
    issues = load_library().select([], "memory")
    parts = [
        plan(repro.request(Request(backend="local", shard=Shard(number, 2), balance=EVENLY), issues, "")).plan
        for number in (1, 2)
    ]
    scenarios = [{group.scenario for group in part.groups} for part in parts]
    assert all(scenarios)
    assert not scenarios[0] & scenarios[1]
    assert len(parts[0].groups) + len(parts[1].groups) > len(scenarios[0] | scenarios[1])


@pytest.mark.usefixtures("claiming")
def test_what_is_typed_is_taken() -> None:
    asked = Request(budget=10.0, warmup=0.0, measure=1.0, environments=["new"])
    made = repro.request(asked, load_library().select(["T#1001"]), "night")
    assert (made.budget, made.warmup, made.measure) == (10.0, 0.0, 1.0)
    assert made.environments == ["new", "night"]


@pytest.mark.usefixtures("claiming")
def test_many_issues_have_a_longer_budget() -> None:
    found = load_library().select([], every=True)
    assert repro.request(Request(), found, "").budget == 2 * ISSUE_BUDGET
    assert repro.request(Request(), found * 40, "").budget == MOST_ISSUES_BUDGET


@pytest.mark.usefixtures("claiming")
def test_a_claim_of_a_gpu_cannot_be_measured_without_one() -> None:
    planned = plan(repro.request(Request(backend="local"), load_library().select(["K#7"]), ""))
    assert planned.cells == []
    with pytest.raises(CannotRunHereError, match="K#7 is claimed for a GPU") as refused:
        planned.refuse_nothing()
    assert refused.value.advice == "Add --gpu."


@pytest.mark.parametrize(
    ("times", "wanted", "gate", "left"),
    [
        (3.0, "confirmed", Gate.SLOWER, []),
        (3.0, "fixed", Gate.PASSED, []),
        (1.0, "confirmed", Gate.PASSED, []),
        (None, "confirmed", Gate.NOTHING_JUDGED, [CLAIM.issue.short]),
    ],
)
def test_a_gate_of_claims(times: float | None, wanted: str, gate: Gate, left: list[str]) -> None:
    launches = rounds({WORSE: 0.01 * times, BETTER: 0.01}, 5, 0.01) if times else []
    asked = run([WORSE, BETTER], scenarios=[claimed_scenario()])
    results = Results(replace(asked, plan=replace(asked.plan, claims=[CLAIM.issue.short])), launches)
    assert (repro.gate(results, wanted), repro.find_unfinished(results)) == (gate, left)


def test_a_gate_passes_over_claims_that_nobody_asked_for() -> None:
    launches = rounds({WORSE: 0.03, BETTER: 0.01}, 5, 0.01)
    assert (
        repro.gate(Results(run([WORSE, BETTER], scenarios=[claimed_scenario()]), launches), "confirmed")
        is Gate.NOTHING_JUDGED
    )


def test_a_claim_that_is_gone_later_is_fixed() -> None:
    later = replace(WORSE, environment="tf2.1"), replace(BETTER, environment="tf2.1")
    launches = rounds({WORSE: 0.03, BETTER: 0.01, later[0]: 0.01, later[1]: 0.01}, 5, 0.005)
    asked = run([WORSE, BETTER, *later], scenarios=[claimed_scenario()])
    results = Results(replace(asked, plan=replace(asked.plan, claims=[CLAIM.issue.short])), launches)
    assert repro.gate(results, "fixed") is Gate.SLOWER


@pytest.mark.parametrize(("options", "package"), [({}, "tf-nightly-cpu"), ({"gpu": True}, "tf-nightly")])
def test_a_nightly_that_cannot_be_had_is_told(
    claiming: Harness, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], package: str
) -> None:
    def refuse(_: object, typed: list[str]) -> None:
        raise CannotRunHereError(f"{typed[0]}: the index does not answer.")

    monkeypatch.setattr(repro, "add_requested", refuse)
    told: list[str] = []
    assert repro.find_nightly(Request(**options), told.append) == ""  # type: ignore[arg-type]
    assert told == [f"Not measured in {package}: {package}: the index does not answer."]
