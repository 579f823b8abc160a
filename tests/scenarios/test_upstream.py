"""The library of claims of upstream issues: what it has to hold, whatever each of them says."""

from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.header import parse
from harness.catalog.project import Project

ROOT = Path(__file__).resolve().parents[2]
UPSTREAM = {path.stem: parse(path.read_text(), path) for path in sorted(ROOT.glob("scenarios/upstream/*.py"))}
FAMILIES = {"calls", "training", "functions", "data", "layers", "optimizers", "memory", "load", "onednn"}
NOBODY_COULD = "not reproduced"


@pytest.mark.parametrize("scenario", UPSTREAM.values(), ids=UPSTREAM)
def test_it_is_of_one_family_and_its_source_is_the_first_claims_issue(scenario):
    assert len(FAMILIES & set(scenario.tags)) == 1
    assert scenario.tags[0] == "upstream"
    assert set(scenario.tags) <= {"upstream", NOBODY_COULD, *FAMILIES}
    assert scenario.source in {claim.issue.url for claim in scenario.claims}


@pytest.mark.parametrize("scenario", UPSTREAM.values(), ids=UPSTREAM)
def test_its_claims_name_environments_of_the_catalogue(scenario):
    known = load_environments(Project(ROOT))
    sides = [side for claim in scenario.claims for side in (claim.worse, claim.better) if side]
    assert {side.environment.partition("+")[0] for side in sides} <= set(known)
