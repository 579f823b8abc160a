"""Reads, resolves and writes locks: requirements files with hashes, one per environment and device.

A lock has the package versions of the release's date.
"""

import hashlib
import re
import shlex
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path

from packaging.version import Version

from harness.environments import adhoc, index, lock_overrides, sources
from harness.environments.catalog import load_environments
from harness.environments.packages import choose_package
from harness.environments.requested import Override, Pinned, list_packages, parse_requested
from harness.files import read, write_atomically
from harness.machine.interpreters import find_python
from harness.machine.uv import get_last_lines
from harness.model.environment import (
    KERAS,
    NIGHTLIES,
    TENSORFLOW,
    X86_64,
    Device,
    Environment,
    Lock,
    Requirement,
    differences,
    pins,
)
from harness.model.errors import CannotRunHereError, UnavailableError, UsageError, explain_unwritable
from harness.model.texts import joined
from harness.project import Project

#: The lines of a lock: an exact version, with an optional marker, and its hashes. Other lines that pip accepts, such as
#: the address of an index, are invalid.
_PIN = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*( ; [^\\]+)?", re.ASCII
)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")

#: The first release with `tensorflow-cpu`, which has no GPU code and a third of the size of `tensorflow`. In earlier
#: releases, `tensorflow` has no GPU code, and `tensorflow-gpu` has it.
_FIRST_CPU_PACKAGE = Version("2.1")

#: The first release that works with NVIDIA's packages of CUDA 11. From CUDA 11.2 on, minor versions are compatible.
_FIRST_CUDA_PACKAGES = Version("2.5")
#: The first release whose extra `and-cuda` can be used. The extra of 2.14 requires a TensorRT that has no wheel for
#: Python 3.11.
_FIRST_CUDA_EXTRA = Version("2.15")

#: The parts of CUDA that TensorFlow loads. Its profiler needs CUPTI. XLA needs nvcc's assembler and device library.
_CUDA = ("cuda-runtime", "cublas", "cufft", "curand", "cusolver", "cusparse", "cudnn", "cuda-cupti", "cuda-nvcc")
#: Dependencies of these packages, and packages that newer releases also load.
_OTHER_CUDA = ("cuda-nvrtc", "nccl", "nvjitlink", "nvshmem", "nvtx")


#: uv's option against builds, which uv's messages also name.
_NO_BUILD = "--no-build"

#: The end of the names of locks that were resolved without building source packages.
_PLANNED = ".planned.txt"


class Builds(Enum):
    """The source packages of the index that may be built, with the user's rights, to read their requirements.

    `KNOWN` allows builds if each requested package is also in a lock of the catalog.
    """

    NONE = "none"
    KNOWN = "known"
    ALL = "all"


def lock_file(project: Project, environment: Environment, device: Device) -> Path:
    """Return the path of an environment's lock: in the project, or in the user's cache if it is ad hoc."""
    return (adhoc.get_folder() if environment.asked else project.locks) / name_lock(environment, device)


def name_lock(environment: Environment, device: Device, name: str = "") -> str:
    """Return the name of a lock's file: of an environment or, for the same architecture, of the environment `name`."""
    return f"{name or environment.name}-{device.value}{environment.suffix}.txt"


def load_lock(
    project: Project, environment: Environment, device: Device, *, builds: Builds = Builds.KNOWN
) -> Requirement:
    """Return the environment with its lock. An ad-hoc environment without a lock is resolved first.

    If nothing may be built (Builds.NONE), the result goes to another file, because it may have other versions than the
    lock.

    Raises UsageError if there is no lock, or if the requirements can't be resolved.
    """
    path = lock_file(project, environment, device)
    if environment.asked and (not path.is_file() or _is_outdated(project, environment, device)):
        if builds is Builds.NONE:
            path = path.with_suffix(_PLANNED)
            with explain_unwritable(f"The lock {path}"):
                write_atomically(path, resolve(project, environment, device, builds))
        else:
            write_lock(project, environment, device, builds)
    try:
        data = read(path)
    except OSError:
        raise UsageError(
            f"The {device.value} lock file of {environment.name} is missing: {path} can't be read.",
            f"To create the lock file: harness images lock {shlex.quote(environment.exact)}",
        ) from None
    pinned = _parse_pins(data, path, environment)
    if environment.gpu_image:
        # TensorFlow is in the base image, and not in the lock
        pinned = {"tensorflow": environment.tensorflow, **pinned}
    lock = Lock(path=path, sha256=hashlib.sha256(data).hexdigest(), pins=pinned)
    base = _load_base(project, environment, device, builds) if environment.base else None
    if base and not environment.wheel and not _only_adds(pinned, base.lock.pins):
        base = None
    return Requirement(environment=environment, device=device, lock=lock, base=base)


