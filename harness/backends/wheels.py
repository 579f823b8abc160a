"""Packages from the folder in `HARNESS_WHEELS`, instead of from the network.

The folder has no subfolders. It contains every file that is installed from the locks and from images/uv.txt.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from harness.model.environment import pins
from harness.model.errors import UsageError

VARIABLE = "HARNESS_WHEELS"

#: The time limit for a build of a wheel, in seconds.
BUILD_SECONDS = 900


def find_folder() -> Path | None:
    """Return the folder; None if packages come from the network. Raises UsageError if it contains no files."""
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    path = Path(value).absolute()
    if not path.is_dir() or not any(path.glob("*")):  # an unreadable folder has none
        raise UsageError(f"{VARIABLE} is {value}, but this isn't a folder with packages.")
    return path


@contextmanager
def select_wheels(path: Path, locks: Iterable[Path]) -> Iterator[Path]:
    """Yield a folder with the files in `path` that the locks name, because a builder copies its whole folder.

    Files whose names aren't names of packages are included too.
    """
    from packaging.utils import canonicalize_version

    locked = [pin for lock in locks for pin in pins(lock.read_text(encoding="utf-8")).items()]
    pinned = {(name, canonicalize_version(version)) for name, version in locked}
    # in the same file system if possible, so that files are linked instead of copied
    parent = path.parent if os.access(path.parent, os.W_OK) else Path(gettempdir())
    with TemporaryDirectory(dir=parent, prefix=".harness-wheels-") as selected:
        for file in path.iterdir():
            if file.is_file() and _parse_package(file.name) in pinned | {None}:
                try:
                    (Path(selected) / file.name).hardlink_to(file)
                except OSError:  # another file system, or one without links
                    shutil.copy(file, selected)
        yield Path(selected)


def _parse_package(name: str) -> tuple[str, str] | None:
    """Return the package and the version in a file's name, both normalised."""
    from packaging import utils

    try:
        parts = utils.parse_wheel_filename(name)[:2] if name.endswith(".whl") else utils.parse_sdist_filename(name)
    except (utils.InvalidSdistFilename, utils.InvalidWheelFilename):
        return None
    return parts[0], utils.canonicalize_version(parts[1])
