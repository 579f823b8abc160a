"""How an engine gives GPUs to containers, by what it and the machine say."""

import json
from pathlib import Path

import pytest

from harness.backends.docker.gpus import (
    CODE_ENVIRON,
    GpuAccess,
    GpuWay,
    access,
    check,
    code_volume,
    devices,
    host,
    names_in,
    refusals,
    requests,
)
from harness.model.errors import CannotRunHereError

#: What `nvidia-ctk cdi generate` writes, less most of the edits.
GENERATED = """\
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
  - name: GPU-8a7ab9d1-4a7c-4a7b-8f1c-1d3f1c1a2b3c
    containerEdits: {}
  - name: all
    containerEdits: {}
containerEdits:
  env:
    - NVIDIA_VISIBLE_DEVICES=void
"""
WITH_RUNTIME = {"Runtimes": {"runc": {}, "nvidia": {"path": "nvidia-container-runtime"}}}
WITH_CDI = {"Runtimes": {"runc": {}}, "CDISpecDirs": ["/etc/cdi"]}
NEITHER = {"Runtimes": {"runc": {}}, "CDISpecDirs": None}
DISCOVERED = {
    "DiscoveredDevices": [
        {"Source": "cdi", "ID": "vendor.com/net=eth"},
        {"Source": "cdi", "ID": "nvidia.com/gpu=0"},
        {"Source": "cdi", "ID": "nvidia.com/gpu=all"},
    ]
}


@pytest.mark.parametrize(
    ("info", "listed", "hooked", "found"),
    [
        (WITH_CDI, ["0", "all"], False, GpuAccess(GpuWay.CDI, ("0", "all"))),
        ({**WITH_CDI, **WITH_RUNTIME}, ["0"], True, GpuAccess(GpuWay.CDI, ("0",))),
        ({**WITH_CDI, **WITH_RUNTIME}, [], False, GpuAccess(GpuWay.RUNTIME)),
        (WITH_CDI, [], True, GpuAccess(GpuWay.RUNTIME)),
        (WITH_CDI, [], False, None),
        (NEITHER, [], False, None),
        (DISCOVERED, [], False, GpuAccess(GpuWay.CDI, ("0", "all"))),
    ],
)
def test_an_engine_here_gives_gpus_by_cdi_where_it_lists_some_else_by_the_runtime(info, listed, hooked, found):
    assert access(info, listed, hooked=hooked) == found


@pytest.mark.parametrize(
    ("info", "found"),
    [
        (DISCOVERED, GpuAccess(GpuWay.CDI, ("0", "all"))),
        (WITH_RUNTIME, GpuAccess(GpuWay.RUNTIME)),
        (WITH_CDI, GpuAccess(GpuWay.CDI)),
        (NEITHER, GpuAccess(GpuWay.RUNTIME)),
    ],
)
def test_an_engine_elsewhere_that_does_not_say_is_asked_by_trying(info, found):
    assert access(info, None) == found


def test_a_gpu_that_is_not_listed_is_named_with_those_that_are():
    found = GpuAccess(GpuWay.CDI, ("0", "1", "all"))
    check(found, ["0", "1"])
    check(GpuAccess(GpuWay.RUNTIME), ["7"])
    with pytest.raises(
        CannotRunHereError, match=r"--gpus 0,7: the Docker Engine lists no GPU 7\. It lists 0, 1, all\."
    ):
        check(found, ["0", "7"])


def test_what_is_asked_for_by_cdi_are_its_own_names():
    (request,) = requests(GpuAccess(GpuWay.CDI), ["0", "1"])
    assert request["Driver"] == "cdi"
    assert request["DeviceIDs"] == ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]


def test_the_runtime_is_asked_to_compute_and_for_nothing_else():
    (request,) = requests(GpuAccess(GpuWay.RUNTIME), ["0", "1"])
    assert (request["Driver"], request["DeviceIDs"]) == ("nvidia", ["0", "1"])
    assert request["Capabilities"] == [["gpu", "compute", "utility"]]
    (request,) = requests(GpuAccess(GpuWay.RUNTIME), ["all"])
    assert request["Count"] == -1


@pytest.mark.parametrize(
    "words",
    [
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0",
        'could not select device driver "nvidia" with capabilities: [[gpu compute utility]]',
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object",
    ],
)
def test_a_refusal_that_is_about_gpus_says_what_to_do(words):
    with pytest.raises(CannotRunHereError) as error, refusals(["0"]):
        raise CannotRunHereError(f"The Docker Engine would not run a container: {words}")
    assert words in error.value.message
    assert "nvidia-ctk cdi generate" in error.value.advice
    assert "harness doctor --gpu" in error.value.advice


@pytest.mark.parametrize(
    ("gpus", "words"),
    [(["0"], "Requested CPUs are not available"), ([], "unresolvable CDI devices vendor.com/net=eth")],
)
def test_any_other_refusal_is_let_be(gpus, words):
    with pytest.raises(CannotRunHereError) as error, refusals(gpus):
        raise CannotRunHereError(words, "Look elsewhere.")
    assert (error.value.message, error.value.advice) == (words, "Look elsewhere.")


def test_the_names_of_nvidias_devices_are_read_from_yaml_and_json(tmp_path: Path):
    (tmp_path / "nvidia.yaml").write_text(GENERATED)
    mig = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "1:0"}, {"name": "all"}]}
    (tmp_path / "other.json").write_text(json.dumps(mig))
    (tmp_path / "notes.txt").write_text(GENERATED)
    found = names_in([tmp_path, tmp_path / "nowhere"])
    assert found == ["0", "GPU-8a7ab9d1-4a7c-4a7b-8f1c-1d3f1c1a2b3c", "all", "1:0"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{"),
        ("a.json", "[]"),
        ("a.json", '{"kind": "vendor.com/net", "devices": [{"name": "0"}]}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": 3}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": [3, {}]}'),
        ("a.yaml", "kind: [nvidia.com/gpu"),
        ("a.yaml", "\x00"),
        ("a.yaml", "!!python/object/apply:os.system [exit]"),
        ("a.yaml", ""),
    ],
)
def test_a_specification_of_others_or_of_nothing_lists_none(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    assert devices(path) == []
    assert devices(tmp_path / "gone.json") == []


def test_of_an_engine_elsewhere_nothing_is_known_here(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "ssh://somewhere")
    assert host().absent == "the engine is on another machine"


IMAGE = "sha256:0123456789abcdef0123"


def test_a_volume_is_of_one_image_and_one_model_of_gpu():
    assert code_volume(IMAGE, ["NVIDIA H100 80GB HBM3"]) == "harness-ptx-0123456789ab-nvidia-h100-80gb-hbm3"
    assert code_volume(IMAGE, ["Tesla T4", "Tesla T4"]) == "harness-ptx-0123456789ab-tesla-t4"
    assert code_volume(IMAGE, ["Tesla T4", "Tesla V100"]) == "harness-ptx-0123456789ab-tesla-t4-tesla-v100"
    assert code_volume(IMAGE, []) == "harness-ptx-0123456789ab-gpu"


def test_the_driver_is_told_a_size_that_holds_all_of_tensorflow():
    assert int(CODE_ENVIRON["CUDA_CACHE_MAXSIZE"]) == 2147483648