def _only_adds(new: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Return whether packages only are added, so that they can be installed over the image of the base.

    Not CUDA's, because the loader's cache in the image lists their folders.
    """
    added = new.keys() - old.keys()
    return old.items() <= new.items() and not any(name.startswith("nvidia-") for name in added)


def load_locks(
    project: Project, environment: Environment, devices: Collection[Device], *, builds: Builds = Builds.KNOWN
) -> dict[str, Requirement]:
    """Return the environment with its lock, for each supported device in `devices`, by name.

    Raises the errors of `load_lock`.
    """
    supported = [
        load_lock(project, environment, device, builds=builds) for device in environment.devices if device in devices
    ]
    requirements = [*supported[:1], *(requirement.as_second() for requirement in supported[1:])]
    return {requirement.name: requirement for requirement in requirements}


def _load_base(project: Project, environment: Environment, device: Device, builds: Builds) -> Requirement:
    return load_lock(project, adhoc.find_base(environment, load_environments(project)), device, builds=builds)


def _parse_pins(data: bytes, path: Path, environment: Environment) -> dict[str, str]:
    """Return the pins of a lock. Raises UsageError for a line that isn't an exact version or a hash."""
    pinned: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        part = line.strip().removesuffix("\\").rstrip()
        if not part or part.startswith("#") or (_HASH.fullmatch(part) and pinned):
            continue
        pin = pins(part) if _PIN.fullmatch(part) else {}
        if not pin or pin.keys() & pinned.keys():
            reason = "the package is listed twice" if pin else "this is neither an exact version nor a hash"
            raise UsageError(
                f"{path}:{number}: invalid line {line.strip()[:80]!r}: {reason}.",
                f"To create the lock file again: harness images lock {shlex.quote(environment.exact)}",
            )
        pinned |= pin
    return pinned


def write_lock(project: Project, environment: Environment, device: Device, builds: Builds = Builds.KNOWN) -> bool:
    """Resolve an environment and write its lock. Return whether the lock changed.

    Raises the errors of `resolve`, and CannotRunHereError if the lock can't be written.
    """
    path = lock_file(project, environment, device)
    text = resolve(project, environment, device, builds)
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    if project.is_installed and not environment.asked:
        raise CannotRunHereError(
            f"The lock file of {environment.name} would change, but it is part of the installed harness.",
            "Create lock files in a clone of the project, or set HARNESS_PROJECT to a clone.",
        )
    with explain_unwritable(f"The lock {path}"):
        write_atomically(path, text)
    return True


def _list_build_options(project: Project, environment: Environment, builds: Builds) -> list[str]:
    """Return uv's option against builds, unless the packages that this environment requests may be built."""
    if builds is Builds.KNOWN and environment.asked:
        known_names = {name for path in project.locks.glob("*.txt") for name in pins(path.read_text(encoding="utf-8"))}
        names = list_packages(parse_requested(environment.asked))
        return [] if names <= known_names.union(TENSORFLOW, KERAS) else [_NO_BUILD]
    return [_NO_BUILD] if builds is Builds.NONE else []


def _add_trust_advice(message: str, advice: str = "") -> str:
    """Return the advice, with advice about --trust if uv's message says that a build would help."""
    trust_advice = (
        "Reading the requirements of a package without a wheel runs its code with your rights. If you trust the "
        "package: harness matrix --trust"
    )
    return "\n".join(filter(None, [advice, trust_advice if _NO_BUILD in message else ""]))


def list_inputs(environment: Environment, device: Device) -> list[str]:
    """Return the requirements for the resolver: the release, Keras, CUDA, and build tools of old source packages.

    For an ad-hoc environment, the list also has its other requirements. For a nightly release, the index is queried for
    a package without GPU code. Raises CannotRunHereError if the index doesn't answer.
    """
    spec = adhoc.read_requirements(environment)
    keras = [f"keras=={environment.keras}"] if environment.keras else []
    if environment.gpu_image:
        # the image has TensorFlow and its dependencies, which must not change
        is_multi_backend = Version(environment.tensorflow) < Version("2")
        return [*keras, *(["keras-applications", "keras-preprocessing"] if is_multi_backend else [])]
    release = _select_packages(spec, environment, device) if spec else _list_tensorflow(environment, device)
    return [*release, *(spec.others if spec else keras), "setuptools", "wheel"]


def _select_packages(spec: Pinned, environment: Environment, device: Device) -> list[str]:
    """Return the TensorFlow packages of a requested release: the requested one, or the usual ones for the device."""
    package = choose_package(spec.package, spec.version, environment.architecture)
    requirement = f"{package}=={spec.version}"
    if package != spec.package:
        return [requirement]
    if spec.package == "tf-nightly":
        if device is Device.GPU:
            return [f"tf-nightly[and-cuda]=={spec.version}"]
        cpu_package = f"tf-nightly-cpu=={spec.version}"
        return [cpu_package if index.find(cpu_package, environment.python, environment.architecture) else requirement]
    if spec.package in (*NIGHTLIES, "tensorflow-cpu"):
        return [requirement]
    release = _list_tensorflow(environment, device)
    if spec.package == "tensorflow-gpu" and device is Device.GPU:
        return [requirement, *release[1:]]
    return release


def _list_tensorflow(environment: Environment, device: Device) -> list[str]:
    release, version = Version(environment.tensorflow), environment.tensorflow
    if device is Device.CPU:
        name = "tensorflow-cpu" if release >= _FIRST_CPU_PACKAGE else "tensorflow"
        return [f"{choose_package(name, version, environment.architecture)}=={version}"]
    if release < _FIRST_CPU_PACKAGE:
        return [f"tensorflow-gpu=={version}"]
    if release < _FIRST_CUDA_PACKAGES:
        return [f"tensorflow=={version}"]
    if release < _FIRST_CUDA_EXTRA:
        return [f"tensorflow=={version}", *(f"nvidia-{name}-cu11" for name in _CUDA)]
    return [f"tensorflow[and-cuda]=={version}"]


def resolve(project: Project, environment: Environment, device: Device, builds: Builds = Builds.KNOWN) -> str:
    """Return the text of the lock as of `environment.as_of`, which is the same at any time and on any machine.

    Old source packages must be built to read their dependencies, if `builds` allows that, with an interpreter of the
    environment's Python. Raises UnavailableError if it is missing and there isn't a wheel of each package. If the
    requirements can't be resolved, raises CannotRunHereError with the resolver's message, or UsageError for an ad-hoc
    environment.
    """
    if environment.base:
        return _resolve_moved(project, environment, device, builds)
    interpreter, missing = _find_interpreter(environment.python)
    with tempfile.TemporaryDirectory() as folder:
        inputs = list_inputs(environment, device)
        options = ["--no-deps"] if environment.gpu_image else []
        options += _list_build_options(project, environment, builds)
        options += [*interpreter, *_list_time_options(environment)]
        if environment.is_candidate and any(text.startswith("keras==") for text in inputs):
            # it requires a nightly Keras, which would be installed over the stable one
            dropped = Path(folder) / "dropped.txt"
            dropped.write_text("keras-nightly ; python_version < '0'\n", encoding="utf-8")
            options.append(f"--overrides={dropped}")
        process = index.compile_lock(inputs, environment.architecture, *dict.fromkeys(options))
    if process.returncode and missing:
        raise missing
    if process.returncode:
        is_requested = environment.asked and process.returncode == index.NO_SOLUTION
        error = UsageError if is_requested else CannotRunHereError
        raise error(
            f"The requirements of {environment.exact} can't be resolved:\n{get_last_lines(process.stderr, 20)}",
            _add_trust_advice(process.stderr),
        )
    return _format_heading(environment, device) + process.stdout


def _find_interpreter(python: str) -> tuple[list[str], UnavailableError | None]:
    """Return uv's options for Python X.Y, and the error if it is missing here. Without it, nothing can be built."""
    try:
        return [f"--python={find_python(python)}"], None
    except UnavailableError as error:
        return [f"--python={sys.executable}", f"--python-version={python}", _NO_BUILD], error


def _resolve_moved(project: Project, environment: Environment, device: Device, builds: Builds) -> str:
    """Return the text of the lock of an environment with replaced packages: its base's lock with the changes.

    Raises the errors of `resolve` and `lock_overrides.resolve`.
    """
    requirement = _load_base(project, environment, device, builds)
    base, lock = requirement.environment, requirement.lock
    heading = f"{_format_heading(environment, device)}# {_describe_base(base.name, lock.sha256)}"
    if environment.wheel:
        return f"{heading}: {environment.source}.\n{sources.make_lock_lines(environment, requirement)}"
    text = lock.path.read_text(encoding="utf-8")
    options = [*_find_interpreter(environment.python)[0], *_list_time_options(environment)]
    options += _list_build_options(project, environment, builds)
    try:
        lines = lock_overrides.resolve(
            base.name,
            text,
            list_inputs(base, device),
            _list_overrides(environment, device),
            architecture=environment.architecture,
            options=[*dict.fromkeys(options)],
        )
    except UsageError as error:
        error.advice = _add_trust_advice(error.message, error.advice)
        raise
    changes = joined(differences(pins(lines), lock.pins))
    return f"{heading}: {changes}.\n{lines}"


def describe_overrides(project: Project, requirement: Requirement) -> str:
    """Describe replaced packages: `tf2.0 with NumPy 1.21.6 instead of 1.17.3`. Empty for other environments."""
    environment = requirement.environment
    if not environment.base:
        return ""
    if environment.source:
        return f"{environment.base} with {environment.source}"
    builds = Builds.NONE if requirement.lock.path.name.endswith(_PLANNED) else Builds.ALL
    base = _load_base(project, environment, requirement.device, builds)
    return f"{environment.base} with {joined(differences(requirement.lock.pins, base.lock.pins))}"


def _describe_base(base: str, sha256: str) -> str:
    return f"Based on {base}, with the lock {sha256[:16]}"


def _is_outdated(project: Project, environment: Environment, device: Device) -> bool:
    """Return whether the wheel or the lock of the base has changed since this lock was written."""
    text = lock_file(project, environment, device).read_text(encoding="utf-8", errors="replace")
    if environment.wheel and environment.wheel.partition("/")[0] not in text:
        return True
    name = name_lock(environment, device, environment.base)
    bases = [folder / name for folder in (project.locks, adhoc.get_folder()) if (folder / name).is_file()]
    if not environment.base or not bases:
        return False
    description = _describe_base(environment.base, hashlib.sha256(bases[0].read_bytes()).hexdigest())
    return description not in text


def _list_overrides(environment: Environment, device: Device) -> list[str]:
    """Return the requirements that replace packages, with TensorFlow's package name for the device."""
    override = parse_requested(environment.asked)
    assert isinstance(override, Override)
    pins = override.pins
    return [
        _select_packages(Pinned(name, pins[name], []), environment, device)[0] if name in TENSORFLOW else text
        for name, text in override.by_name.items()
    ]


def _list_time_options(environment: Environment) -> Sequence[str]:
    """Return uv's options that limit upload times. The limit for NVIDIA's packages can be later than for the others."""
    packages = [f"nvidia-{name}-{cuda}" for cuda in ("cu11", "cu12") for name in (*_CUDA, *_OTHER_CUDA)]
    cuda_date = environment.cuda_as_of
    cuda_options = [f"--exclude-newer-package={package}={cuda_date}" for package in packages] if cuda_date else []
    return [f"--exclude-newer={environment.as_of}", *cuda_options]


def _format_heading(environment: Environment, device: Device) -> str:
    cuda_date = environment.cuda_as_of if device is Device.GPU else ""
    cuda = f", NVIDIA's packages as of {cuda_date}" if cuda_date else ""
    machine = "" if environment.architecture == X86_64 else f" on {environment.architecture}"
    packages = f"Python {environment.python}, as of {environment.as_of}{cuda}"
    return (
        f"# {environment.title} for the {device.value}{machine}, {packages}.\n"
        f"# Made by: harness images lock {shlex.quote(environment.exact)}\n"
    )
