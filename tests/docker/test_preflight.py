"""What is looked at before a run in containers, with a real engine."""

import secrets

import pytest

from harness.cli import preflight
from harness.machine.doctor.check import Level
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError
from harness.model.gpu import Card, GpuHost, Process
from tests.lacking import lacking

pytestmark = pytest.mark.docker

CARD = Card(0, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)


def test_an_image_that_is_there_needs_no_room_and_one_to_be_built_does(engine, made, monkeypatch):
    if not engine.is_here:
        lacking("the room of an engine elsewhere is not seen")
    project, requirement = made
    monkeypatch.setattr(preflight, "IMAGE_BYTES", {Device.CPU: 10**18})
    preflight.check(project.root, [requirement], [], pytest.fail)
    missing = project.add(f"test-{secrets.token_hex(4)}", "3.11")
    with pytest.raises(CannotRunHereError, match="One image is to be built, for which about 1000000000 GB") as raised:
        preflight.check(project.root, [requirement, missing], [], pytest.fail)
    assert "docker system df" in raised.value.advice


def test_who_else_uses_the_gpu_is_told(made):
    project, requirement = made
    said = []
    shared = Card(1, "GPU-80", "NVIDIA A100", (8, 0), 1, [Process(7, "python"), Process(8)])
    preflight.check(project.root, [requirement], [CARD, shared], said.append)
    assert said == [
        "GPU 1 (NVIDIA A100) is also used by python (process 7): launches that share it are marked as disturbed.",
        "GPU 1 (NVIDIA A100) is also used by process 8: launches that share it are marked as disturbed.",
    ]


def test_the_engine_is_described(engine, made):
    project, requirement = made
    found, answered = preflight.containers(project.root, [requirement], wanted=False)
    assert [each.name for each in found] == ["Docker", "buildx", "disk room"]
    assert found[0].facts["version"] == engine.info["ServerVersion"]
    assert found[1].facts["found"]
    assert found[2].facts["images"] == 0
    assert answered is not None


def test_how_containers_get_gpus_is_told_with_the_gpus(engine):
    host = GpuHost([CARD], "550.54.15", (12, 4))
    found = {each.name: each for each in preflight.gpus(host, engine, wanted=False)}
    assert list(found) == ["NVIDIA driver", "GPU access", "GPU 0"]
    assert bool(found["GPU access"].facts["way"]) != bool(found["GPU access"].facts["error"])
    assert found["GPU access"].level in (Level.GOOD, Level.WARN)
    assert [each.name for each in preflight.gpus(GpuHost(absent="no driver"), engine, wanted=False)] == ["GPU"]
