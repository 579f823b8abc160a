"""A pack: a folder with the files from which a machine without a network installs environments and builds images.

- `wheels/`: the packages of the environments, of images/uv.txt and of harness. Installers compare their hashes with the
  locks, so a damaged file is never installed.
- `images/`: the base images, as `docker save` writes them
- `locks/`: the ad-hoc environments and their locks
"""

import hashlib
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from harness.backends import registry
from harness.environments import adhoc, index
from harness.environments.index import File
from harness.files import read, remove_unfinished, replace_file, write_atomically
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UsageError, explain_unwritable
from harness.project import Project

if TYPE_CHECKING:
    from harness.backends.docker.images import Images

#: A download fails after this many seconds without data.
_TIMEOUT_SECONDS = 60


def fill(
    folder: Path,
    project: Project,
    requirements: Sequence[Requirement],
    images: "Images | None",
    say: Callable[[str], object],
) -> list[Path]:
    """Fetch everything that builds of these environments need into a folder, and return the files.

    Existing files aren't fetched again. `images` provides base images; None omits them. `say` receives a line about
    each new file. Raises CannotRunHereError if a file is unavailable or can't be written.
    """
    with explain_unwritable(folder):
        # images come first: if one is unavailable, the error appears before gigabytes are fetched
        saved = _save_images(images, requirements, folder / "images", say) if images else []
        return [
            *saved,
            *_fetch_packages(project, requirements, folder / "wheels", say),
            *_copy_locks(requirements, folder),
        ]


def use(folder: Path, say: Callable[[str], object]) -> Path:
    """Load a pack's base images into the engine, and save its locks. Return the folder of its packages.

    `say` receives a line about each image. Raises UsageError if the folder isn't a pack, and CannotRunHereError.
    """
    wheels = folder / "wheels"
    if not wheels.is_dir():
        raise UsageError(
            f"{folder} is not a pack: it has no folder `wheels`.", "To create a pack: harness images pack FOLDER"
        )
    archives = sorted((folder / "images").glob("*.tar"))
    if archives:
        store = registry.open_image_backend(Project.find().root).images
        for archive in archives:
            say(f"loaded {', '.join(store.load(archive))}")
    for path in sorted((folder / "locks").glob("*")):
        try:
            write_atomically(adhoc.get_folder() / path.name, read(path.relative_to(folder), within=folder))
        except OSError as error:
            raise CannotRunHereError(f"The lock {path} cannot be copied to the cache: {error.strerror}.") from None
    return wheels.resolve()


def _save_images(
    store: "Images", requirements: Sequence[Requirement], folder: Path, say: Callable[[str], object]
) -> list[Path]:
    """Save the base images of the environments, except those with a file. Return the files."""
    remove_unfinished(folder)
    paths = []
    for reference in store.bases(requirements):
        path = folder / f"{re.sub(r'[^A-Za-z0-9.-]', '-', reference)}.tar"
        if not path.is_file():
            store.save(reference, path)
            say(f"saved {reference}")
        paths.append(path)
    return paths


def _fetch_packages(
    project: Project, requirements: Sequence[Requirement], folder: Path, say: Callable[[str], object]
) -> list[Path]:
    """Fetch the packages of the locks, of images/uv.txt and of harness. Return the files."""
    own_python = f"{sys.version_info.major}.{sys.version_info.minor}"
    sources = [(project.root / "images" / "uv.txt", own_python), (project.root / "requirements.txt", own_python)]
    sources += [(requirement.lock.path, requirement.environment.python) for requirement in requirements]
    architecture, files = requirements[0].environment.architecture, [pair for pair in sources if pair[0].is_file()]
    packages = [package for pair in files for package in index.parse_lock(*pair, architecture)]
    return download([file for package in packages for file in index.find_files(package)], folder, say)


def _copy_locks(requirements: Sequence[Requirement], folder: Path) -> list[Path]:
    """Copy the ad-hoc environments and their locks, which aren't in the project. Return the files."""
    sources = [
        path
        for requirement in requirements
        if requirement.environment.asked
        for path in (requirement.lock.path, adhoc.get_file(requirement.environment.name))
    ]
    for path in sources:
        write_atomically(folder / "locks" / path.name, read(path))
    return [folder / "locks" / path.name for path in sources]


def download(files: Iterable[File], folder: Path, say: Callable[[str], object]) -> list[Path]:
    """Download files into a folder, except those that it has already. Return the paths.

    `say` receives a line about each downloaded file. Raises CannotRunHereError if a file is unavailable, or if its hash
    differs from the one in the lock.
    """
    by_path = {folder / file.filename: file for file in files}
    folder.mkdir(parents=True, exist_ok=True)
    remove_unfinished(folder)
    missing = [path for path, file in by_path.items() if not _has_hash(path, file.hashes["sha256"])]
    for count, path in enumerate(missing, 1):
        url = index.find_address(by_path[path])
        try:
            with replace_file(path) as part:
                _copy(url, part)
                if not _has_hash(part, by_path[path].hashes["sha256"]):
                    raise CannotRunHereError(f"The hash of {url} differs from the hash in the lock file.")
        except OSError as error:
            raise CannotRunHereError(f"{url} could not be downloaded to {folder}: {error}.") from None
        say(f"{count} of {len(missing)}: {path.name} ({path.stat().st_size / 1e6:.1f} MB)")
    return list(by_path)


def _has_hash(path: Path, digest: str) -> bool:
    """Return whether this is a file with this SHA-256 hash. Links count as missing files."""
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


def _copy(url: str, path: Path) -> None:
    """Copy a local file or download a remote one. Raises OSError (also for errors of the library requests)."""
    import requests

    parts = urlsplit(url)
    if parts.scheme == "file":
        shutil.copyfile(url2pathname(parts.path), path)
        return
    with requests.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response, path.open("wb") as file:
        response.raise_for_status()
        file.writelines(response.iter_content(1 << 20))
