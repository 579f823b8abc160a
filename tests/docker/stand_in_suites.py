"""Run the suites `headline` and `seed` on fakes of each GPU, with one round.

    .venv/bin/python -m pytest tests/docker/stand_in_suites.py -rP

This needs GPU images of eight releases, so it isn't part of `make test`. docs/dev/gpu-testing.md shows the results.
"""

import pytest

from tests.docker.test_gpu_stand_ins import matrix, stand_in_project
from tests.stand_in.gpus import H100, MIG, RTX_3090, T4
from tests.stand_in.project import NGC

__all__ = ["matrix", "stand_in_project"]

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ENVIRONMENTS = ("tf1.14", "tf2.0", NGC, "tf2.5", "tf2.15", "tf2.16", "tf2.18", "tf2.21")


@pytest.mark.parametrize("suite", ["headline", "seed"])
@pytest.mark.parametrize(
    ("cards", "gpus"),
    [([T4], "0"), ([RTX_3090], "0"), ([H100], "0"), ([T4, T4], "0,1"), ([MIG], "0:0")],
    ids=["a T4", "an RTX 3090", "an H100", "two T4", "a MIG instance"],
)
def test_each_launch_of_a_suite_succeeds(request, matrix, cards, gpus, suite):
    run = matrix(cards, "--gpus", gpus, "--suite", suite)
    assert {(str(launch["cell"]), launch["error"]) for launch in run.launches if launch["status"] != "ok"} == set()
    assert run.code == 0, run.messages
    environments = list(dict.fromkeys(launch["cell"]["environment"] for launch in run.launches))
    assert len(environments) > 1
    print(f"| {request.node.callspec.id} | {', '.join(sorted(environments))} | {len(run.launches)} launches |")
