"""A run on a GPU from the plan to the report, and one without a number: TensorFlow 2.15 in containers, on fake GPUs."""

import pytest

from harness.model.environment import Device
from harness.model.launch import Status
from tests.docker.test_gpu_stand_ins import CELL, matrix, stand_in_project
from tests.stand_in.gpus import T4

__all__ = ["matrix", "stand_in_project"]

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

#: Those whose images `stand_in_project` has.
ENVIRONMENTS = ("tf2.15",)


def test_a_card_from_the_plan_to_the_report_and_one_whose_driver_does_not_start(matrix):
    run = matrix([T4], "--gpus", "0", *CELL)
    assert (run.code, run.statuses) == (0, {"ok"}), (run.messages, run.launches)
    assert T4.name in run.report
    for launch in run.launches:
        assert launch["observations"]["placed on"] == ["GPU:0"]
        assert [gpu["name"] for gpu in launch["gpus"]] == [T4.name]
    run = matrix([T4], "--gpu", *CELL, STAND_IN_CUINIT="100")
    assert (run.code, run.statuses) == (1, {"cpu fallback"})
    assert "TensorFlow 2.15.1 lists no GPU, only CPU:0: failed call to cuInit: CUDA_ERROR_NO_DEVICE" in run.messages
    assert "lists no GPU, only CPU:0" in run.report
    (pilot,) = run.launches
    assert pilot["samples"] == []
    assert "harness doctor --gpu" in pilot["advice"]
    assert "container start" in pilot["phases"]
    # a machine without a GPU launches nothing
    run = matrix([], "--gpu", *CELL)
    assert (run.code, run.launches) == (4, ())
    assert "can't give GPUs to containers" in run.messages


#: A scenario that trains nothing and computes a little, in either mode.
WORK = """
import tensorflow as tf


def scenario(bench, mode):
    if mode == "graph" and tf.executing_eagerly():
        tf.compat.v1.disable_eager_execution()
    {before}
    bench.measure(lambda: 1.0, document=3)
"""


@pytest.mark.parametrize(("before", "mode"), [("bench.device()", "eager"), ("pass", "graph")])
def test_a_launch_on_the_cpu_in_place_of_the_gpu_is_caught(launched, mode, before):
    outcome = launched("tf2.0", WORK.format(before=before).encode(), {"mode": mode}, device=Device.GPU)
    assert outcome.status is Status.CPU_FALLBACK, (outcome.error, outcome.stderr)
    assert outcome.error == "TensorFlow 2.0.0 lists no GPU, only CPU:0, XLA_CPU:0: it is built without CUDA"
    # where the scenario wakes the device, nothing is measured in vain
    assert bool(outcome.samples) is (before == "pass")
