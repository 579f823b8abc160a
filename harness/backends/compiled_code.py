"""Caches of GPU code that the driver compiled.

If a release has only PTX for a GPU, the driver compiles it at the first start, which can take more than half an hour.
The result is stored in caches that outlive launches: one per environment, scenario and GPU model. Scenarios don't share
a cache, because a scenario could change code that another scenario would run. A first start, which is a launch that
runs only the kit, fills one more cache per environment and GPU model. The worker copies it into scenarios' new caches.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from harness.files import hash_files
from harness.model.environment import Requirement
from harness.model.gpu import Gpu, GpuCode
from harness.model.launch import Limits

#: The largest size of a cache in bytes, as TensorFlow recommends in a warning. Older drivers use 12.5 % of this size by
#: default.
#: Code that doesn't fit into the cache is compiled again at each start.
_CACHE_BYTES = 2**31


def make_environ(folder: str, first: str = "") -> dict[str, str]:
    """Return the variables of a cache in `folder`. If `first` is given, the worker copies this cache into `folder`."""
    variables = {"CUDA_CACHE_PATH": folder, "CUDA_CACHE_MAXSIZE": str(_CACHE_BYTES)}
    return {**variables, "FIRST_START_CACHE_PATH": first} if first else variables


def name_cache(made_from: str, files: Mapping[str, bytes], gpus: Sequence[Gpu]) -> str:
    """Return the name of a cache: the image's id or the lock's hash, a hash of the scenario's files, and GPU models.

    `files` contains all files of a launch. The kit's files have no effect, because the kit is trusted. Without other
    files, the result is the name of the first start's cache.
    """
    file_hash = hash_files({name: data for name, data in files.items() if not name.startswith("kit/")})
    slugs = [re.sub(r"[^a-z0-9]+", "-", gpu.name.lower()).strip("-") for gpu in gpus]
    parts = ["harness-ptx", made_from.rpartition(":")[2][:12], file_hash[:12]]
    return "-".join([*parts, *dict.fromkeys(slugs or ["gpu"])])[:200]


def allow_first_start(
    limits: Limits, requirement: Requirement, gpus: Sequence[Gpu], name: str, started: Collection[str]
) -> Limits:
    """Return the limits, with time for a first start if the driver may have to compile most of the release's code.

    `name` is the launch's cache. `started` contains the caches with which a launch has succeeded. An unknown GPU counts
    as a GPU for which the driver has to compile.
    """
    code = GpuCode.parse(requirement.environment.gpu_code)
    may_compile = not gpus or any(not code.runs_on(gpu.capability) for gpu in gpus)
    if name in started or not may_compile:
        return limits
    return replace(limits, seconds=max(limits.seconds, limits.first_start_seconds))
