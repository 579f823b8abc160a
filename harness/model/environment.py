"""Environments: pinned sets of packages, their locks, and the check of requirements against them."""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

#: TensorFlow packages whose versions are dates.
NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")

#: Packages that contain the module `tensorflow`, in order of preference.
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", *NIGHTLIES, "tensorflow-aarch64", "tensorflow-cpu-aws")

#: The processor architectures with wheels of TensorFlow for Linux, by the names in this program.
X86_64, ARM64 = "x86_64", "arm64"
#: The other names of these architectures, in the kernel and in image registries.
_ARCHITECTURES = {"aarch64": ARM64, "amd64": X86_64}
#: The first release with a wheel of TensorFlow for each architecture. Wheels for arm64 have no GPU code.
_FIRST_RELEASES = {X86_64: (0, 0), ARM64: (2, 7)}

#: Packages that contain the module `keras`, in order of preference.
KERAS = ("keras", "keras-nightly")

#: The release lines: the newest stable TensorFlow, the daily wheels of TensorFlow, and daily Keras in `latest`.
LINES = ("latest", *NIGHTLIES, "keras-nightly")

#: A sentence reports daily wheels that are older than this number of days. The other constant has their successors.
STALE_DAYS, _SUCCESSORS = 14, {"tf-nightly-cpu": "tf-nightly"}

_DAY = re.compile(r"\b(tf-nightly(?:-cpu)?|keras-nightly)==[\w.]*?\.dev(\d{8})")

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


class Device(StrEnum):
    """The device of a lock and an image."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment in the catalog (docker-bake.hcl), or one created from requirements that a user specified.

    - `tensorflow`, `keras`: exact versions. `keras` is empty if TensorFlow contains Keras.
    - `python`: X.Y.
    - `as_of`: locks contain the packages that were available at this instant (ISO 8601 with a time zone).
    - `released`: the day on which the wheel was published.

    For GPUs:

    - `cuda`, `cudnn`: the versions that TensorFlow was built with.
    - `gpu_code`: the GPU code in the wheel (`sm_70 compute_80`).
    - `ptx_alone`: the capability for which some kernels only have PTX (`compute_80 of PTX 7.1`); otherwise empty.
    - `cudnn_code`: the machine code in the image's cuDNN; empty if it isn't known.
    - `cuda_as_of`: the same as `as_of`, but for NVIDIA's packages. If it is empty, `as_of` is used.
    - `cuda_image`: the image from which CUDA is copied; empty if CUDA comes from packages.
    - `gpu_image`: an image that contains TensorFlow. Such an environment has no CPU image.
    - `gpu_code_of`: an older release. For a wheel that is newer than the catalog, the GPU code of this release is
      assumed; otherwise empty.

    The plan sets `architecture`, the architecture of the processor that the packages are for (X86_64 or ARM64).

    For environments that aren't in the catalog:

    - `asked`: the requirements (`tensorflow==2.7.1,numpy==1.19.5`).
    - `base`: for `tf2.0+numpy==1.21.6`, the environment whose packages were changed (`tf2.0`).
    - `line`: the release line under which the environment was requested (`tf-nightly`), without a day; otherwise empty.
    - `source`: a description of the source from which a wheel was built; empty if no package was built from a source.
    - `wheel`: this wheel, as `SHA256/NAME.whl` in the user's folder of wheels.
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
    architecture: str = X86_64

    @property
    def exact(self) -> str:
        """The value of -e that selects exactly this environment."""
        return self.asked or self.name

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices for which there is a lock and an image. For the GPU, the catalog must list GPU code."""
        if self.architecture != X86_64:
            return (Device.CPU,) if self.has_wheel and not self.gpu_image else ()
        if self.gpu_image:
            return (Device.GPU,)
        return (Device.CPU, Device.GPU) if self.gpu_code else (Device.CPU,)

    @property
    def has_wheel(self) -> bool:
        """Whether TensorFlow has a wheel for the architecture."""
        first = _FIRST_RELEASES.get(self.architecture)
        return first is not None and self.release[:2] >= first

    @property
    def suffix(self) -> str:
        """The end of the names of locks and images: empty for x86-64, otherwise such as `-arm64`."""
        return "" if self.architecture == X86_64 else f"-{self.architecture}"

    @property
    def has_packaged_cuda(self) -> bool:
        """Whether CUDA comes from packages in the GPU lock, so that it needs no image."""
        return bool(self.gpu_code) and not self.cuda_image and not self.gpu_image

    @property
    def is_unread(self) -> bool:
        """Whether the GPU code is an assumption, because nobody has read it in the wheel."""
        return bool(self.gpu_code_of)

    @property
    def release(self) -> tuple[int, int, int]:
        """The TensorFlow version as numbers: (2, 15, 0)."""
        from packaging.version import Version

        version = Version(self.tensorflow)
        return version.major, version.minor, version.micro

    @property
    def is_candidate(self) -> bool:
        """Whether TensorFlow is a release candidate or a daily wheel, and not a stable release."""
        from packaging.version import Version

        return Version(self.tensorflow).is_prerelease

    @property
    def is_stable_release(self) -> bool:
        """Whether the environment is a stable release in the catalog, with TensorFlow from a wheel."""
        return not (self.asked or self.gpu_image or self.is_candidate)

    @property
    def replaced(self) -> list[str]:
        """The packages that the environment's own wheel replaces; empty without such a wheel."""
        package = normalize(self.wheel.rpartition("/")[2].partition("-")[0])
        return [package, *find_rivals(package)] if package else []

    @property
    def title(self) -> str:
        """The name in sentences, such as `TensorFlow 1.14.0 + Keras 2.2.5`."""
        keras = f" + Keras {self.keras}" if self.keras else ""
        return f"TensorFlow {self.tensorflow}{keras}"


