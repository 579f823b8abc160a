"""Every scenario in real releases of TensorFlow: the cells of the suite `once`, in one run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalog.header import parse
from harness.model.scenario import has_values

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]
SCENARIOS = {path.stem: parse(path.read_text(), path) for path in sorted(ROOT.glob("scenarios/*.py"))}
#: Whose code depends on the release; test_matrix.py has keras_step in several.
DEPENDENT = {"function_behaviour", "function_retracing", "train_batch"}


@pytest.fixture(scope="module")
def launches(engine, tmp_path_factory):
    """The launches of one run."""
    results = tmp_path_factory.mktemp("results")
    options = ["--suite", "once", "--seed", "1", "--backend", "docker", "--results", str(results)]
    done = subprocess.run(
        [sys.executable, "-m", "harness", "matrix", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder,) = results.iterdir()
    return [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]


def test_every_cell_ran(launches):
    assert {launch["status"] for launch in launches} == {"ok"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_was_launched_in_a_release_and_in_three_where_its_code_depends_on_it(launches, name):
    releases = {launch["cell"]["environment"] for launch in launches if launch["cell"]["scenario"] == name}
    assert len(releases) == (3 if name in DEPENDENT else 1)


def test_every_launch_told_a_time_with_a_proof_or_an_observation(launches):
    for launch in launches:
        assert (launch["samples"] and launch["fingerprint"]) or launch["observations"]


def test_what_the_sources_state_was_observed(launches):
    checked = set()
    for launch in launches:
        cell = launch["cell"]
        for expected in SCENARIOS[cell["scenario"]].expect:
            if has_values(expected.when, cell["axes"]):
                seen = launch["observations"].get(expected.observation)
                assert seen == expected.value, (cell, expected.observation)
                checked.add((cell["scenario"], expected.observation))
    assert len(checked) > 20


def test_a_step_of_one_s_own_trains_alike_in_every_release(launches):
    proofs = [launch["fingerprint"] for launch in launches if launch["cell"]["scenario"] == "train_batch"]
    assert proofs
    for proof in proofs:
        assert proof["steps_counted"] == proof["steps_called"]
        assert proof["losses"] == pytest.approx(proofs[0]["losses"], rel=1e-4)
