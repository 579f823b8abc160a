"""Environments that do not exist for a device."""

import pytest

from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.plan.devices import instead, split_by_device


def environment(name: str, tensorflow: str, *, gpu: bool = True, gpu_image: str = "") -> Environment:
    return Environment(
        name,
        tensorflow,
        "3.8",
        "2023-04-15T00:00:00Z",
        cuda="11.2" if gpu else "",
        gpu_code="sm_70" if gpu else "",
        gpu_image=gpu_image,
    )


KNOWN = {
    each.name: each
    for each in (
        environment("tf1.14", "1.14.0"),
        environment("tf1.15", "1.15.5"),
        environment("tf1.15-ngc", "1.15.5", gpu_image="nvcr.io/nvidia/tensorflow:23.03-tf1-py3"),
        environment("tf2.0", "2.0.0"),
        environment("tf2.9", "2.9.3", gpu=False),
        environment("tf2.10", "2.10.1"),
    )
}


def test_an_environment_without_the_device_is_not_available_and_another_is_named() -> None:
    cells = [Cell("s", name, Device.CPU, {}) for name in ("tf1.15", "tf1.15-ngc")]
    runnable, (missing,) = split_by_device(cells, KNOWN)
    assert runnable == cells[:1]
    assert missing.cell == cells[1]
    assert "nvcr.io/nvidia/tensorflow:23.03-tf1-py3, which is made for GPUs" in missing.reason
    assert missing.advice == "Use tf1.15."


def test_a_release_without_gpu_code_has_no_gpu() -> None:
    runnable, (missing,) = split_by_device([Cell("s", "tf2.9", Device.GPU, {})], KNOWN)
    assert runnable == []
    assert missing.reason == "the catalogue has nothing of a GPU for tf2.9"
    assert missing.advice == "Use tf2.10."


@pytest.mark.parametrize(
    ("name", "device", "other"),
    [("tf1.15-ngc", Device.CPU, "tf1.15"), ("tf2.9", Device.GPU, "tf2.10"), ("tf2.0", Device.CPU, "tf2.0")],
)
def test_the_nearest_release_stands_in(name: str, device: Device, other: str) -> None:
    found = instead(KNOWN[name], device, KNOWN.values())
    assert found is not None
    assert found.name == other


def test_where_nothing_has_the_device_nothing_is_named() -> None:
    assert instead(KNOWN["tf2.9"], Device.GPU, [KNOWN["tf2.9"]]) is None
