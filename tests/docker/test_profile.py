"""`harness profile` of the famous pair: real TensorFlow 1.14 and 2.0 in real containers."""

import json
import pstats
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.profiles import find_moves, sum_by_name
from harness.model.profile import Part
from harness.store.folder import RunFolder

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(engine, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    command = ["profile", "--suite", "quick", "--calls", "20", "--backend", "docker", "--results", str(results)]
    done = subprocess.run(
        [sys.executable, "-m", "harness", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (made,) = results.iterdir()
    return RunFolder(made)


@pytest.fixture(scope="module")
def profiles(folder):
    return {launch.cell.environment: folder.read_profiles(launch) for launch in folder.read_launches()}


def test_a_graph_s_step_is_one_call_into_tensorflow(profiles):
    steady = sum_by_name(profiles["tf1.14"][Part.STEADY])
    assert steady["TF_SessionRunCallable"].calls == 20
    assert steady["training.train_on_batch"].cumulative_share > 0.9


def test_building_is_in_the_first_call_alone(profiles):
    first, later = (sum_by_name(profiles["tf1.14"][part]) for part in Part)
    assert first["ops.create_op"].calls > 100
    assert "ops.create_op" not in later


def test_tensorflow_2_0_computes_a_gradient_that_nobody_needs(profiles):
    """With respect to the input batch, in the first layer: a graph leaves it out."""
    moved = find_moves(profiles["tf2.0"][Part.STEADY], profiles["tf1.14"][Part.STEADY], 20, own=False)
    assert "gen_nn_ops.conv2d_backprop_input" in {move.name for move in moved}


def test_the_report_and_the_raw_profiles_are_there(folder):
    assert "**tf2.0 eager vs tf1.14 graph**" in (folder.path / "profile.md").read_text()
    assert (folder.path / "profile.html").read_text().count("<svg") == 4
    for path in folder.path.glob("artifacts/*/*.pstats"):
        assert pstats.Stats(str(path)).total_calls > 100


def test_profiles_are_no_times(folder):
    lines = (folder.path / "launches.jsonl").read_text().splitlines()
    assert not any(json.loads(line)["samples"] for line in lines)
