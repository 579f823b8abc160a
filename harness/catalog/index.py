"""Asks the package index, through uv: which version a requirement gives, its files, and when they appeared.

The index is the one that uv is set up for, so no host is named here.
"""

import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from harness.machine.uv import last_words, run_uv
from harness.model.errors import CannotRunHereError

#: The images' base is Debian 12 on x86-64; the newest wheels ask for a C library of 2.28.
PLATFORM = "x86_64-manylinux_2_28"

#: What uv exits with where the index answered, and nothing fits.
NO_SOLUTION = 1


@dataclass(frozen=True, slots=True)
class File:
    """A file of a package; `uploaded` is when it appeared, None where the index does not tell."""

    url: str
    sha256: str
    uploaded: datetime | None = None

    @property
    def name(self) -> str:
        """The file's own name, as the index writes it."""
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a package: the wheels that fit the Python and the platform, and its source, None without one."""

    name: str
    version: str
    wheels: Sequence[File] = ()
    source: File | None = None

    @property
    def files(self) -> Sequence[File]:
        """What an installer takes: one of the wheels, the source where there is none."""
        return self.wheels or ([self.source] if self.source else [])

    @property
    def uploaded(self) -> datetime | None:
        """When the last of its files appeared."""
        return max((file.uploaded for file in self.files if file.uploaded), default=None)


def find(requirement: str, python: str, *, lowest: bool = False) -> Package | None:
    """The newest version (the oldest, if `lowest`) that has a file for Python X.Y; None where there is none.

    Raises CannotRunHereError, with uv's words, where the index does not answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.txt"
        asked.write_text(f"{requirement}\n", encoding="utf-8")
        _, found = _look_up(asked, python, [f"--resolution={'lowest' if lowest else 'highest'}"])
    return next((package for package in found if package.files), None)


def files(requirements: Path, python: str) -> list[Package]:
    """The packages of a requirements file, exactly those that it names, for Python X.Y.

    Raises CannotRunHereError, with uv's words, where the index does not answer or does not have one of them.
    """
    words, found = _look_up(requirements, python, [])
    if words:
        raise CannotRunHereError(f"The package index does not have all of {requirements}:\n{words}")
    return found


def _look_up(requirements: Path, python: str, options: Sequence[str]) -> tuple[str, list[Package]]:
    """uv's words where nothing fits, and the packages where something does."""
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "pylock.toml"
        done = run_uv(
            [
                "pip",
                "compile",
                str(requirements),
                f"--output-file={lock}",
                "--format=pylock.toml",
                # any interpreter does, as nothing is built; a search for one can take longer than the question
                f"--python={sys.executable}",
                f"--python-version={python}",
                f"--python-platform={PLATFORM}",
                "--no-deps",
                "--quiet",
                *options,
            ]
        )
        if done.returncode == 0:
            return "", parse(lock.read_text(encoding="utf-8"))
    words = last_words(done.stderr, 12)
    if done.returncode != NO_SOLUTION or "network was disabled" in words:
        raise CannotRunHereError(
            f"The package index does not answer:\n{words}",
            "The catalogue's environments, and those that were made here before, need no index to be found.",
        )
    return words, []


def parse(text: str) -> list[Package]:
    """The packages of a pylock.toml's text (PEP 751)."""
    return [_package(table) for table in tomllib.loads(text).get("packages", [])]


def _package(table: Mapping[str, Any]) -> Package:
    source = table.get("sdist")
    return Package(
        name=str(table["name"]),
        version=str(table.get("version", "")),
        wheels=list(_files(table.get("wheels", []))),
        source=next(iter(_files([source])), None) if source else None,
    )


def _files(tables: Iterable[Mapping[str, Any]]) -> Iterable[File]:
    for table in tables:
        url = table.get("url") or Path(table["path"]).absolute().as_uri()
        uploaded = table.get("upload-time")
        yield File(url, str(table["hashes"]["sha256"]), uploaded if isinstance(uploaded, datetime) else None)
