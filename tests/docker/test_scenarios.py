"""Every scenario in real releases of TensorFlow: the cells of the suite `once`, in one run."""

import json

import pytest

from harness.model.scenario import has_values
from harness.scenarios.header import parse
from tests.commands import run_harness
from tests.conftest import ROOT

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

SCENARIOS = {path.stem: parse(path.read_text(), path) for path in sorted(ROOT.glob("scenarios/*.py"))}
#: Whose code depends on the release; test_matrix.py has keras_step in several.
DEPENDENT = {"function_behaviour", "function_retracing", "train_batch"}


#: Two cells of a scenario whose source states what is observed.
CELLS = ("-s", "function_retracing", "-a", "argument=tensor", "-e", "tf2.0")


def run_matrix(results, *options):
    """Return the launches of one run."""
    process = run_harness("matrix", *options, "--backend", "docker", "--results", str(results))
    assert process.returncode == 0, process.stderr
    (folder,) = results.iterdir()
    launches = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
    assert {launch["status"] for launch in launches} == {"ok"}
    for launch in launches:
        assert (launch["samples"] and launch["fingerprint"]) or launch["observations"]
    return launches


def check_stated(launches):
    """Check the observations that the sources state, and return their names."""
    checked = set()
    for launch in launches:
        cell = launch["cell"]
        for expected in SCENARIOS[cell["scenario"]].expect:
            if has_values(expected.when, cell["axes"]):
                assert launch["observations"].get(expected.observation) == expected.value, (cell, expected.observation)
                checked.add((cell["scenario"], expected.observation))
    return checked


def test_a_scenario_runs_in_a_release_and_what_its_source_states_is_observed(need_images, tmp_path):
    need_images("tf2.0")
    assert check_stated(run_matrix(tmp_path, *CELLS, "--seed", "1", "--rounds", "1"))


@pytest.mark.campaign
def test_each_scenario_runs_in_a_release_and_in_three_where_its_code_depends_on_it(engine, tmp_path):
    launches = run_matrix(tmp_path, "--suite", "once", "--seed", "1")
    releases = {name: set() for name in SCENARIOS}
    for launch in launches:
        releases[launch["cell"]["scenario"]].add(launch["cell"]["environment"])
    counts = {name: len(environments) for name, environments in releases.items()}
    assert counts == {name: 3 if name in DEPENDENT else 1 for name in SCENARIOS}
    assert len(check_stated(launches)) > 20
    # a step of one's own trains alike in every release
    proofs = [launch["fingerprint"] for launch in launches if launch["cell"]["scenario"] == "train_batch"]
    assert proofs
    for proof in proofs:
        assert proof["steps_counted"] == proof["steps_called"]
        assert proof["losses"] == pytest.approx(proofs[0]["losses"], rel=1e-4)
