"""Makes locks: the packages that users had when a release was new, with their hashes."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from harness.machine.interpreters import find_python
from harness.machine.uv import last_words, run_uv
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError

#: The images' base is Debian 12 on x86-64; the newest wheels ask for a C library of 2.28.
PLATFORM = "x86_64-manylinux_2_28"

#: From here on there is a package without the GPU's code, of the same day and a third of the size; before it,
#: `tensorflow` has none, and the GPU's code is a package of its own.
_FIRST_CPU_PACKAGE = Version("2.1")

#: From here on CUDA can be had as packages: CUDA 11 is compatible within itself from 11.2 on.
_FIRST_CUDA_PACKAGES = Version("2.5")
#: From here on a release names its CUDA packages itself. 2.14 does too, with a TensorRT that no Python 3.11 has.
_FIRST_CUDA_EXTRA = Version("2.15")

#: What TensorFlow loads of CUDA; CUPTI is its profiler's, nvcc has the assembler and the device library of XLA.
_CUDA = ("cuda-runtime", "cublas", "cufft", "curand", "cusolver", "cusparse", "cudnn", "cuda-cupti", "cuda-nvcc")
#: ... and what those need, or newer releases beside them.
_CUDA_MORE = ("cuda-nvrtc", "nccl", "nvjitlink", "nvtx")


def inputs(environment: Environment, device: Device) -> list[str]:
    """What is asked of the resolver: the release, its Keras, its CUDA, and the tools that build old source packages."""
    keras = [f"keras=={environment.keras}"] if environment.keras else []
    if environment.gpu_image:
        # TensorFlow and what it needs are in the image, and are to stay as they are
        return [*keras, "keras-applications", "keras-preprocessing"]
    return [*_tensorflow(environment, device), *keras, "setuptools", "wheel"]


def _tensorflow(environment: Environment, device: Device) -> list[str]:
    release, version = Version(environment.tensorflow), environment.tensorflow
    if device is Device.CPU:
        return [f"{'tensorflow-cpu' if release >= _FIRST_CPU_PACKAGE else 'tensorflow'}=={version}"]
    if release < _FIRST_CPU_PACKAGE:
        return [f"tensorflow-gpu=={version}"]
    if release < _FIRST_CUDA_PACKAGES:
        return [f"tensorflow=={version}"]
    if release < _FIRST_CUDA_EXTRA:
        return [f"tensorflow=={version}", *(f"nvidia-{name}-cu11" for name in _CUDA)]
    return [f"tensorflow[and-cuda]=={version}"]


def resolve(environment: Environment, device: Device) -> str:
    """The text of the lock as of `environment.as_of`: the same whenever and wherever it is made.

    Raises UnavailableError without an interpreter of that Python (old source packages are built to read their
    dependencies), CannotRunHereError, with the resolver's own words, for what does not resolve.
    """
    python = find_python(environment.python)
    with tempfile.TemporaryDirectory() as folder:
        asked, lock = Path(folder) / "asked.txt", Path(folder) / "lock.txt"
        asked.write_text("\n".join(inputs(environment, device)) + "\n", encoding="utf-8")
        done = run_uv(
            [
                "pip",
                "compile",
                str(asked),
                f"--output-file={lock}",
                *_instants(environment),
                f"--python={python}",
                f"--python-platform={PLATFORM}",
                "--generate-hashes",
                "--no-emit-index-url",
                "--no-header",
                "--no-annotate",
                "--quiet",
                *(["--no-deps"] if environment.gpu_image else []),
            ]
        )
        if done.returncode:
            raise CannotRunHereError(f"{environment.name} does not resolve:\n{last_words(done.stderr, 20)}")
        return _heading(environment, device) + lock.read_text(encoding="utf-8")


def _instants(environment: Environment) -> Sequence[str]:
    """Until when packages are taken: NVIDIA's have an instant of their own where they are younger than the release."""
    packages = [f"nvidia-{name}-{cuda}" for cuda in ("cu11", "cu12") for name in (*_CUDA, *_CUDA_MORE)]
    younger = environment.cuda_as_of
    apart = [f"--exclude-newer-package={package}={younger}" for package in packages] if younger else []
    return [f"--exclude-newer={environment.as_of}", *apart]


def _heading(environment: Environment, device: Device) -> str:
    cuda = (
        f", NVIDIA's packages as of {environment.cuda_as_of}" if device is Device.GPU and environment.cuda_as_of else ""
    )
    return (
        f"# {environment.title} for the {device.value}, Python {environment.python}, as of {environment.as_of}{cuda}.\n"
        f"# Made by: harness images lock {environment.name}\n"
    )
