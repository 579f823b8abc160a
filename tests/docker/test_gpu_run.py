"""A run on a GPU from the plan to the report, and one without a number: TensorFlow 2.15 in containers, on fake GPUs."""

import pytest

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
    # a machine without a GPU launches nothing
    run = matrix([], "--gpu", *CELL)
    assert (run.code, run.launches) == (4, ())
    assert "can't give GPUs to containers" in run.messages
