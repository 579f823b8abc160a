"""Queries of the package index through uv: the version of a requirement, its files, and their upload times.

The index comes from uv's configuration, so this module names no host.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from packaging.pylock import Package, PackageSdist, PackageWheel, Pylock, PylockValidationError
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from harness.files import parse_json
from harness.machine.uv import get_last_lines, run_uv
from harness.model.environment import ARM64, X86_64
from harness.model.errors import CannotRunHereError
from harness.model.texts import remove_password

File = PackageWheel | PackageSdist

#: The names of architectures in wheels and in the kernel.
MACHINES = {X86_64: "x86_64", ARM64: "aarch64"}

#: uv's exit code if the index answered, but no version meets the requirements.
NO_SOLUTION = 1


def find_files(package: Package) -> Sequence[File]:
    """Return the files that an installer can use: wheels for the Python and platform, or otherwise the source."""
    return package.wheels or ([package.sdist] if package.sdist else [])


def find_address(file: File) -> str:
    """Return the URL of a file on a server, or a `file:` URL if it is in a local folder."""
    return file.url or Path(file.path or "").absolute().as_uri()


def find(requirement: str, python: str, architecture: str = X86_64, *, lowest: bool = False) -> Package | None:
    """Return the newest package (with `lowest`, the oldest) that meets a requirement; None if no file fits Python X.Y.

    Raises CannotRunHereError with uv's message if the index doesn't answer.
    """
    _, packages = _look_up(requirement, python, architecture, f"--resolution={'lowest' if lowest else 'highest'}")
    return next((package for package in packages if find_files(package)), None)


def find_yank_reason(requirement: str, python: str, architecture: str) -> str | None:
    """Return why the version of an exact requirement was yanked (PEP 592), or None if it wasn't."""
    options = [f"--python={sys.executable}", f"--python-version={python}", "--no-deps"]
    # uv accepts a yanked version with a warning, so don't pass --quiet
    stderr = _compile(requirement, architecture, *options).stderr
    match = re.search(r"is yanked(?: \(reason: \"(.*)\"\))?", stderr)
    return (match[1] or "no reason is given") if match else None


def parse_lock(requirements: Path, python: str, architecture: str = X86_64) -> Sequence[Package]:
    """Return the packages that a requirements file names, without their dependencies, for Python X.Y.

    Raises CannotRunHereError with uv's message if the index doesn't answer, or if a package is missing.
    """
    error, packages = _look_up(requirements.read_text(encoding="utf-8"), python, architecture)
    if error:
        raise CannotRunHereError(f"The package index doesn't have all packages that {requirements} requires:\n{error}")
    return packages


