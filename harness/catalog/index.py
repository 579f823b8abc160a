"""Asks the package index, through uv: which version a requirement gives, its files, and when they appeared.

The index is the one that uv is set up for, so no host is named here.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from packaging.pylock import Package, PackageSdist, PackageWheel, Pylock, PylockValidationError

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
