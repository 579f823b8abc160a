"""Caches of the GPU code that a driver compiles, and the time for a first start."""

import re
from pathlib import Path

from harness.backends.compiled_code import allow_first_start, make_environ, name_cache
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.launch import Limits
from tests.cards import H100, T4, V100

IMAGE = "sha256:0123456789abcdef0123"


def test_a_place_is_of_one_image_one_scenario_and_one_model_of_gpu():
    models = (([H100], "nvidia-h100"), ([T4, T4], "tesla-t4"), ([T4, V100], "tesla-t4-tesla-v100"), ([], "gpu"))
    for cards, slug in models:
        name = name_cache(IMAGE, {"step.py": b"1", "kit/worker.py": b"2"}, cards)
        assert re.fullmatch(f"harness-ptx-0123456789ab-[0-9a-f]{{12}}-{slug}", name)
        assert name_cache(IMAGE, {"step.py": b"1", "kit/worker.py": b"newer"}, cards) == name
        for other in ({"step.py": b"2"}, {"steps.py": b"1"}, {"step.py": b"1", "data": b""}):
            assert name_cache(IMAGE, other, cards) != name
    # a launch of the kit alone has the cache of the first start
    assert name_cache(IMAGE, {"kit/worker.py": b"2"}, [H100]) == name_cache(IMAGE, {}, [H100])
    assert name_cache(IMAGE, {"step.py": b""}, [H100]) != name_cache(IMAGE, {}, [H100])


def test_the_driver_is_told_a_size_that_holds_all_of_tensorflow():
    assert make_environ("/cache") == {"CUDA_CACHE_PATH": "/cache", "CUDA_CACHE_MAXSIZE": "2147483648"}


def test_only_a_first_start_that_may_compile_gets_longer():
    environment = Environment("old", "2.5.3", "3.8", "2022-02-15T00:00:00Z", gpu_code="sm_75 compute_80")
    requirement = Requirement(environment, Device.GPU, Lock(Path("lock"), "0", {}))
    limits = Limits(seconds=5.0, first_start_seconds=60.0)
    for cards, started, seconds in (([T4], (), 5.0), ([H100], (), 60.0), ([], (), 60.0), ([H100], ("place",), 5.0)):
        assert allow_first_start(limits, requirement, cards, "place", started).seconds == seconds, (cards, started)
