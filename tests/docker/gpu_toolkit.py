"""The three methods of GPU access on an engine with NVIDIA's own toolkit, which gives the GPU 0, and no GPU 7.

pytest doesn't collect this file by itself: `.github/gpu/ways` runs it on a machine that GitHub hosts.
"""

import io
import secrets

import pytest

from bench.gpu_check import access
from harness.backends.docker.backend import DockerBackend
from harness.machine.gpu import host
from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError
from harness.model.launch import Status
from tests.conftest import ROOT
from tests.docker.gpu_launches import REQUIREMENT, on_gpus
from tests.docker.nvidia_engine import IMAGE

pytestmark = pytest.mark.docker

#: The smallest image in which launches run.
DOCKERFILE = f"""\
FROM {access.IMAGE}
RUN useradd --uid 1000 harness && install --directory --owner=harness --group=harness /harness /cache
WORKDIR /harness
USER harness
"""


@pytest.fixture(scope="module", autouse=True)
def _image(engine):
    """Build the image, unless the engine has it."""
    name = f"harness/{IMAGE}:gpu"
    if not engine.api.images(name=name):
        for line in engine.api.build(fileobj=io.BytesIO(DOCKERFILE.encode()), tag=name, rm=True, decode=True):
            assert "error" not in line, line


@pytest.fixture
def backend():
    """Return a backend with its own run. The run must leave no containers."""
    run = f"test-{secrets.token_hex(8)}"
    backend = DockerBackend(ROOT, run)
    yield backend
    assert backend.clean(run) == 0


def try_gpus(backend, name, way):
    """Return the sentences about GPUs that a run prints before its first launch."""
    backend.check_gpus([name], way)
    return backend.try_gpus([REQUIREMENT])


@pytest.mark.parametrize("way", GpuWay)
@pytest.mark.parametrize("name", ["0", "all", "uuid"])
def test_a_launch_has_the_gpu_and_no_more_rights(backend, way, name):
    requested = host.read().gpus[0].uuid if name == "uuid" else name
    assert try_gpus(backend, requested, way) == [f"Containers get GPUs through {way.words}."]
    outcome = backend.launch(REQUIREMENT, on_gpus(requested))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    assert {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"} <= set(outcome.observations["nodes"])
    assert outcome.observations["cuda"] is True
    assert outcome.observations["rights"] == [1000, 0, "1"]


@pytest.mark.parametrize("way", GpuWay)
def test_a_gpu_that_does_not_exist_is_refused(backend, way):
    with pytest.raises(CannotRunHereError, match=r"GPU 7\b"):
        try_gpus(backend, "7", way)
