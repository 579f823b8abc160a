"""Asks the package index, through uv: which version a requirement gives, its files, and when they appeared.

The index is the one that uv is set up for, so no host is named here.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from packaging.pylock import Package, PackageSdist, PackageWheel, Pylock, PylockValidationError
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from harness.machine.uv import last_words, run_uv
from harness.model.errors import CannotRunHereError

File = PackageWheel | PackageSdist

#: The images' base is Debian 12 on x86-64; the newest wheels ask for a C library of 2.28.
PLATFORM = "x86_64-manylinux_2_28"

#: What uv exits with where the index answered, and nothing fits.
NO_SOLUTION = 1


def files(package: Package) -> Sequence[File]:
    """What an installer takes: one of the wheels that fit the Python and the platform, the source where none does."""
    return package.wheels or ([package.sdist] if package.sdist else [])


def address(file: File) -> str:
    """Where a file is: on a server, or in a folder as a `file:` address."""
    return file.url or Path(file.path or "").absolute().as_uri()


def uploaded(package: Package) -> datetime | None:
    """When the last of its files appeared; None where the index does not say."""
    return max((file.upload_time for file in files(package) if file.upload_time), default=None)


def find(requirement: str, python: str, *, lowest: bool = False) -> Package | None:
    """The newest version (the oldest, if `lowest`) that has a file for Python X.Y; None where there is none.

    Raises CannotRunHereError, with uv's words, where the index does not answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.txt"
        asked.write_text(f"{requirement}\n", encoding="utf-8")
        _, found = _look_up(asked, python, f"--resolution={'lowest' if lowest else 'highest'}")
    return next((package for package in found if files(package)), None)


def yanked(requirement: str, python: str) -> str | None:
    """Why the one version that a requirement allows was withdrawn (PEP 592); None where it was not."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.txt"
        asked.write_text(f"{requirement}\n", encoding="utf-8")
        options = [f"--python={sys.executable}", f"--python-version={python}", "--no-deps"]
        # uv takes it, with a warning, which --quiet would keep back
        told = run_uv(["pip", "compile", str(asked), f"--python-platform={PLATFORM}", *options]).stderr
    match = re.search(r"is yanked(?: \(reason: \"(.*)\"\))?", told)
    return (match[1] or "no reason is given") if match else None


def locked(requirements: Path, python: str) -> Sequence[Package]:
    """The packages of a requirements file, exactly those that it names, for Python X.Y.

    Raises CannotRunHereError, with uv's words, where the index does not answer or does not have one of them.
    """
    words, found = _look_up(requirements, python)
    if words:
        raise CannotRunHereError(f"The package index does not have all of {requirements}:\n{words}")
    return found


def compiled(requirements: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What `uv pip compile` says for the images' platform: the lock is its stdout."""
    return run_uv(["pip", "compile", str(requirements), f"--python-platform={PLATFORM}", "--quiet", *options])


def _look_up(requirements: Path, python: str, *options: str) -> tuple[str, Sequence[Package]]:
    """uv's words where nothing fits, and the packages where something does."""
    # any interpreter does, as nothing is built; a search for one can take longer than the question
    interpreter = [f"--python={sys.executable}", f"--python-version={python}"]
    done = compiled(requirements, *interpreter, "--format=pylock.toml", "--no-deps", *options)
    if done.returncode == 0:
        return "", _packages(done.stdout)
    words = last_words(done.stderr, 12)
    if done.returncode != NO_SOLUTION or "network was disabled" in words:
        raise CannotRunHereError(
            f"The package index does not answer:\n{words}",
            "The catalogue's environments, and those that were made here before, need no index to be found.",
        )
    return words, []


def _packages(pylock: str) -> Sequence[Package]:
    """The packages of a pylock.toml's text (PEP 751)."""
    try:
        return Pylock.from_dict(tomllib.loads(pylock)).packages
    except PylockValidationError as error:
        raise CannotRunHereError(f"The package index has files that packaging cannot read: {error}.") from None


@dataclass(frozen=True, slots=True)
class Listed:
    """One version of a package, as the index lists it: when its first file appeared, and for which Pythons it has one.

    `uploaded` is None where the index does not tell; `yanked` is why it was withdrawn (PEP 592), empty where it was
    not. `files` are the names of its wheels.
    """

    version: str
    uploaded: datetime | None
    yanked: str
    files: Sequence[str]

    def fits(self, python: str) -> bool:
        """Whether it has a wheel for CPython X.Y on 64-bit x86 Linux."""
        return any(_fits(name, python) for name in self.files)


def listed(package: str) -> list[Listed]:
    """Every version of a package that has wheels, in order, by the index's JSON (PEP 691 and 700).

    The index's address is what uv would write into a lock. Raises CannotRunHereError where it does not answer.
    """
    name = canonicalize_name(package)
    found: dict[Version, list[dict[str, Any]]] = {}
    for address in _addresses():
        for each in _project(f"{address.rstrip('/')}/{name}/"):
            try:
                _, version, *_ = parse_wheel_filename(each["filename"])
            except (InvalidWheelFilename, KeyError):  # a source package, or a name of an older time
                continue
            found.setdefault(version, []).append(each)
    return [_listed(str(version), found[version]) for version in sorted(found)]


def _listed(version: str, files: Sequence[Mapping[str, Any]]) -> Listed:
    times = [datetime.fromisoformat(text) for each in files if (text := each.get("upload-time"))]
    withdrawn = [each.get("yanked") for each in files]
    why = next((each for each in withdrawn if isinstance(each, str)), "") or "no reason is given"
    return Listed(
        version=version,
        uploaded=min(times, default=None),
        yanked=why if all(withdrawn) else "",
        files=[each["filename"] for each in files],
    )


def _fits(wheel: str, python: str) -> bool:
    own = f"cp{python.replace('.', '')}"
    _, _, _, tags = parse_wheel_filename(wheel)
    return any(
        (tag.interpreter in (own, "py3") or (tag.abi == "abi3" and _number(tag.interpreter) <= _number(own)))
        and (tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64")))
        for tag in tags
    )


def _number(interpreter: str) -> int:
    """A CPython's minor version, of `cp311`."""
    digits = interpreter.removeprefix("cp3")
    return int(digits) if digits.isdecimal() else 0


def _addresses() -> list[str]:
    """The addresses of the indexes that uv asks, as it writes them into a lock."""
    done = run_uv(["pip", "compile", os.devnull, "--emit-index-url", "--quiet", f"--python={sys.executable}"])
    found = re.findall(r"(?m)^--(?:extra-)?index-url (\S+)", done.stdout)
    if not found:
        raise CannotRunHereError(f"uv does not tell which package index it asks:\n{last_words(done.stderr)}")
    return found


def _project(address: str) -> list[dict[str, Any]]:
    """The files of a package. None of a package that the index does not have."""
    asked = urllib.request.Request(address, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return list(json.load(answer)["files"])
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return []
        raise CannotRunHereError(f"The package index answers {error.code} to a question for a list.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRunHereError(f"The package index does not answer with a list (PEP 691): {error}.") from None
