from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.issues import Issue, parse
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Claim, ClaimSide, Scenario
from harness.plan import claims
from harness.plan.selection import Catalog, Selection, select
from tests.factories import scenario

ENVIRONMENTS = ["tf2.0", "tf2.1", "tf2.2", "tf2.21"]


def claim(issue: str = "T#1", worse: str = "tf2.0", better: str = "tf2.0", **changes: object) -> Claim:
    """`fit` takes ten times as long as `train_on_batch`, in `worse` and `better`."""
    default = Claim(
        issue=parse(issue),
        reported="fit is slow",
        worse=ClaimSide(worse, {"call": "fit"}),
        better=ClaimSide(better, {"call": "train_on_batch"}),
        ratio=(10.0, 20.0),
    )
    return replace(default, **changes)  # type: ignore[arg-type]


def make_scenario(*issues: Claim, name: str = "step") -> Scenario:
    return scenario(name, claims=issues)


def selected(
    wanted: Sequence[claims.ScenarioClaim], *others: str, device: Device = Device.CPU, missing: Sequence[str] = ()
) -> tuple[list[str], list[Unavailable]]:
    errors = {name: CannotRunHereError(f"no {name}.", "Go on.") for name in missing}
    suite, absent = claims.make_suite(wanted, others, ENVIRONMENTS, errors, device)
    if not suite.parts:
        return [], absent
    scenarios = {scenario.name: scenario for scenario, _ in wanted}
    cells, _ = select(Selection(suite=suite.name), Catalog(ENVIRONMENTS, scenarios, {suite.name: suite}), device)
    return [f"{cell.environment} {cell.axes['call']} {cell.axes['mode']}" for cell in cells], absent


def test_the_cells_of_claims_that_were_typed_in_all_environments():
    one_sided = replace(claim(), better=None, ratio=None, seconds=(5.0, 20.0))
    for claimed, others, fit, train_on_batch in (
        (claim(), ["tf2.21"], ["tf2.0", "tf2.21"], ["tf2.0", "tf2.21"]),
        (claim(worse="tf2.2", better="tf2.1"), ["tf2.21", "tf2.1"], ["tf2.1", "tf2.2", "tf2.21"], ["tf2.1"]),
        (one_sided, ["tf2.21"], ["tf2.0", "tf2.21"], []),
    ):
        cells = [f"{name} fit graph" for name in fit] + [f"{name} train_on_batch graph" for name in train_on_batch]
        assert selected(claims.find_claims(["T#1"], [make_scenario(claimed)]), *others) == (cells, []), claimed
    scenarios = [
        make_scenario(claim("T#1"), claim("K#2", when={"mode": "eager"})),
        make_scenario(claim("T#3"), name="other"),
    ]
    assert selected(claims.find_claims(["K#2"], scenarios))[0] == ["tf2.0 fit eager", "tf2.0 train_on_batch eager"]
    assert [claim.issue.short for _, claim in claims.find_claims(["T#3", "T#1", "T#3"], scenarios)] == ["T#3", "T#1"]


KNOWN = [Issue("tensorflow/tensorflow", 40261), Issue("keras-team/keras", 7), Issue("tensorflow/tensorflow", 7)]


def test_an_issue_is_found_however_it_is_written(snapshot):
    url = "https://github.com/tensorflow/tensorflow/issues/40261#issuecomment-1"
    names = {"T#40261": "T#40261", "40261": "T#40261", "#40261": "T#40261", "K#7": "K#7", url: "T#40261"}
    assert {name: claims.find_issue(name, KNOWN).short for name in names} == names
    # a number of the only repository that has it is enough
    assert claims.find_issue("7", KNOWN[:2]).short == "K#7"
    problems = {}
    for name in ("7", "40262", "predict"):
        with pytest.raises(UsageError) as raised:
            claims.find_issue(name, KNOWN)
        problems[name] = str(raised.value)
    assert problems == snapshot


def test_claims_of_another_device_or_of_environments_that_cannot_be_made_are_not_available():
    wanted = claims.find_claims(["T#1"], [make_scenario(claim(visible=[Device.GPU]))])
    cells, absent = selected(wanted)
    assert cells == []
    assert [(entry.reason, entry.advice) for entry in absent] == [("T#1 is claimed for a GPU", "Add --gpu.")] * 2
    assert selected(wanted, device=Device.GPU)[1] == []
    wanted = claims.find_claims(["T#1"], [make_scenario(claim())])
    cells, absent = selected(wanted, "tf2.21", missing=["tf2.21"])
    assert cells == ["tf2.0 fit graph", "tf2.0 train_on_batch graph"]
    assert [(entry.cell.environment, entry.reason) for entry in absent] == [("tf2.21", "no tf2.21.")] * 2


def test_claims_name_environments_by_requirements_and_newest_is_the_newest_release():
    wanted = claims.find_claims(["T#1"], [make_scenario(claim(worse="tf2.0+numpy==1.17.4", better="tf2.0"))])
    ((scenario_of_claim, renamed),) = claims.rename_environments(wanted, {"tf2.0+numpy==1.17.4": "tf2.0-numpy-1.17.4"})
    worse, better = scenario_of_claim.claimed(renamed, Device.CPU)
    assert isinstance(better, Cell)
    assert (worse.environment, better.environment) == ("tf2.0-numpy-1.17.4", "tf2.0")
    assert scenario_of_claim.claims == [renamed]
    versions = {"tf2.9": "2.9.0", "tf2.21": "2.21.0", "tf2.21-py3.13": "2.21.0", "tf2.8": "2.8.4"}
    environments = {name: Environment(name, version, "3.11", "2026-01-01") for name, version in versions.items()}
    environments["asked"] = Environment("asked", "2.22.0", "3.11", "2026-01-01", asked="tensorflow==2.22.0")
    assert claims.find_newest(environments) == "tf2.21"
    with pytest.raises(UsageError, match="The catalog is empty"):
        claims.find_newest({"asked": environments["asked"]})
