"""What launches need beside CPUs: levels, sentences and facts."""

from dataclasses import replace
from typing import Any

import pytest

from harness.machine.doctor.prerequisites import (
    SPARE_BYTES,
    check_buildx,
    check_disk_space,
    check_docker,
    check_gpu,
    check_gpu_access,
    check_gpu_driver,
    check_gpu_settings,
)
from harness.model.gpu import Gpu, GpuHost, GpuProcess, Instance, Settings

CARD = Gpu(1, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)


@pytest.mark.parametrize(
    ("version", "level", "value"),
    [
        ("26.1.5+dfsg1", "good", "26.1.5+dfsg1, API 1.45, this machine"),
        ("20.10.0", "good", "20.10.0, API 1.45, this machine"),
        ("19.03.15", "warn", "19.03.15, API 1.45, this machine"),
        ("20.9.1", "warn", "20.9.1, API 1.45, this machine"),
        ("", "good", "version: this system doesn't report it, API 1.45, this machine"),
    ],
)
def test_a_docker_that_answers_is_good_unless_it_is_old(version: str, level: str, value: str) -> None:
    check = check_docker(version, api="1.45", where="this machine")
    assert (check.level, check.value) == (level, value)
    assert check.advice.endswith("Update Docker Engine." if level == "warn" else "")


def test_podman_is_shown_with_what_it_lacks() -> None:
    check = check_docker("4.9.4", api="1.41", where="this machine", is_podman=True)
    assert (check.level, check.value) == ("warn", "Podman 4.9.4, API 1.41, this machine")
    assert check.advice == "harness supports Docker Engine. With Podman, launches get no GPUs and no CPU priority."


@pytest.mark.parametrize(("wanted", "level"), [(True, "bad"), (False, "warn")])
def test_without_an_engine_launches_run_in_local_environments(wanted: bool, level: str) -> None:
    check = check_docker("", error="Docker Engine does not answer", mend="Start it.", wanted=wanted)
    assert (check.level, check.value) == (level, "Docker Engine does not answer")
    assert check.advice.startswith("Start it. Without Docker, launches run in local environments")


@pytest.mark.parametrize(
    ("said", "version", "level", "value", "advice"),
    [
        ("github.com/docker/buildx 0.13.1+ds1-3 1.13.1+ds1-3\n", "0.13.1", "good", "0.13.1", ""),
        ("github.com/docker/buildx v0.29.1 a32761aeb3debd39be1eca514af3693af0db334b\n", "0.29.1", "good", "0.29.1", ""),
        ("github.com/docker/buildx v0.10.5 86bdced\n", "0.10.5", "warn", "0.10.5", "Update buildx"),
        ("a version of mine\n", "", "unknown", "of an unknown version", ""),
        (None, "", "warn", "not installed", "Install buildx"),
    ],
)
def test_the_builder_is_told_by_its_own_words(
    said: str | None, version: str, level: str, value: str, advice: str
) -> None:
    check = check_buildx(said)
    assert (check.facts["version"], check.level, check.value) == (version, level, value)
    assert advice in check.advice
    assert bool(advice) == bool(check.advice)


@pytest.mark.parametrize(
    ("free", "level"),
    [(None, "unknown"), (0, "bad"), (7, "bad"), (8, "warn"), (7 + SPARE_BYTES, "warn"), (8 + SPARE_BYTES, "good")],
)
def test_there_is_room_where_the_images_and_some_more_fit(free: int | None, level: str) -> None:
    check = check_disk_space(free, 8, 1, "/var/lib/docker")
    assert check.level == level
    assert (check.command == "docker system df") == (level in ("warn", "bad"))


@pytest.mark.parametrize(
    ("free", "images", "value"),
    [
        (9 * 10**9, 1, "9.0 GB free in /docker; 1 image to build: about 16.0 GB"),
        (9 * 10**9, 2, "9.0 GB free in /docker; 2 images to build: about 16.0 GB"),
        (9 * 10**9, 0, "9.0 GB free in /docker"),
        (None, 2, "this system doesn't report it; 2 images to build: about 16.0 GB"),
    ],
)
def test_room_is_said_with_what_is_to_be_built(free: int | None, images: int, value: str) -> None:
    assert check_disk_space(free, 16 * 10**9, images, "/docker").value == value