@dataclass(frozen=True, slots=True)
class Lock:
    """The hashed requirements of one environment on one device.

    `pins` maps normalized package names to versions. `sha256` is the hash of the file.
    """

    path: Path
    sha256: str
    pins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """An environment on a device, with its lock: the input of a backend's `prepare`.

    If the environment has its own wheel, or only adds packages to another environment, these are installed over the
    environment `base`. `is_second`: the run has the environment on the CPU too.
    """

    environment: Environment
    device: Device
    lock: Lock
    base: "Requirement | None" = None
    is_second: bool = False

    @property
    def name(self) -> str:
        """The environment's name in a run: `tf2.15`, or `tf2.15:gpu` if the run has `tf2.15` on the CPU too."""
        return f"{self.environment.name}:{self.device.value}" if self.is_second else self.environment.name

    def as_second(self) -> "Requirement":
        """Return the requirement for a run that has the environment on the CPU too."""
        return replace(self, is_second=True, base=self.base and self.base.as_second())


def name_on(environment: str, device: str, names: Container[str]) -> str:
    """Return the name of an environment on a device in a run that has these `names` (Requirement.name)."""
    name_as_second = f"{environment}:{device}"
    return name_as_second if name_as_second in names else environment


def normalize_architecture(name: str) -> str:
    """Return the name in this program of an architecture, such as arm64 for aarch64. Unknown names stay the same."""
    return _ARCHITECTURES.get(name, name)


def describe_missing_wheel(environment: Environment) -> tuple[str, str]:
    """Return why an environment has no wheel for its architecture (a clause), and advice."""
    first = ".".join(map(str, _FIRST_RELEASES.get(environment.architecture, ())))
    advice = f"TensorFlow {first} and later have one." if first else "TensorFlow has wheels for x86_64 and arm64."
    return f"{environment.name} has no wheel for {environment.architecture}", advice


def versions(environment: Environment) -> dict[str, str]:
    """Return the packages that the catalog lists for the environment, with their versions."""
    listed = {"tensorflow": environment.tensorflow, "keras": environment.keras}
    return {name: version for name, version in listed.items() if version}


def normalize(name: str) -> str:
    """Normalize a package's name as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Return the versions in the text of a requirements file, by normalized package name."""
    return {normalize(match["name"]): match["version"] for match in _PIN.finditer(text)}


def installed(name: str, pins: Mapping[str, str]) -> str | None:
    """Return the version of a package in `pins` (normalized names to versions), or None.

    TensorFlow 2.5 installs keras-nightly, but uses the Keras that it contains. So this version of Keras is ignored.
    """
    names = next((names for names in (TENSORFLOW, KERAS) if name == names[0]), (name,))
    for candidate in names:
        if candidate in pins and (candidate == name or not pins[candidate].startswith("2.5.0.dev")):
            return pins[candidate]
    return None


@cache
def _parse_requirement(text: str) -> Any:
    """Parse a requirement. Results are cached, because a few requirements are compared with the pins of many cells."""
    from packaging import requirements

    return requirements.Requirement(text)


def find_unmet(requires: Iterable[str], pins: Mapping[str, str]) -> list[str]:
    """Return the requirements that `pins` doesn't satisfy. Raises packaging's InvalidRequirement for invalid text."""
    missing = []
    for text in requires:
        requirement = _parse_requirement(text)
        version = installed(normalize(requirement.name), pins)
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(text)
    return missing


def find_rivals(package: str) -> list[str]:
    """Return the packages that contain the same module as this package, and can't be installed together with it."""
    return [rival for group in (TENSORFLOW, KERAS) if package in group for rival in group if rival != package]


def differences(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return the changes of packages, NumPy first.

    Examples: `NumPy 1.21.6 instead of 1.17.3`, `six 1.13.0 added`, `rich 13.7.1 removed`.
    Both arguments are pins: normalized names to versions.
    """
    changes = []
    removed = old.keys() - new.keys()
    for name, version in sorted(new.items(), key=lambda pin: (pin[0] != "numpy", pin[0])):
        package = f"{'NumPy' if name == 'numpy' else name} {version}"
        rival = next((candidate for candidate in find_rivals(name) if candidate in removed), "")
        if name not in old:
            changes.append(f"{package} instead of {rival} {old[rival]}" if rival else f"{package} added")
            removed -= {rival}
        elif old[name] != version:
            changes.append(f"{package} instead of {old[name]}")
    return [*changes, *(f"{name} {old[name]} removed" for name in sorted(removed))]


def describe_stale_lines(environments: Iterable[Environment], typed: Iterable[str]) -> list[str]:
    """Return a sentence for each release line without new wheels. `typed` are values of -e, maybe with a day."""
    dated = [text.partition("@")[0] for text in typed if "@" in text]
    return [
        sentence
        for environment in environments
        if environment.line and environment.line not in dated
        for sentence in describe_stale_wheels(environment.exact, date.today())
    ]


def describe_stale_wheels(exact: str, today: date) -> list[str]:
    """Return a sentence for each daily wheel in `exact` (a value of -e) that is older than STALE_DAYS."""
    sentences = []
    for package, digits in _DAY.findall(exact):
        try:
            day = date.fromisoformat(digits)
        except ValueError:
            continue
        if (today - day).days > STALE_DAYS:
            successor = _SUCCESSORS.get(package)
            advice = f" Measure {successor} instead: -e {successor}" if successor else ""
            sentences.append(f"{package} has had no new wheel since {day}, for {(today - day).days} days.{advice}")
    return sentences
