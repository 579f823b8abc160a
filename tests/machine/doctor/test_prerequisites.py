from dataclasses import replace
from typing import Any

from harness.machine.doctor.check import CheckResult
from harness.machine.doctor.prerequisites import (
    SPARE_BYTES,
    check_buildx,
    check_disk_space,
    check_docker,
    check_gpu,
    check_gpu_access,
    check_gpu_driver,
    check_gpu_settings,
    report_missing_docker,
    report_missing_gpu_access,
)
from harness.model.backend import DiskSpace
from harness.model.gpu import Gpu, GpuHost, GpuProcess, Instance, Settings
from tests.machine.doctor.checks import read_checks

CARD = Gpu(1, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)


def test_a_docker_that_answers_is_good_unless_it_is_old_or_podman(snapshot):
    def check(version, **options):
        return check_docker(version, where="this machine", **{"is_podman": False} | options)

    def cannot(wanted):
        return report_missing_docker("Docker Engine does not answer", "Start it.", wanted=wanted)

    checks = {
        "good": [check("26.1.5+dfsg1"), check("20.10.0"), check("")],
        "warn": [check("19.03.15"), check("20.9.1"), check("4.9.4", is_podman=True), cannot(wanted=False)],
        "bad": [cannot(wanted=True)],
    }
    assert read_checks(checks) == snapshot


def test_the_builder_has_its_version_or_an_advice(snapshot):
    good = [
        check_buildx("github.com/docker/buildx 0.13.1+ds1-3 1.13.1+ds1-3\n"),
        check_buildx("github.com/docker/buildx v0.29.1 a32761aeb3debd39be1eca514af3693af0db334b\n"),
    ]
    warn = [check_buildx("github.com/docker/buildx v0.10.5 86bdced\n"), check_buildx(None)]
    unknown = check_buildx("a version of mine\n")
    assert read_checks({"good": good, "warn": warn, "unknown": [unknown]}) == snapshot


def test_there_is_room_where_the_images_and_some_more_fit(snapshot):
    def check(free, images=1, needed=8):
        return check_disk_space(DiskSpace(free, needed, images, "/docker"))

    checks = {
        "unknown": [check(None), check(None, 2, 16 * 10**9)],
        "bad": [check(0), check(7), check(9 * 10**9, 1, 16 * 10**9), check(9 * 10**9, 2, 16 * 10**9)],
        "warn": [check(8), check(7 + SPARE_BYTES)],
        "good": [check(8 + SPARE_BYTES), check(9 * 10**9 + SPARE_BYTES, 0, 0)],
    }
    assert read_checks(checks) == snapshot


def test_a_driver_is_needed_only_where_a_gpu_is_wanted(snapshot):
    absent = GpuHost(absent="the NVIDIA driver is not loaded")
    checks = {
        "good": [
            check_gpu_driver(GpuHost([CARD], "550.54.15", (12, 4)), wanted=True),
            check_gpu_driver(GpuHost([CARD], "550.54.15"), wanted=True),
        ],
        "bad": [check_gpu_driver(absent, wanted=True)],
        "unknown": [check_gpu_driver(absent, wanted=False)],
    }
    assert read_checks(checks) == snapshot


def test_containers_need_a_way_to_gpus_where_these_are_wanted(snapshot):
    works = "Containers get GPUs through CDI."

    def check(*lines, wanted=True):
        return check_gpu_access("CDI", told=[*lines], wanted=wanted)

    def cannot(wanted):
        return report_missing_gpu_access("It has none.", "Make some:", "make", wanted=wanted)

    checks = {
        "good": [check(works), check(), check(wanted=False)],
        "warn": [check("Not by a.", works), check(f"{works} But."), cannot(wanted=False)],
        "bad": [cannot(wanted=True)],
    }
    assert read_checks(checks) == snapshot


def test_a_gpu_is_good_unless_it_is_shared_or_divided(snapshot):
    part = Instance("1:0", "MIG-cccc", "NVIDIA A100 MIG 1g.5gb", 5 * 2**30)
    checks = {
        "good": [check_gpu(CARD)],
        "warn": [
            check_gpu(replace(CARD, processes=[GpuProcess(7, "python", 2**20), GpuProcess(8)])),
            check_gpu(replace(CARD, is_partitioned=True)),
            check_gpu(replace(CARD, is_partitioned=True, processes=[GpuProcess(7)])),
            check_gpu(replace(CARD, is_partitioned=True, instances=[part])),
        ],
    }
    assert read_checks(checks) == snapshot


WELL = Settings(
    persistence=True, power_limit_watts=400.0, power_limit_default_watts=400.0, compute_mode="default", display=False
)
#: A card whose clocks cannot be locked, so that nothing is said of them.
PASCAL = replace(CARD, capability=(6, 1), settings=WELL)


def test_settings_that_disturb_have_an_advice(snapshot):
    changes: list[dict[str, Any]] = [
        {"persistence": False},
        {"power_limit_watts": 250.0},
        {"compute_mode": "prohibited"},
        {"compute_mode": "exclusive process"},
        {"display": True},
    ]
    levels: dict[str, list[CheckResult]] = {"warn": [], "bad": []}
    for change in changes:
        (check,) = check_gpu_settings(replace(PASCAL, settings=replace(WELL, **change)))
        levels["bad" if change == {"compute_mode": "prohibited"} else "warn"].append(check)
    # what is well or unknown is not mentioned
    for settings in (WELL, Settings(), replace(WELL, power_limit_watts=450.0)):
        assert list(check_gpu_settings(replace(PASCAL, settings=settings))) == []
    assert list(check_gpu_settings(replace(CARD, settings=WELL, is_partitioned=True))) == []
    # clocks that can be locked
    levels["warn"] += check_gpu_settings(replace(CARD, settings=WELL))
    assert read_checks(levels) == snapshot
