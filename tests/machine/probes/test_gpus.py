from dataclasses import replace

import pytest

from harness.machine.probes.gpus import access, card, driver
from harness.model.gpu import Card, GpuHost, Process

CARD = Card(1, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)


@pytest.mark.parametrize(("wanted", "level"), [(True, "bad"), (False, "unknown")])
def test_that_there_is_no_gpu_is_bad_only_where_one_is_wanted(wanted: bool, level: str) -> None:
    found = driver(GpuHost(absent="the NVIDIA driver is not loaded"), wanted=wanted)
    assert (found.name, found.macro, found.level) == ("GPU", "no_gpu", level)


def test_a_driver_is_told_with_the_cuda_that_it_knows() -> None:
    found = driver(GpuHost([CARD], "550.54.15", (12, 4)), wanted=True)
    assert (found.level, found.facts) == ("good", {"version": "550.54.15", "cuda": "12.4"})
    assert driver(GpuHost([CARD], "550.54.15"), wanted=True).facts["cuda"] is None


@pytest.mark.parametrize(
    ("way", "error", "wanted", "level"),
    [("CDI", "", True, "good"), ("", "it has none", True, "bad"), ("", "it has none", False, "warn")],
)
def test_containers_need_a_way_to_gpus_where_these_are_wanted(way: str, error: str, wanted: bool, level: str) -> None:
    assert access(way, error=error, wanted=wanted).level == level


def test_a_gpu_is_good_unless_it_is_shared() -> None:
    found = card(CARD)
    assert (found.name, found.macro, found.level) == ("GPU 1", "gpu", "good")
    used = replace(CARD, processes=[Process(7, "python", 2**20)])
    assert card(used).level == "warn"
    assert card(used).facts["processes"] == [{"pid": 7, "name": "python", "memory_bytes": 2**20}]
    assert card(replace(CARD, is_partitioned=True)).level == "warn"
