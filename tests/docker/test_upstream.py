"""Every scenario of upstream issues once in a real release: a side of a claim, sampled as shortly as can be.

Half of them run in an older release first and half in a newer one, each in the other where that lacks what it needs.
"""

import pytest

from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.model.environment import Device
from harness.model.launch import Sampling, Status
from harness.model.scenario import Cell
from harness.plan.availability import split
from harness.project import Project
from harness.scenarios.header import parse
from tests.conftest import ROOT
from tests.lacking import for_a_campaign

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

SCENARIOS = {path.stem: parse(path.read_text(), path) for path in sorted(ROOT.glob("scenarios/upstream/*.py"))}
#: tests/docker has images of these anyway.
OLDER, NEWER = ["tf2.0", "tf1.14"], ["tf2.21"]
SHORTEST = Sampling(warmup_seconds=0.0, measure_seconds=0.01)


def first_cell(number, scenario):
    """The first side of its claims that one of the releases can run."""
    project = Project(ROOT)
    environments = load_environments(project)
    names = [*OLDER, *NEWER] if number % 2 else [*NEWER, *OLDER]
    requirements = {name: load_lock(project, environments[name], Device.CPU) for name in names}
    sides = [(claim, side) for claim in scenario.claims for side in (claim.worse, claim.better) if side]
    cells = [
        Cell(scenario.name, name, Device.CPU, {**only_values(scenario), **scenario.default, **claim.when, **side.axes})
        for name in names
        for claim, side in sides
    ]
    return split(cells, {scenario.name: scenario}, requirements, environments)[0][0]


def only_values(scenario):
    return {axis: values[0] for axis, values in scenario.axes.items() if len(values) == 1}


def find_failure(launched, number, name):
    """Why a side of the scenario's claims has no launch that says something, or nothing."""
    scenario = SCENARIOS[name]
    cell = first_cell(number, scenario)
    outcome = launched(
        cell.environment,
        scenario.path.read_bytes(),
        cell.axes,
        sampling=SHORTEST,
        environ={axis: cell.axes[axis] for axis in scenario.environ},
    )
    if outcome.status is not Status.OK:
        return f"{cell}: {outcome.error}\n{outcome.stderr}"
    # what times nothing is not launched in the rounds, so that no claim of it would have an outcome
    return "" if outcome.samples and (outcome.fingerprint or outcome.observations) else f"{cell}: it told nothing"


@pytest.mark.parametrize("names", [[*SCENARIOS][:1], *for_a_campaign([*SCENARIOS])], ids=["one", "all"])
def test_a_scenario_of_an_issue_runs_in_a_release(launched, names):
    # an odd number takes an older release first
    failures = {name: find_failure(launched, number, name) for number, name in enumerate(names, 1)}
    assert {name: failure for name, failure in failures.items() if failure} == {}
