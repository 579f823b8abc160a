"""`harness profile` of the famous pair: real TensorFlow 1.14 and 2.0 in real containers."""

import json
import pstats

import pytest

from harness.analysis.profiles import find_moves, sum_by_name
from harness.model.profile import Part
from harness.store.folder import RunFolder
from tests.commands import run_harness

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]


def test_a_profile_of_the_famous_pair_shows_where_the_steps_go(need_images, tmp_path):
    need_images("tf1.14", "tf2.0")
    command = ["profile", "--suite", "quick", "--calls", "20", "--backend", "docker", "--results", str(tmp_path)]
    process = run_harness(*command)
    assert process.returncode == 0, process.stderr
    (path,) = tmp_path.iterdir()
    folder = RunFolder(path)
    profiles = {launch.cell.environment: folder.read_profiles(launch) for launch in folder.read_launches()}
    # a graph's step is one call into TensorFlow, and building is in the first call alone
    first, steady = (sum_by_name(profiles["tf1.14"][part]) for part in Part)
    assert steady["TF_SessionRunCallable"].calls == 20
    assert steady["training.train_on_batch"].cumulative_share > 0.9
    assert first["ops.create_op"].calls > 100
    assert "ops.create_op" not in steady
    # TensorFlow 2.0 computes a gradient with respect to the input batch, which nobody needs: a graph leaves it out
    moves = find_moves(profiles["tf2.0"][Part.STEADY], profiles["tf1.14"][Part.STEADY], 20, own=False)
    assert "gen_nn_ops.conv2d_backprop_input" in {move.name for move in moves}
    assert "**tf2.0 eager vs tf1.14 graph**" in (path / "profile.md").read_text()
    assert (path / "profile.html").read_text().count("<svg") == 4
    for statistics in path.glob("artifacts/*/*.pstats"):
        assert pstats.Stats(str(statistics)).total_calls > 100
    lines = (path / "launches.jsonl").read_text().splitlines()
    assert not any(json.loads(line)["samples"] for line in lines)