def compile_lock(requirements: Iterable[str], architecture: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `uv pip compile` for the images' platform. The lock, with hashes, is its stdout."""
    form = ["--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"]
    return _compile("\n".join(requirements), architecture, "--quiet", *form, *options)


def _compile(requirements: str, architecture: str, *options: str) -> subprocess.CompletedProcess[str]:
    # the images have Debian 12, and the newest wheels need glibc 2.28
    platform = f"--python-platform={MACHINES.get(architecture, architecture)}-manylinux_2_28"
    return run_uv(["pip", "compile", "-", platform, *options], requirements)


def _look_up(requirements: str, python: str, architecture: str, *options: str) -> tuple[str, Sequence[Package]]:
    """Return uv's message if no version meets the requirements (otherwise empty), and the matching packages."""
    # use this interpreter, because nothing is built, and a search for another one can take longer than the query
    fixed = ["--quiet", f"--python={sys.executable}", f"--python-version={python}", "--format=pylock.toml"]
    process = _compile(requirements, architecture, *fixed, "--no-deps", *options)
    if process.returncode == 0:
        try:
            return "", Pylock.from_dict(tomllib.loads(process.stdout)).packages
        except (PylockValidationError, ValueError, RecursionError) as error:
            raise CannotRunHereError(f"The package index lists a file whose name is invalid: {error}.") from None
    message = get_last_lines(process.stderr, 12)
    if process.returncode != NO_SOLUTION or "network was disabled" in message:
        raise CannotRunHereError(
            f"The package index does not answer:\n{message}",
            "Without the index, you can use the environments in the catalog, and environments that were created "
            "earlier on this machine.",
        )
    return message, []


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A version of a package in the index.

    `uploaded` is the upload time of its first file, or None if the index doesn't report it. `yanked` is the reason why
    the version was yanked (PEP 592), or empty. `files` are the names of its wheels.
    """

    version: str
    uploaded: datetime | None
    yanked: str
    files: Sequence[str]

    def fits(self, python: str, architecture: str = X86_64) -> bool:
        """Return whether the version has a wheel for CPython X.Y on 64-bit Linux."""
        supported_tags = list_supported_tags(python, architecture)
        return any(not supported_tags.isdisjoint(parse_wheel_filename(name)[3]) for name in self.files)


@cache
def list_supported_tags(python: str, architecture: str = X86_64) -> frozenset[Tag]:
    """Return the tags of wheels that CPython X.Y can install on 64-bit Linux."""
    version, machine = tuple(int(part) for part in python.split(".")), MACHINES.get(architecture, architecture)
    names = [f"manylinux_2_{minor}" for minor in range(5, 37)]
    names += ["manylinux2014", "manylinux2010", "manylinux1", "linux"]
    platforms = [f"{name}_{machine}" for name in names]
    return frozenset({*cpython_tags(version, platforms=platforms), *compatible_tags(version, platforms=platforms)})


def list_versions(package: str) -> list[IndexedVersion]:
    """Return every version of a package that has wheels, oldest first, from the index's JSON (PEP 691 and 700).

    uv provides the index's address. Raises CannotRunHereError if the index doesn't answer.
    """
    name = canonicalize_name(package)
    by_version: dict[Version, list[dict[str, Any]]] = {}
    for address in _list_addresses():
        for file in _fetch_project(f"{address.rstrip('/')}/{name}/"):
            try:
                _, version, *_ = parse_wheel_filename(file["filename"])
            except (InvalidWheelFilename, KeyError):  # a source package, or an old invalid name
                continue
            by_version.setdefault(version, []).append(file)
    return [_make_version(str(version), by_version[version]) for version in sorted(by_version)]


def _make_version(version: str, files: Sequence[Mapping[str, Any]]) -> IndexedVersion:
    times = [datetime.fromisoformat(text) for file in files if (text := file.get("upload-time"))]
    yank_values = [file.get("yanked") for file in files]
    why = next((reason for reason in yank_values if isinstance(reason, str)), "") or "no reason is given"
    return IndexedVersion(
        version=version,
        uploaded=min(times, default=None),
        yanked=why if all(yank_values) else "",
        files=[file["filename"] for file in files],
    )


def _list_addresses() -> list[str]:
    """Return the addresses of the indexes that uv uses, as it writes them to a lock."""
    process = run_uv(["pip", "compile", os.devnull, "--emit-index-url", "--quiet", f"--python={sys.executable}"])
    addresses = re.findall(r"(?m)^--(?:extra-)?index-url (\S+)", process.stdout)
    if not addresses:
        raise CannotRunHereError(f"uv does not report its package index:\n{get_last_lines(process.stderr)}")
    return addresses


def _fetch_project(address: str) -> list[dict[str, Any]]:
    """Return the files of a package, or an empty list if the index doesn't have it."""
    import requests  # noqa: PLC0415 - it loads slowly

    try:
        # requests sends the user and the password in the address as a header, and not to a host of a redirect
        response = requests.get(address, headers={"Accept": "application/vnd.pypi.simple.v1+json"}, timeout=60)
        if response.status_code == HTTPStatus.NOT_FOUND:
            return []
        response.raise_for_status()
        return list(parse_json(response.content)["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRunHereError(
            f"The package index does not answer with a valid list (PEP 691): {remove_password(str(error))}."
        ) from None
