"""Environments: pinned sets of packages, their locks, and the check of requirements against them."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

#: Packages that contain the module `tensorflow`, in order of preference.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu")

#: Packages that contain the module `keras`, in order of preference.
KERAS = ("keras", "keras-nightly")

#: Release lines without a base: the newest stable TensorFlow, daily wheels of TensorFlow, and daily Keras in `latest`.
LINES = ("latest", "tf-nightly", "tf-nightly-cpu", "keras-nightly")

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


class Device(StrEnum):
    """The device of a lock and an image."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Environment:
    """One line of the catalog (docker-bake.hcl), or an environment made from requirements that a user specified.

    - `tensorflow`, `keras`: exact versions. `keras` is empty if TensorFlow contains Keras.
    - `python`: X.Y.
    - `as_of`: the instant at which the locks are resolved, in ISO 8601 with a zone.
    - `released`: the day on which the wheel appeared.

    For GPUs:

    - `cuda`, `cudnn`: the versions that TensorFlow was built with.
    - `gpu_code`: the GPU code in the wheel (`sm_70 compute_80`).
    - `ptx_alone`: the capability for which some kernels have PTX only (`compute_80 of PTX 7.1`); otherwise empty.
    - `cudnn_code`: the machine code in the image's cuDNN; empty if it isn't known.
    - `cuda_as_of`: the instant at which NVIDIA's packages are resolved; empty: `as_of`.
    - `cuda_image`: the image from which CUDA is copied; empty if CUDA comes from packages.
    - `gpu_image`: an image that contains TensorFlow. Such an environment has no CPU image.
    - `gpu_code_of`: the older release whose GPU code is assumed for a wheel that is newer than the catalog; otherwise
      empty.

    For environments that aren't in the catalog:

    - `asked`: the requirements (`tensorflow==2.7.1,numpy==1.19.5`).
    - `base`: the environment in which packages were changed (`tf2.0+numpy==1.21.6`) to make this one.
    - `line`: the release line that it was requested as (`tf-nightly`), without a day. Otherwise empty.
    - `source`: a description of the source of its wheel; empty if no package was built from a source.
    - `wheel`: that wheel, as `SHA256/NAME.whl` in the user's folder of wheels.
    """

    name: str
    tensorflow: str
    python: str
    as_of: str
    keras: str = ""
    released: str = ""
    cuda: str = ""
    cudnn: str = ""
    gpu_code: str = ""
    ptx_alone: str = ""
    cudnn_code: str = ""
    cuda_as_of: str = ""
    cuda_image: str = ""
    gpu_image: str = ""
    gpu_code_of: str = ""
    asked: str = ""
    base: str = ""
    line: str = ""
    source: str = ""
    wheel: str = ""

    @property
    def exact(self) -> str:
        """The value of -e that selects this environment again, with exact versions."""
        return self.asked or self.name

    @property
    def devices(self) -> tuple[Device, ...]:
        """Devices that have a lock and an image. The GPU is one if the catalog lists its GPU code."""
        if self.gpu_image:
            return (Device.GPU,)
        return (Device.CPU, Device.GPU) if self.gpu_code else (Device.CPU,)

    @property
    def has_packaged_cuda(self) -> bool:
        """Whether CUDA is in packages of the GPU lock, so that no image is needed for it."""
        return bool(self.gpu_code) and not self.cuda_image and not self.gpu_image

    @property
    def is_unread(self) -> bool:
        """Whether its GPU code is an assumption."""
        return bool(self.gpu_code_of)

    @property
    def release(self) -> tuple[int, int, int]:
        """The numbers of its TensorFlow's version."""
        from packaging.version import Version

        version = Version(self.tensorflow)
        return version.major, version.minor, version.micro

    @property
    def replaced(self) -> list[str]:
        """Return the packages that its wheel replaces; none without a wheel."""
        package = normalise(self.wheel.rpartition("/")[2].partition("-")[0])
        return [package, *rivals(package)] if package else []

    @property
    def title(self) -> str:
        """Name for a sentence, such as `TensorFlow 1.14.0 + Keras 2.2.5`."""
        keras = f" + Keras {self.keras}" if self.keras else ""
        return f"TensorFlow {self.tensorflow}{keras}"