@pytest.mark.parametrize(("wanted", "level"), [(True, "bad"), (False, "unknown")])
def test_that_there_is_no_gpu_is_bad_only_where_one_is_wanted(wanted: bool, level: str) -> None:
    check = check_gpu_driver(GpuHost(absent="the NVIDIA driver is not loaded"), wanted=wanted)
    assert (check.name, check.level) == ("GPU", level)
    assert check.value == "none found (the NVIDIA driver is not loaded)"
    assert ("nvidia-smi" in check.advice) is wanted


def test_a_driver_is_told_with_the_cuda_that_it_supports() -> None:
    check = check_gpu_driver(GpuHost([CARD], "550.54.15", (12, 4)), wanted=True)
    assert (check.level, check.value) == ("good", "550.54.15, supports CUDA up to 12.4")
    assert check.facts == {"version": "550.54.15", "cuda": "12.4"}
    assert check_gpu_driver(GpuHost([CARD], "550.54.15"), wanted=True).facts["cuda"] is None


@pytest.mark.parametrize(
    ("told", "wanted", "level", "value"),
    [
        (
            ["Containers get GPUs through CDI."],
            True,
            "good",
            "containers get GPUs through CDI, as a test container showed",
        ),
        (
            ["Not by a.", "Containers get GPUs through CDI."],
            True,
            "warn",
            "containers get GPUs through CDI, as a test container showed",
        ),
        (
            ["Containers get GPUs through CDI. But."],
            True,
            "warn",
            "containers get GPUs through CDI, as a test container showed",
        ),
        (
            [],
            True,
            "good",
            "containers may get GPUs through CDI, but this was not tested, because no image is available",
        ),
        ([], False, "good", "containers may get GPUs through CDI"),
    ],
)
def test_the_way_to_gpus_is_told_with_what_a_trial_showed(
    told: list[str], wanted: bool, level: str, value: str
) -> None:
    check = check_gpu_access("CDI", told=told, wanted=wanted)
    assert (check.level, check.value) == (level, value)
    assert check.advice == (" ".join(told) if level == "warn" else "")


@pytest.mark.parametrize(("wanted", "level"), [(True, "bad"), (False, "warn")])
def test_containers_need_a_way_to_gpus_where_these_are_wanted(wanted: bool, level: str) -> None:
    check = check_gpu_access("", error="It has none.", advice="Make some:", command="make", wanted=wanted)
    assert (check.level, check.value) == (level, "It has none")
    assert (check.advice, check.command) == ("Make some:", "make")


def test_a_gpu_is_good_unless_it_is_shared() -> None:
    check = check_gpu(CARD)
    assert (check.name, check.level) == ("GPU 1", "good")
    assert check.value == "NVIDIA A100, compute capability 8.0, 40.0 GiB"
    used = check_gpu(replace(CARD, processes=[GpuProcess(7, "python", 2**20), GpuProcess(8)]))
    assert used.level == "warn"
    assert used.value.endswith("; used by python (process 7) 1 MiB, a process (process 8)")
    assert used.facts["processes"][0] == {"pid": 7, "name": "python", "memory_bytes": 2**20}
    assert "marks launches that share" in used.advice
    assert used.command == "nvidia-smi"


def test_a_part_of_a_gpu_is_shared_with_the_other_parts() -> None:
    parts = check_gpu(replace(CARD, is_partitioned=True))
    assert parts.level == "warn"
    assert parts.value.endswith("divided into instances (MIG): none yet, so nothing can run on it")
    assert "whole GPUs" in parts.advice
    assert parts.command == "sudo nvidia-smi -i 1 -mig 0"
    both = check_gpu(replace(CARD, is_partitioned=True, processes=[GpuProcess(7)]))
    assert "End the processes" in both.advice
    assert "whole GPUs" in both.advice


