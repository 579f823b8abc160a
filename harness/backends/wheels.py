"""Packages from a folder in place of the network: `HARNESS_WHEELS` names it.

The folder is flat, and has every file that the locks name which are installed from it, and those of images/uv.txt.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.model.environment import pins
from harness.model.errors import UsageError

VARIABLE = "HARNESS_WHEELS"


def folder() -> Path | None:
    """The folder; None where packages come from the network. Raises UsageError where there are no files in it."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    path = Path(named).absolute()
    if not path.is_dir() or not any(path.iterdir()):
        raise UsageError(f"{VARIABLE} names {named}, which is not a folder with packages in it.")
    return path


@contextlib.contextmanager
def selected(path: Path, locks: Iterable[Path]) -> Iterator[Path]:
    """A folder with those of the files in `path` that the locks name: a builder copies the folder that it is given.

    A file whose name tells no package is taken too.
    """
    locked = [pin for lock in locks for pin in pins(lock.read_text(encoding="utf-8")).items()]
    wanted = {_canonical(name, version) for name, version in locked}
    with tempfile.TemporaryDirectory(dir=_beside(path), prefix=".harness-wheels-") as few:
        for file in path.iterdir():
            if file.is_file() and _named(file.name) in wanted | {None}:
                _link(file, Path(few) / file.name)
        yield Path(few)


def _beside(path: Path) -> Path | None:
    """A folder of the same file system, so that files are linked and not copied; else the system's own choice."""
    return path.parent if os.access(path.parent, os.W_OK) else None


def _named(name: str) -> tuple[str, str] | None:
    """The package and the version in a file's name."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

    try:
        package, version = parse_wheel_filename(name)[:2] if name.endswith(".whl") else parse_sdist_filename(name)
    except (InvalidSdistFilename, InvalidWheelFilename):
        return None
    return _canonical(package, str(version))


def _canonical(name: str, version: str) -> tuple[str, str]:
    from packaging.utils import canonicalize_name, canonicalize_version

    return canonicalize_name(name), canonicalize_version(version)


def _link(file: Path, name: Path) -> None:
    try:
        name.hardlink_to(file)
    except OSError:  # another file system, or one without links
        shutil.copy(file, name)
