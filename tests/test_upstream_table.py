"""The table of docs/results/upstream-issues.md has the results of the stored runs."""

import json
from dataclasses import replace

import pytest

from bench import upstream
from harness.analysis.results import Results
from harness.model.scenario import Claim
from harness.upstream.stored import PLACE
from tests.claims import BETTER, CLAIM, LEAK, WORSE, claimed_scenario
from tests.factories import cell, rounds, run


def measured(times: float, *claims: Claim, started: str = "2026-11-22T10:00:00Z") -> Results:
    launches = rounds({WORSE: 0.01 * times, BETTER: 0.01}, 5, 0.01)
    planned = run([WORSE, BETTER], scenarios=[claimed_scenario(*claims)], started=started)
    plan = replace(planned.plan, claims=[CLAIM.issue.short])
    return Results(replace(planned, plan=plan, host={"cpu": "A | CPU"}), launches)


def test_the_page_has_the_table_of_what_is_kept():
    text = upstream.PAGE.read_text()
    assert text == upstream.page(text, upstream.read_rows()), "to regenerate the page: python -m bench.upstream"


def test_a_claim_says_what_was_measured_and_no_seconds_of_another_machine():
    index = json.loads(PLACE.read_text())["scenarios"]
    claims = [(claim["issue"], name, claim) for name, entry in index.items() for claim in entry["claims"]]
    for issue, _, claim in claims:
        assert claim["program"], f"{issue}: is the program the same, similar or guessed?"
        assert claim["seconds"] is None, f"{issue}: a ratio, or bytes"
        # issues before this number are older than 1.14, the oldest release
        if issue.startswith("T#") and int(issue.removeprefix("T#")) < 29_800:
            assert claim["version"], f"{issue}: which version did the reporter have?"
    known = {(issue, name, claim["reported"]) for issue, name, claim in claims}
    assert {(row["issue"], row["scenario"], row["reported"]) for row in upstream.read_rows()} <= known


def test_a_row_has_what_a_run_told_and_no_more_digits_than_that_is_worth():
    (row,) = upstream.rows(measured(3.0, CLAIM, LEAK))
    assert (row["issue"], row["url"]) == (CLAIM.issue.short, CLAIM.issue.url)
    assert (row["at"]["outcome"], row["at"]["rounds"]) == ("confirmed", 5)
    assert row["at"]["value"] == pytest.approx(3.0, rel=0.05)
    assert len(str(row["at"]["value"])) <= 5
    assert row["seconds"] == round(sum(launch.seconds for launch in measured(3.0, CLAIM).launches))
    assert (row["date"], row["machine"]) == ("2026-11-22", "A | CPU")
    assert json.loads(json.dumps(row)) == row


def test_a_newer_run_takes_the_place_of_an_older_one():
    old = upstream.rows(measured(3.0, CLAIM))
    new = upstream.rows(measured(1.0, CLAIM, started="2026-11-23T10:00:00Z"))
    (row,) = upstream.merge_rows(old, new)
    assert (row["date"], row["at"]["outcome"]) == ("2026-11-23", "not seen")
    assert len(upstream.merge_rows(old, [{**new[0], "issue": "K#1"}])) == 2
    # a run that did not come to it says nothing about it
    unmeasured = {**new[0], "at": {**new[0]["at"], "outcome": "not measured"}}
    assert upstream.merge_rows(old, [unmeasured]) == old
    assert upstream.merge_rows([], [unmeasured]) == [unmeasured]


def test_the_newest_release_is_no_nightly_wheel_and_no_older_patch_release():
    versions = {"tf-nightly": "2.22.0.dev20260905", "tf2.21": "2.21.0", "tf2.0.1": "2.0.1"}
    sides = {cell(name, mode=mode): 0.01 for name in ("tf2.0", *versions) for mode in ("eager", "graph")}
    planned = run(sides, scenarios=[claimed_scenario(CLAIM)], asked={"claims": [CLAIM.issue.short]})
    (environment,) = planned.environments
    others = [replace(environment, name=name, tensorflow=version) for name, version in versions.items()]
    (row,) = upstream.rows(Results(replace(planned, environments=[environment, *others]), rounds(sides)))
    assert [place["environment"] for place in row["elsewhere"]] == ["tf2.0.1", "tf2.21"]
