"""Environments: pinned sets of packages, their locks, and whether these satisfy requirements."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

#: Packages that bring the module `tensorflow`, in the order in which they stand for it.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu")

#: Packages that bring the module `keras`, likewise.
KERAS = ("keras", "keras-nightly")

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


class Device(StrEnum):
    """What an environment's lock and image are made for."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Environment:
    """One line of the catalogue (docker-bake.hcl), or one that was made of what a user typed.

    `tensorflow` and `keras` are exact versions, `keras` empty where TensorFlow brings its own; `python` is X.Y;
    `as_of` is the instant, in ISO 8601 with a zone, at which its locks are resolved; `released` is the day on which its
    wheel appeared.

    Of its GPU: `cuda` and `cudnn` are the versions that TensorFlow was built with; `gpu_code` is the GPU code in its
    wheel (`sm_70 compute_80`), `ptx_alone` that for which some of its kernels have PTX and no machine code
    (`compute_80 of PTX 7.1`), empty where none has; `cudnn_code` is the machine code in its image's cuDNN, empty where
    that is not known; `cuda_as_of` is the instant at which NVIDIA's packages are resolved (`as_of` where empty);
    `cuda_image` is the image that CUDA is copied from, empty where it comes from packages; `gpu_image` is an image that
    has a TensorFlow of its own: then there is no CPU image.

    `asked` is what was typed (`tensorflow==2.7.1,numpy==1.19.5`) where it is not in the catalogue; empty where it is.
    `base` is the name of the environment in which packages were moved (`tf2.0+numpy==1.21.6`) to make this one.
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
    asked: str = ""
    base: str = ""

    @property
    def devices(self) -> tuple[Device, ...]:
        """What it has locks and images for: a GPU where the catalogue lists its GPU code."""
        if self.gpu_image:
            return (Device.GPU,)
        return (Device.CPU, Device.GPU) if self.gpu_code else (Device.CPU,)

    @property
    def release(self) -> tuple[int, int, int]:
        """The numbers of its TensorFlow's version."""
        from packaging.version import Version

        version = Version(self.tensorflow)
        return version.major, version.minor, version.micro

    @property
    def title(self) -> str:
        """How a sentence names it: `TensorFlow 1.14.0 + Keras 2.2.5`."""
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
    """What a backend is asked to prepare: an environment on a device, with its lock."""

    environment: Environment
    device: Device
    lock: Lock


def versions(environment: Environment) -> dict[str, str]:
    """The packages that its line of the catalogue names, with their versions."""
    named = {"tensorflow": environment.tensorflow, "keras": environment.keras}
    return {name: version for name, version in named.items() if version}


def normalise(name: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Normalised package names to versions, of a requirements file's text."""
    return {normalise(match["name"]): match["version"] for match in _PIN.finditer(text)}


def installed(name: str, pins: Mapping[str, str]) -> str | None:
    """The version of a package among `pins` (normalised names to versions), None where it is absent.

    TensorFlow 2.5 brings a keras-nightly that it does not use: a Keras of its own is in it.
    """
    names = next((names for names in (TENSORFLOW, KERAS) if name == names[0]), (name,))
    found = [pins[each] for each in names if each in pins and (each == name or not pins[each].startswith("2.5.0.dev"))]
    return next(iter(found), None)


def unmet(requires: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Those of the requirements that `pins` does not satisfy. Raises packaging's InvalidRequirement."""
    from packaging import requirements

    missing = []
    for text in requires:
        requirement = requirements.Requirement(text)
        version = installed(normalise(requirement.name), pins)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(text)
    return missing


def rivals(package: str) -> list[str]:
    """The packages that bring the same module as this one, and cannot be there beside it."""
    return [each for group in (TENSORFLOW, KERAS) if package in group for each in group if each != package]


def differences(has: Mapping[str, str], had: Mapping[str, str]) -> list[str]:
    """The packages that differ, NumPy first: `NumPy 1.21.6 instead of 1.17.3`, `six 1.13.0 added`, `rich 13.7.1 gone`.

    Both are pins: normalised names to versions.
    """
    told = []
    lost = had.keys() - has.keys()
    for name, version in sorted(has.items(), key=lambda pin: (pin[0] != "numpy", pin[0])):
        shown = f"{'NumPy' if name == 'numpy' else name} {version}"
        rival = next((each for each in rivals(name) if each in lost), "")
        if name not in had:
            told.append(f"{shown} instead of {rival} {had[rival]}" if rival else f"{shown} added")
            lost -= {rival}
        elif had[name] != version:
            told.append(f"{shown} instead of {had[name]}")
    return [*told, *(f"{name} {had[name]} gone" for name in sorted(lost))]
