"""`make gpu-check` reads the GPU setup of a machine, and tries each method of GPU access."""

import ctypes
import os
from types import SimpleNamespace
from typing import Any

import pytest

from bench.gpu_check import access
from harness.backends.docker import gpu_trial, gpus
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.gpus import GpuAccess
from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError

CONFIG = """\
#accept-nvidia-visible-devices-envvar-when-unprivileged = true

[nvidia-container-cli]
no-cgroups = true
"""
SPECIFICATION = """\
kind: nvidia.com/gpu
devices: [{name: "0"}, {name: all}]
containerEdits:
  mounts:
    - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07
"""


def test_facts_are_read_or_say_what_is_missing(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-ctk"
    program.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.18.0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    files = {
        "etc/nvidia-container-runtime/config.toml": CONFIG,
        "var/run/cdi/nvidia.yaml": SPECIFICATION,
        "etc/cdi/other.json": "{}",
        "dev/nvidia0": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.utime(tmp_path / "var/run/cdi/nvidia.yaml", (1.7e9, 1.7e9))
    (tmp_path / "dev" / "nvidia0").chmod(0o660)
    facts = access.read_facts(None, tmp_path)
    assert facts["nvidia-ctk"].endswith("version 1.18.0")
    assert facts["nvidia-smi"] == access.MISSING
    # without comments
    assert facts["/etc/nvidia-container-runtime/config.toml"] == "[nvidia-container-cli]\nno-cgroups = true"
    assert facts["/proc/driver/nvidia/version"] == "No such file or directory"
    assert facts["device nodes"] == f"/dev/nvidia0: mode 660, owner {os.getuid()}:{os.getgid()}"
    other, nvidia = facts["CDI specifications"].splitlines()
    assert nvidia == ("/var/run/cdi/nvidia.yaml: written 2023-11-14 22:13 UTC, driver 535.161.07, devices 0, all")
    assert other.endswith("driver not named, devices none of NVIDIA")
    sentence = access.summarize(facts)
    assert sentence.startswith("NVIDIA Container Toolkit 1.18.0. Missing: ")
    assert "nvidia-smi" in sentence


class FakeCudaLibrary:
    """A driver's library that starts with this result, and has two GPUs."""

    def __init__(self, error: int) -> None:
        self._error = error

    def cuInit(self, flags: int) -> int:  # noqa: N802, the driver's names
        return self._error

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 2
        return 0


def test_cuda_is_started_outside_of_containers():
    assert access.check_driver(lambda _: FakeCudaLibrary(0)).sentence.endswith("CUDA starts and finds GPUs: 2.")
    failed = access.check_driver(lambda _: FakeCudaLibrary(802))
    assert failed.passed is False
    assert "nvidia-fabricmanager" in failed.sentence
    missing = access.check_driver(lambda _: ctypes.CDLL("libmissing.so.1"))
    assert missing.passed is False
    assert "libmissing.so.1" in missing.sentence


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an engine that has the image, and offers no runtime; CUDA starts in its containers through CDI only."""
    api = SimpleNamespace(inspect_image=lambda name: {"Id": f"id of {name}"})
    monkeypatch.setattr(access, "check_driver", lambda: access.Finding(True, "CUDA starts."))

    def find(engine: Any, way: GpuWay) -> list[GpuAccess]:
        if way is GpuWay.RUNTIME:
            raise GpuRefusedError("The runtime isn't registered.", "Register it", "nvidia-ctk runtime configure")
        return [GpuAccess(way)]

    def tried(engine: Any, image: str, way: GpuWay, which: Any, run: str) -> tuple[str, str]:
        assert image == f"id of {access.IMAGE}"
        return "" if way is GpuWay.CDI else "cuInit fails with the error 803.", "Number of GPUs: 1."

    monkeypatch.setattr(gpus, "find", find)
    monkeypatch.setattr(gpu_trial, "try_access", tried)
    return SimpleNamespace(api=api)


def test_each_method_is_tried_and_one_that_works_is_enough(engine):
    findings = access.check_ways(["0"], engine)
    assert [finding.passed for finding in findings] == [True, True, None, None]
    assert [finding.sentence for finding in findings[1:]] == [
        "cdi: CUDA starts in a container. Number of GPUs: 1.",
        "runtime: The runtime isn't registered. Register it: nvidia-ctk runtime configure",
        "driver: cuInit fails with the error 803. Number of GPUs: 1.",
    ]


def test_if_no_method_works_all_fail(engine, monkeypatch):
    monkeypatch.setattr(gpu_trial, "try_access", lambda *_: ("no libcuda.so.1", ""))
    assert [finding.passed for finding in access.check_ways(["0"], engine)] == [True, False, False, False]


def test_an_image_that_cannot_be_pulled_is_said(engine):
    def refuse(name: str) -> None:
        raise CannotRunHereError("no network")

    engine.api.inspect_image = refuse
    _, failed = access.check_ways(["0"], engine)
    assert failed == access.Finding(False, "No container was started: no network")
