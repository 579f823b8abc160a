"""`harness repro`, from the command line to the report."""

import json

import pytest

from tests.cli.conftest import CLAIMS, Harness

SHORT = ("--backend", "local", "--no-nightly", "--warmup", "1ms", "--measure", "5ms", "--seed", "1")


@pytest.fixture
def claiming(harness: Harness) -> Harness:
    (harness.root / "scenarios" / "upstream").mkdir()
    (harness.root / "scenarios" / "upstream" / "sums.py").write_text(CLAIMS)
    return harness


def test_the_list_tells_of_each_issue_what_it_claims_and_how_long_it_takes(claiming: Harness) -> None:
    done = claiming("repro", "list")
    heads, *rows = done.stdout.splitlines()
    assert heads.split() == ["issue", "family", "takes", "environments", "claimed"]
    assert [row.split()[0] for row in rows] == ["K#7", "T#1001"]
    assert rows[1].split(maxsplit=5)[1:] == ["calls", "1", "min", "old", "a long sum takes ten times as long"]
    assert [load["issue"] for load in json.loads(claiming("repro", "list", "--json").stdout)] == ["K#7", "T#1001"]


def test_an_unknown_issue_is_a_usage_error_that_lists_what_there_is(claiming: Harness) -> None:
    done = claiming("repro", "T#1002")
    assert done.returncode == 2
    assert "No scenario checks a claim of T#1002.\nIssues with claims: K#7, T#1001." in done.stderr


def test_exactly_the_cells_of_a_claim_are_planned(claiming: Harness) -> None:
    done = claiming("matrix", "--claim", "T#1001", "--dry-run", "--backend", "local")
    assert [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")] == [
        "sums old long",
        "sums new long",
        "sums old short",
        "sums new short",
    ]
    assert claiming("matrix", "--claim", "T#1001", "--suite", "headline", "--dry-run").returncode == 2
    refused = claiming("repro", "K#7", *SHORT)
    assert refused.returncode == 4
    assert "K#7 is claimed for a GPU" in refused.stderr


def test_a_claim_is_measured_until_it_is_clear_and_fails_on_what_was_asked(claiming: Harness) -> None:
    asked = "https://github.com/tensorflow/tensorflow/issues/1001"
    done = claiming("repro", asked, *SHORT, "--fail-on", "confirmed")
    assert done.returncode == 5, done.stderr
    # ten times is seen in two rounds; launches of a pilot would tell nothing
    assert {launch["round"] for launch in claiming.launches} >= {1, 2}
    stored = json.loads((claiming.run / "run.json").read_text())
    assert (stored["plan"]["claims"], stored["plan"]["groups"][0]["piloted"]) == (["T#1001"], False)
    assert stored["command"][:3] == ["harness", "repro", asked]
    told = done.stderr.partition("The text for the issue is in ")[2].splitlines()[0]
    assert (claiming.root / told).read_text()
    assert "These claims have no outcome" not in done.stderr


def test_claims_are_measured_in_slots_and_go_on_in_slots(claiming: Harness) -> None:
    refused = claiming("repro", "T#1001", *SHORT, "--slots", "2")
    assert refused.returncode == 4
    assert "To measure it: harness fleet check --slots 2" in refused.stderr
    done = claiming("repro", "T#1001", *SHORT, "--slots", "1")
    assert done.returncode == 0, done.stderr
    assert {launch["resources"].get("slots") for launch in claiming.launches} <= {None, 1}
    stored = json.loads((claiming.run / "run.json").read_text())
    assert stored["command"][-2:] == ["--slots", "1"]
    again = claiming("matrix", "--resume", str(claiming.run), "--slots", "1")
    assert again.returncode == 0, again.stderr


def test_a_plan_of_claims_says_when_all_have_the_rounds_of_a_verdict(claiming: Harness) -> None:
    asked = ("repro", "T#1001", "--backend", "local", "--no-nightly", "--dry-run")
    # four cells, each of 3 s until it warms up for 0.2 s and measures for 0.5 s, in three rounds
    assert (
        "After about 45 s, all claims have the rounds that a verdict needs. The run takes at most about 5 min:"
        in claiming(*asked).stdout
    )
    short = claiming(*asked, "--budget", "20s").stdout
    assert (
        "The budget ends before all claims have the rounds that a verdict needs (after 45 s). The run takes at most"
        in short
    )
    told = json.loads(claiming(*asked, "--json").stdout)
    assert round(told["outlook"]["verdicts"], 1) == 44.4
