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


def test_an_image_that_is_there_needs_no_room_and_one_to_be_built_does(engine, made, monkeypatch):
    if not engine.is_here:
        lacking("the room of an engine elsewhere is not seen")
    project, requirement = made
    monkeypatch.setattr(images, "ENVIRONMENT_BYTES", {Device.CPU: 10**18})
    backend = DockerBackend(project.root, "test")
    backend.check_room([requirement])
    missing = project.add(f"test-{secrets.token_hex(4)}", "3.11")
    with pytest.raises(CannotRunHereError, match="This needs about 1000000000 GB") as raised:
        backend.check_room([requirement, missing])
    assert "docker system df" in raised.value.advice


def test_the_engine_is_described(engine, made):
    project, requirement = made
    backend = DockerBackend(project.root, "test")
    backend.gpu_host = GpuHost(absent="no driver")
    found = backend.findings([requirement], wanted=False)
    assert [entry.name for entry in found] == ["Docker", "buildx", "disk room"]
    assert found[0].facts["version"] == engine.info["ServerVersion"]
    assert found[1].facts["found"]
    assert found[2].facts["images"] == 0


def test_how_containers_get_gpus_is_told_where_there_are_some_or_some_are_wanted(no_gpus, tmp_path):
    backend = DockerBackend(tmp_path, "test")
    backend.gpu_host = GpuHost(driver="550.54.15", cuda=(12, 4))
    (access,) = [finding for finding in backend.findings([], wanted=False) if finding.name == "GPU access"]
    assert bool(access.facts["way"]) != bool(access.facts["error"])
    assert access.level in (Level.GOOD, Level.WARN)
    backend.gpu_host = GpuHost(absent="no driver")
    assert "GPU access" in [finding.name for finding in backend.findings([], wanted=True)]
