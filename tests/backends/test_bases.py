from pathlib import Path

from harness.backends.bases import all_bases
from harness.model.environment import Device, Environment, Lock, Requirement

ROOT = Path(__file__).parents[2]


def requirement(device: Device, **more: str) -> Requirement:
    environment = Environment("tf0", "0", "3.8", "2020-01-01T00:00:00Z", **more)
    return Requirement(environment, device, Lock(Path("tf0.txt"), "", {}))


def test_a_build_needs_the_environments_python_and_the_one_that_uv_has() -> None:
    cpu = all_bases(ROOT, requirement(Device.CPU))
    assert sorted(cpu) == ["python:3.11-slim-bookworm", "python:3.8-slim-bookworm"]


def test_a_gpus_build_needs_the_image_that_cuda_comes_from_too() -> None:
    gpu = all_bases(ROOT, requirement(Device.GPU, cuda_image="tensorflow/tensorflow:2.4.0-gpu"))
    assert sorted(gpu)[-1] == "tensorflow/tensorflow:2.4.0-gpu"
    assert len(gpu) == 3


def test_an_image_with_a_tensorflow_of_its_own_is_all_that_its_build_needs() -> None:
    assert all_bases(ROOT, requirement(Device.GPU, gpu_image="registry/image:1")) == ["registry/image:1"]
