"""Finds requested packages in the index, and names the nearest versions if there are none."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

from packaging.pylock import Package
from packaging.requirements import Requirement
from packaging.version import Version

from harness.environments import index
from harness.environments.lines import PYTHONS
from harness.environments.requested import Pinned
from harness.environments.requirements import parse_exact
from harness.model.environment import ARM64, TENSORFLOW, Environment
from harness.model.errors import CannotRunHereError, UsageError

#: The releases that are named `tensorflow-aarch64` on arm64. `tensorflow` 2.11.1 needs a package without a wheel for
#: Python 3.8.
_AARCH64_RELEASES = ((2, 7), (2, 8), (2, 9), (2, 11))


def choose_package(name: str, version: str, architecture: str) -> str:
    """Return the package on an architecture for a requested package. Daily wheels keep their names."""
    if architecture != ARM64 or name not in TENSORFLOW or name == "tf-nightly":
        return name
    if name == "tf-nightly-cpu":
        return "tf-nightly"
    return "tensorflow-aarch64" if Version(version).release[:2] in _AARCH64_RELEASES else "tensorflow"


def find_package(text: str, base: Environment) -> Package:
    """Return the package of a requirement for the base's Python: a wheel, or the source if there are no wheels."""
    requirement = Requirement(text)
    version = parse_exact(requirement)
    make_error = partial(_make_unknown_version_error, requirement.name, base.architecture, [base.python])
    package = index.find(text, base.python, base.architecture)
    if package is None and version:
        raise make_error(version)
    if package is None:
        raise UsageError(
            f"{text} isn't available for Python {base.python} (the Python of {base.name}) on {base.architecture}."
        )
    if version and (reason := index.find_yank_reason(text, base.python, base.architecture)) is not None:
        raise make_error(version, f"was yanked from the package index ({reason})")
    if not package.wheels:
        pythons = [python for python in PYTHONS if python != base.python]
        if usable := _find_wheels(text, pythons, base.architecture):
            reason = f"has wheels for Python {', '.join(usable)}, but not for {base.python} (the Python of {base.name})"
            raise make_error(str(package.version), reason)
    return package


def find_lock_time(packages: Sequence[Package]) -> datetime:
    """Return the end of the day after the most recent upload of the packages (UTC), or now if that is earlier."""
    return min(max(map(find_upload_day, packages)) + timedelta(days=2), datetime.now(UTC).replace(microsecond=0))


def find_upload_day(package: Package) -> datetime:
    """Return the start of the day (UTC) on which the last file of a package was uploaded."""
    times = [file.upload_time for file in index.find_files(package) if file.upload_time]
    if not times:
        raise CannotRunHereError(
            f"The package index doesn't report the upload time of {package.name} {package.version}, so packages of "
            "the same date can't be selected.",
            "Use an index with upload times (PEP 700), or add a line to docker-bake.hcl.",
        )
    return max(times).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def find_tensorflow(spec: Pinned, python: str, environments: Sequence[Environment]) -> tuple[Package, str]:
    """Return the TensorFlow package and its Python: `python`, or the nearest version with a wheel."""
    architecture = environments[0].architecture
    requirement = f"{choose_package(spec.package, spec.version, architecture)}=={spec.version}"
    if (package := index.find(requirement, python, architecture)) is not None and package.wheels:
        return package, python
    catalog = {environment.python for environment in environments}
    pythons = sorted(
        {*PYTHONS, *catalog} - {python},
        key=lambda version: (abs(_parse_minor(version) - _parse_minor(python)), _parse_minor(version)),
    )
    if packages := _find_wheels(requirement, pythons, architecture):
        nearest = next(iter(packages))
        return packages[nearest], nearest
    raise _make_unknown_version_error(spec.package, architecture, sorted(catalog, key=_parse_minor), spec.version)


def find_pinned_package(name: str, version: str, python: str, architecture: str) -> Package:
    """Return the package of an exact version. Raises UsageError if there is none."""
    package = index.find(f"{name}=={version}", python, architecture)
    if package is None:
        raise _make_unknown_version_error(name, architecture, [python], version)
    return package


def _make_unknown_version_error(
    name: str, architecture: str, pythons: Sequence[str], version: str, reason: str = ""
) -> UsageError:
    """Return the error for a version that doesn't exist or can't be used, with the nearest usable versions."""

    def list_nearest(bound: str, *, lowest: bool = False) -> list[Version]:
        packages = _find_wheels(f"{name}{bound}{version}", pythons, architecture, lowest=lowest)
        return sorted(package.version for package in packages.values() if package.version)

    nearest = [*list_nearest("<")[-1:], *list_nearest(">", lowest=True)[:1]]
    advice = f"Nearest versions: {' and '.join(f'{name}=={candidate}' for candidate in nearest)}." if nearest else ""
    if reason:
        return UsageError(f"{name} {version} {reason}.", advice)
    python = f"Python {', '.join(pythons)}"
    hint = "" if nearest else f" The package index lists no version of {name} for {python}. Check the name."
    return UsageError(f"{name} {version} isn't available for {python} on {architecture}.{hint}", advice)


def _find_wheels(
    requirement: str, pythons: Sequence[str], architecture: str, *, lowest: bool = False
) -> dict[str, Package]:
    """Return the package for each version of Python for which it has a wheel. Queries the index in parallel."""
    find = partial(index.find, requirement, architecture=architecture, lowest=lowest)
    with ThreadPoolExecutor() as pool:
        packages = zip(pythons, pool.map(find, pythons), strict=True)
        return {python: package for python, package in packages if package and package.wheels}


def _parse_minor(python: str) -> int:
    """Return the minor part of a Python version."""
    return int(python.partition(".")[2])