@dataclass(frozen=True, slots=True)
class Lock:
    """The hashed requirements of one environment on one device.

    `pins` maps normalised package names to versions; `sha256` is of the file's bytes.
    """

    path: Path
    sha256: str
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """An environment on a device, with its lock: the input of a backend's `prepare`.

    An environment with a wheel has a `base`, over which the wheel is installed. `is_second`: the run has the
    environment on the CPU too.
    """

    environment: Environment
    device: Device
    lock: Lock
    base: "Requirement | None" = None
    is_second: bool = False

    @property
    def name(self) -> str:
        """The name of the environment on this device in a run: `tf2.15`, or `tf2.15:gpu` if the CPU has that name."""
        return f"{self.environment.name}:{self.device.value}" if self.is_second else self.environment.name

    def as_second(self) -> "Requirement":
        """Return the requirement for a run that has the environment on the CPU too."""
        return replace(self, is_second=True, base=self.base and self.base.as_second())


def name_on(environment: str, device: str, names: Container[str]) -> str:
    """Return the name of an environment on a device among the `names` of a run (Requirement.name)."""
    second = f"{environment}:{device}"
    return second if second in names else environment


def versions(environment: Environment) -> dict[str, str]:
    """Return the packages in the environment's line of the catalog, with their versions."""
    named = {"tensorflow": environment.tensorflow, "keras": environment.keras}
    return {name: version for name, version in named.items() if version}


def normalise(name: str) -> str:
    """Return a package's name, normalized as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Return normalized package names to versions, from the text of a requirements file."""
    return {normalise(match["name"]): match["version"] for match in _PIN.finditer(text)}


def installed(name: str, pins: Mapping[str, str]) -> str | None:
    """Return the version of a package in `pins` (normalized names to versions), or None.

    TensorFlow 2.5 installs a keras-nightly, but uses the Keras that it contains. So that version is ignored.
    """
    names = next((names for names in (TENSORFLOW, KERAS) if name == names[0]), (name,))
    pinned = [
        pins[candidate]
        for candidate in names
        if candidate in pins and (candidate == name or not pins[candidate].startswith("2.5.0.dev"))
    ]
    return next(iter(pinned), None)


@cache
def _parsed(text: str) -> Any:
    """Parse a requirement: headers have few of them, which are compared with the pins of many cells."""
    from packaging import requirements

    return requirements.Requirement(text)


def unmet(requires: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Return the requirements that `pins` doesn't satisfy. Raises packaging's InvalidRequirement."""
    missing = []
    for text in requires:
        requirement = _parsed(text)
        version = installed(normalise(requirement.name), pins)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(text)
    return missing


def rivals(package: str) -> list[str]:
    """Return the packages that contain the same module as this one, and so can't be installed with it."""
    return [rival for group in (TENSORFLOW, KERAS) if package in group for rival in group if rival != package]


def differences(has: Mapping[str, str], had: Mapping[str, str]) -> list[str]:
    """Return the changes of packages, NumPy first.

    Examples: `NumPy 1.21.6 instead of 1.17.3`, `six 1.13.0 added`, `rich 13.7.1 gone`.
    Both arguments are pins: normalized names to versions.
    """
    changes = []
    lost = had.keys() - has.keys()
    for name, version in sorted(has.items(), key=lambda pin: (pin[0] != "numpy", pin[0])):
        shown = f"{'NumPy' if name == 'numpy' else name} {version}"
        rival = next((candidate for candidate in rivals(name) if candidate in lost), "")
        if name not in had:
            changes.append(f"{shown} instead of {rival} {had[rival]}" if rival else f"{shown} added")
            lost -= {rival}
        elif had[name] != version:
            changes.append(f"{shown} instead of {had[name]}")
    return [*changes, *(f"{name} {had[name]} gone" for name in sorted(lost))]
