"""Ad-hoc environments: made of what was typed (`-e tensorflow==2.7.1`), and kept in the user's cache with their locks.

What is not typed is the catalogue's: Python and CUDA are those of the same minor release. Packages are taken as of the
end of the day after the youngest of those appeared of which a version was typed. The estimator of 2.4.0 was uploaded
six hours after its TensorFlow, past midnight.
"""

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from packaging.version import Version

from harness.catalog import index
from harness.catalog.asked import Asked, is_asked, parse
from harness.files import cache_dir, write_atomically
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError, UsageError

#: The Pythons that images can have beside the catalogue's own.
_PYTHONS = tuple(f"3.{minor}" for minor in range(7, 15))


def with_asked(known: Mapping[str, Environment], typed: Sequence[str]) -> tuple[dict[str, Environment], list[str]]:
    """The catalogue and the environments that were typed as requirements; and what was typed, as names and globs.

    An environment that was made before is found by its name too, without a look at the index. Raises UsageError for
    requirements that no environment can be made of, CannotRunHereError where the index has to be asked and does not
    answer.
    """
    environments, names = dict(known), []
    for text in typed:
        environment = None
        if text not in known:
            environment = make(text, known) if is_asked(text) else kept(text)
        if environment is not None:
            environments[environment.name] = environment
        names.append(environment.name if environment else text)
    return environments, names


def make(text: str, known: Mapping[str, Environment]) -> Environment:
    """The environment that was typed: the one that is kept, else a new one, which is kept then."""
    asked = parse(text)
    if (before := _kept_for(asked)) is not None:
        return before
    environment = _new(asked, list(known.values()))
    # of a nightly the day is known only now; the lock that it has is as of that instant, not as of this one
    if (before := _kept_for(parse(environment.asked))) is not None:
        return before
    _keep(environment)
    return environment


def kept(name: str) -> Environment | None:
    """The environment of this name that was made before; None where there is none."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        return None
    try:
        return Environment(**json.loads(file(name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _kept_for(asked: Asked) -> Environment | None:
    environment = kept(asked.name) if asked.version else None
    return environment if environment is not None and environment.asked == str(asked) else None


def lock_file(environment: Environment, device: Device) -> Path:
    """Where the lock of an ad-hoc environment lies."""
    return folder() / f"{environment.name}-{device.value}.txt"


def folder() -> Path:
    """Where ad-hoc environments and their locks are kept."""
    return cache_dir() / "locks"


def file(name: str) -> Path:
    """What is kept of the environment of this name."""
    return folder() / f"{name}.json"


def _keep(environment: Environment) -> None:
    # what cannot be kept is asked of the index again
    with contextlib.suppress(OSError):
        write_atomically(file(environment.name), json.dumps(asdict(environment), indent=2))


def _new(asked: Asked, known: Sequence[Environment]) -> Environment:
    neighbour = _neighbour(asked.version, known)
    package, python = _tensorflow(asked, neighbour.python, known)
    asked = replace(asked, version=package.version)
    environment = Environment(
        name=asked.name,
        tensorflow=package.version,
        python=python,
        as_of=_as_of([package, *(_pinned(name, version, python) for name, version in asked.pins.items())]),
        keras=asked.keras,
        released=_day(package).date().isoformat(),
        asked=str(asked),
    )
    if asked.package.endswith("-cpu") or _minor(package.version) < _minor(neighbour.tensorflow):
        return environment
    return _with_gpu(environment, neighbour)


def _as_of(packages: Sequence[index.Package]) -> str:
    """The end of the day (UTC) after the youngest of the packages, or now where that is to come."""
    instant = min(max(map(_day, packages)) + timedelta(days=2), datetime.now(UTC).replace(microsecond=0))
    return instant.isoformat().replace("+00:00", "Z")


def _day(package: index.Package) -> datetime:
    """The start of the day (UTC) on which a package appeared."""
    if package.uploaded is None:
        raise CannotRunHereError(
            f"The package index does not tell when {package.name} {package.version} appeared, so what users had then "
            "is not known.",
            "Use an index that tells upload times (PEP 700), or add a line to docker-bake.hcl.",
        )
    return package.uploaded.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _pinned(name: str, version: str, python: str) -> index.Package:
    package = index.find(f"{name}=={version}", python)
    if package is None:
        raise _unknown(name, version, [python])
    return package


def _with_gpu(environment: Environment, neighbour: Environment) -> Environment:
    """With what the catalogue says of the GPU. NVIDIA's packages are no older than those of the neighbour."""
    instant = neighbour.cuda_as_of or neighbour.as_of
    younger = datetime.fromisoformat(instant) > datetime.fromisoformat(environment.as_of)
    return replace(
        environment,
        cuda=neighbour.cuda,
        cudnn=neighbour.cudnn,
        gpu_code=neighbour.gpu_code,
        cuda_image=neighbour.cuda_image,
        cuda_as_of=instant if younger and not neighbour.cuda_image else "",
    )


def _minor(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def _neighbour(version: str, known: Sequence[Environment]) -> Environment:
    """The catalogue's environment of the same minor release, else of the nearest below, else the oldest."""
    ours = [environment for environment in known if not environment.asked and not environment.gpu_image]
    if not ours:
        raise UsageError("The catalogue has no environment to take Python and CUDA from.")
    if not version:
        return max(ours, key=lambda each: _minor(each.tensorflow))
    below = [each for each in ours if _minor(each.tensorflow) <= _minor(version)]
    if not below:
        return min(ours, key=lambda each: _minor(each.tensorflow))
    return max(below, key=lambda each: _minor(each.tensorflow))


def _tensorflow(asked: Asked, python: str, known: Sequence[Environment]) -> tuple[index.Package, str]:
    """The package and its Python: `python`, else the nearest that it has a wheel for."""
    wanted = f"{asked.package}=={asked.version}" if asked.version else asked.package
    if (package := index.find(wanted, python)) is not None and package.wheels:
        return package, python
    pythons = {*_PYTHONS, *(environment.python for environment in known)} - {python}
    others = sorted(pythons, key=lambda each: (abs(_number(each) - _number(python)), _number(each)))
    for other, candidate in zip(others, _each(partial(index.find, wanted), others), strict=True):
        if candidate is not None and candidate.wheels:
            return candidate, other
    raise _unknown(asked.package, asked.version, sorted({environment.python for environment in known}, key=_number))


def _unknown(name: str, version: str, pythons: Sequence[str]) -> UsageError:
    """The error for a version that is not there, with the nearest that are."""

    def versions(bound: str, *, lowest: bool) -> list[str]:
        found = _each(partial(index.find, f"{name}{bound}{version}", lowest=lowest), pythons)
        return sorted((package.version for package in found if package and package.wheels), key=Version)

    near = [*versions("<", lowest=False)[-1:], *versions(">", lowest=True)[:1]]
    advice = f"The nearest: {' and '.join(f'{name}=={each}' for each in near)}." if near else ""
    return UsageError(f"There is no {name} {version} for Python {', '.join(pythons)} on x86-64.", advice)


def _each(question: Callable[[str], index.Package | None], pythons: Sequence[str]) -> list[index.Package | None]:
    """The answers for several Pythons, asked at a time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(question, pythons))


def _number(python: str) -> int:
    """A Python's minor version."""
    return int(python.partition(".")[2])
