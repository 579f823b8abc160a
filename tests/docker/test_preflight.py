"""What is looked at before a run in containers, with a real engine."""

import secrets

import pytest

from harness.backends.docker import images
from harness.backends.docker.backend import DockerBackend
from harness.machine.doctor.check import Level
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError
from harness.model.gpu import GpuHost
from tests.lacking import lacking

pytestmark = pytest.mark.docker


def test_an_image_that_is_there_needs_no_room_and_one_to_be_built_does(engine, built, monkeypatch):
    if not engine.is_here:
        lacking("the room of an engine elsewhere is not seen")
    project, requirement = built
    monkeypatch.setattr(images, "ENVIRONMENT_BYTES", {Device.CPU: 10**18})
    backend = DockerBackend(project.root, "test")
    backend.check_room([requirement])
    missing = project.add(f"test-{secrets.token_hex(4)}", "3.11")
    with pytest.raises(CannotRunHereError, match="1000000000 GB") as error:
        backend.check_room([requirement, missing])
    assert "docker system df" in error.value.advice


def test_the_engine_is_described_with_gpu_access_where_there_are_gpus_or_some_are_wanted(no_gpus, tmp_path):
    backend = DockerBackend(tmp_path, "test")
    backend.gpu_host = GpuHost(absent="no driver")
    docker, buildx, disk, _ = backend.findings([], wanted=False)
    assert (docker.name, buildx.name, disk.name) == ("Docker", "buildx", "disk room")
    assert docker.value.startswith(backend.engine.info["ServerVersion"])
    assert buildx.level is Level.GOOD
    assert "to build" not in disk.value
    assert "GPU access" in [finding.name for finding in backend.findings([], wanted=True)]
    backend.gpu_host = GpuHost(driver="550.54.15", cuda=(12, 4))
    (access,) = [finding for finding in backend.findings([], wanted=False) if finding.name == "GPU access"]
    assert access.level in (Level.GOOD, Level.WARN)
