"""The library of claims of upstream issues: what it has to hold, whatever each of them says."""

from collections import Counter
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.header import parse
from harness.catalog.project import Project

ROOT = Path(__file__).resolve().parents[2]
UPSTREAM = {path.stem: parse(path.read_text(), path) for path in sorted(ROOT.glob("scenarios/upstream/*.py"))}
FAMILIES = {
    *("calls", "training", "functions", "data", "layers", "optimizers"),
    *("memory", "load", "onednn", "text", "tflite", "conversions", "kernels"),
}
NOBODY_COULD = "not reproduced"
CLAIMS = [claim for scenario in UPSTREAM.values() for claim in scenario.claims]


@pytest.mark.parametrize("scenario", list(UPSTREAM.values()), ids=list(UPSTREAM))
def test_it_is_of_one_family_and_its_source_is_the_first_claims_issue(scenario):
    assert len(FAMILIES & set(scenario.tags)) == 1
    assert scenario.tags[0] == "upstream"
    assert set(scenario.tags) <= {"upstream", NOBODY_COULD, *FAMILIES}
    assert scenario.source in {claim.issue.url for claim in scenario.claims}


@pytest.mark.parametrize("scenario", list(UPSTREAM.values()), ids=list(UPSTREAM))
def test_its_claims_name_environments_of_the_catalogue(scenario):
    known = load_environments(Project(ROOT))
    sides = [side for claim in scenario.claims for side in (claim.worse, claim.better) if side]
    assert {side.environment.partition("+")[0] for side in sides} <= set(known)


def test_every_family_has_a_scenario():
    assert {tag for scenario in UPSTREAM.values() for tag in scenario.tags} >= FAMILIES


def test_at_least_45_issues_are_claimed_five_of_leaks_and_five_that_nobody_could_reproduce():
    issues = {claim.issue for claim in CLAIMS}
    leaks = {claim.issue for claim in CLAIMS if claim.bytes}
    tagged = [scenario for scenario in UPSTREAM.values() if NOBODY_COULD in scenario.tags]
    assert len(issues) >= 45, Counter(issue.repository for issue in issues)
    assert len(leaks) >= 5
    assert len({claim.issue for scenario in tagged for claim in scenario.claims}) >= 5
