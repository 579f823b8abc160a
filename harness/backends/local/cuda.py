"""Provides CUDA for a local environment, from the packages of its lock and the driver of this machine."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.backends import fatbins
from harness.backends.gpu_code import replace_assumed_code
from harness.machine.gpu.host import find_driver_folders
from harness.machine.gpu.selection import list_visible
from harness.model.environment import Environment
from harness.model.gpu import GpuHost


def read_gpu_code(environment: Environment, packages: Path) -> Environment | None:
    """Return an environment of assumed GPU code with the code in its libraries; None if they contain no GPU code.

    `packages` is the folder of NVIDIA's packages, beside TensorFlow's.
    """
    files = [file for path in fatbins.list_paths(packages.parent) for file in fatbins.list_files(path)]
    return replace_assumed_code(environment, {str(file): fatbins.count_modules(file) for file in files})


def make_variables(packages: Path, gpus: Sequence[str], host: GpuHost, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a launch finds CUDA, XLA's tools and its GPUs.

    `packages` is the folder of NVIDIA's packages. `own` contains the other variables of the launch, which are kept.
    """
    compiler, visible_gpus = packages / "cuda_nvcc", list_visible(gpus, host)
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **own,
        "PATH": os.pathsep.join([str(compiler / "bin"), own.get("PATH", os.defpath)]),
        "LD_LIBRARY_PATH": os.pathsep.join([*map(str, sorted(packages.glob("*/lib"))), *find_driver_folders()]),
        "XLA_FLAGS": f"--xla_gpu_cuda_data_dir={compiler} {own.get('XLA_FLAGS', '')}".rstrip(),
        **({} if visible_gpus is None else {"CUDA_VISIBLE_DEVICES": visible_gpus}),
    }