def test_the_instances_of_a_gpu_are_named_as_they_are_typed() -> None:
    part = Instance("1:0", "MIG-cccc", "NVIDIA A100 MIG 1g.5gb", 5 * 2**30)
    parts = check_gpu(replace(CARD, is_partitioned=True, instances=[part]))
    assert parts.value.endswith("divided into instances (MIG): 1:0 1g.5gb (MIG-cccc)")
    assert "--gpus MIG-" in parts.advice


WELL = Settings(
    persistence=True,
    power_limit_watts=400.0,
    power_limit_default_watts=400.0,
    ecc=True,
    ecc_pending=True,
    compute_mode="default",
    pcie_generation=4,
    pcie_generation_most=4,
    pcie_width=16,
    pcie_width_most=16,
    virtualization="passthrough",
    display=False,
)
#: A card whose clocks cannot be locked, so that nothing is said of them.
PASCAL = replace(CARD, capability=(6, 1), settings=WELL)


@pytest.mark.parametrize("settings", [WELL, Settings()])
def test_of_settings_that_are_well_or_not_told_nothing_is_said(settings: Settings) -> None:
    assert check_gpu_settings(replace(PASCAL, settings=settings)) == []


@pytest.mark.parametrize(
    ("changes", "name", "level", "value", "command"),
    [
        ({"persistence": False}, "persistence", "warn", "off", "sudo nvidia-smi -i 1 -pm 1"),
        ({"power_limit_watts": 250.0}, "power limit", "warn", "250 W of 400 W", "sudo nvidia-smi -i 1 -pl 400"),
        ({"compute_mode": "prohibited"}, "compute mode", "bad", "prohibited", "sudo nvidia-smi -i 1 -c DEFAULT"),
        (
            {"compute_mode": "exclusive process"},
            "compute mode",
            "warn",
            "exclusive process",
            "sudo nvidia-smi -i 1 -c DEFAULT",
        ),
        (
            {"ecc_pending": False},
            "ECC",
            "warn",
            "on, and off after the next start of the machine",
            "sudo nvidia-smi -i 1 --gpu-reset",
        ),
        (
            {"pcie_width": 8, "pcie_generation": 3},
            "PCIe link",
            "warn",
            "8 of 16 lanes, generation 3 of 4",
            "nvidia-smi -i 1 -q | grep -A 12 'GPU Link Info'",
        ),
        ({"display": True}, "screen", "warn", "drives a screen", "sudo systemctl isolate multi-user.target"),
        (
            {"virtualization": "vGPU"},
            "vGPU",
            "warn",
            "a part of a GPU that other virtual machines use too",
            "",
        ),
    ],
)
def test_what_disturbs_is_said_with_the_command_that_mends_it(
    changes: dict[str, Any], name: str, level: str, value: str, command: str
) -> None:
    (check,) = check_gpu_settings(replace(PASCAL, settings=replace(WELL, **changes)))
    assert (check.name, check.level, check.value, check.command) == (f"GPU 1 {name}", level, value, command)
    assert check.advice
    assert set(changes.items()) <= set(check.facts.items())


def test_a_raised_power_limit_is_no_lowered_one() -> None:
    assert check_gpu_settings(replace(PASCAL, settings=replace(WELL, power_limit_watts=450.0))) == []


def test_clocks_that_can_be_locked_are_advised_to_be_so() -> None:
    (check,) = check_gpu_settings(replace(CARD, settings=replace(WELL, sm_clock_most_mhz=1410)))
    assert (check.name, check.level) == ("GPU 1 clocks", "warn")
    assert check.value == "up to 1410 MHz; the driver doesn't report whether the clocks are locked"
    assert "--lock-clocks" in check.advice
    assert check.command == "sudo nvidia-smi -i 1 --lock-gpu-clocks=tdp,tdp"
    assert check_gpu_settings(replace(CARD, settings=WELL, is_partitioned=True)) == []
