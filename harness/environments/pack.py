"""A pack: a folder with everything that image builds need on a machine without a network, and the files' hashes."""

import hashlib
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from harness import __version__
from harness.environments import adhoc, index
from harness.environments.index import File
from harness.files import open_regular_file, parse_json, remove_unfinished, replace_file, write_atomically
from harness.files import read as file_bytes
from harness.model.backend import ImageStore
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, DamagedError, UsageError, explain_unwritable
from harness.project import Project

FILE = "MANIFEST.json"
SCHEMA = 1

#: The number of parallel downloads. One connection rarely uses the whole bandwidth, and a fifth one rarely helps.
_PARALLEL_DOWNLOADS = 4

#: A download fails after this many seconds without data.
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a pack.

    - `harness`: the version that wrote it
    - `environments`: the devices of each environment, by name
    - `images`: the `reference` and the `id` of each saved image, by file name
    - `files`: the SHA-256 of each file, by its path relative to the pack's folder
    """

    harness: str
    environments: Mapping[str, list[str]] = field(default_factory=dict)
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def extend(self, older: "Manifest") -> "Manifest":
        """Return this manifest, extended by the entries that only `older` has."""
        names = {**older.environments, **self.environments}
        devices = {
            name: sorted({*older.environments.get(name, ()), *self.environments.get(name, ())}) for name in names
        }
        return Manifest(self.harness, devices, {**older.images, **self.images}, {**older.files, **self.files})


def read(folder: Path) -> Manifest:
    """Read the manifest of a pack. Raises UsageError if the folder isn't a pack, or is corrupt."""
    path = folder / FILE
    try:
        document = parse_json(file_bytes(Path(FILE), within=folder))
        if document.get("schema") != SCHEMA:
            raise UsageError(
                f"{path} has the schema {document.get('schema')}, but this version of harness reads {SCHEMA}."
            )
        manifest = Manifest(**document)
        texts = [manifest.harness, *manifest.files.values()]
        texts += [image[key] for image in manifest.images.values() for key in ("reference", "id")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a hash or a reference isn't a string")
        return manifest
    except OSError as error:
        raise UsageError(
            f"{folder} is not a pack: {FILE} cannot be read: {error.strerror}.",
            "To create a pack: harness images pack FOLDER",
        ) from None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise DamagedError(path, str(error)) from None


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest. All files that it lists must be complete. Raises CannotRunHereError."""
    with explain_unwritable(folder):
        write_atomically(folder / FILE, json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n")


def check(folder: Path, manifest: Manifest) -> None:
    """Compare every file with the manifest. Raises UsageError with the missing and changed files."""
    faults = {name: _check_file_in_pack(folder, name, digest) for name, digest in sorted(manifest.files.items())}
    problems = [f"{name} {fault}" for name, fault in faults.items() if fault]
    if problems:
        shown_problems = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise UsageError(f"The pack {folder} is corrupt: {shown_problems}.", "Copy the pack again, or create it again.")


def fill(
    folder: Path,
    project: Project,
    requirements: Sequence[Requirement],
    images: ImageStore | None,
    say: Callable[[str], object],
) -> list[Path]:
    """Fetch everything that builds of these environments need into a folder, and return the files.

    Existing files aren't fetched again. `images` provides base images; None omits them. `say` receives a line about
    each file. Raises CannotRunHereError if a file is unavailable or can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHereError(f"The folder {folder} cannot be created: {error.strerror}.") from None
    old_manifest = read(folder) if (folder / FILE).is_file() else Manifest(__version__)
    # images come first: if one is unavailable, the error appears before gigabytes are fetched
    saved_images = {} if images is None else _save_images(images, requirements, folder, old_manifest.images, say)
    hashes = {name: hash_file(folder / name) for name in saved_images}
    wheels = _fetch_wheels(project, requirements, folder / "wheels", say)
    hashes |= {f"wheels/{name}": digest for name, digest in wheels.items()} | _copy_locks(requirements, folder)
    environments = {requirement.environment.name: [requirement.device.value] for requirement in requirements}
    write(folder, Manifest(__version__, environments, saved_images, hashes).extend(old_manifest))
    return [folder / name for name in hashes]


def use(folder: Path, images: Callable[[], ImageStore], say: Callable[[str], object]) -> Path:
    """Check a pack, load its base images, and save its locks. Return the folder of its packages.

    `images` is called only if the pack has images. Raises UsageError for a changed pack, and CannotRunHereError.
    """
    manifest = read(folder)
    check(folder, manifest)
    unchecked = sorted(manifest.images.keys() - manifest.files.keys())
    if unchecked:
        raise DamagedError(folder / FILE, f"the hash of {unchecked[0]} is missing")
    if manifest.images:
        engine = images()
        for name, image in manifest.images.items():
            engine.load(folder / name, image["reference"])
            say(f"loaded {image['reference']}")
    for name in sorted(file for file in manifest.files if file.startswith("locks/")):  # unlisted files aren't checked
        write_atomically(adhoc.get_folder() / Path(name).name, file_bytes(Path(name), within=folder))
    return (folder / "wheels").resolve()


def _save_images(
    store: ImageStore,
    requirements: Sequence[Requirement],
    folder: Path,
    saved_images: Mapping[str, Mapping[str, str]],
    say: Callable[[str], object],
) -> dict[str, dict[str, str]]:
    """Save the base images that aren't in `saved_images`. Return `reference` and `id` of all images by file."""
    images = {}
    remove_unfinished(folder / "images")
    for reference in store.bases(requirements):
        identity = store.obtain(reference)
        name = f"images/{re.sub(r'[^A-Za-z0-9.-]', '-', reference)}.tar"
        path = folder / name
        if saved_images.get(name, {}).get("id") != identity or not path.is_file() or path.is_symlink():
            store.save(reference, folder / name)
            say(f"saved {reference}")
        images[name] = {"reference": reference, "id": identity}
    return images


def _fetch_wheels(
    project: Project, requirements: Sequence[Requirement], folder: Path, say: Callable[[str], object]
) -> dict[str, str]:
    """Fetch the packages of the locks, of images/uv.txt and of harness. Return the sha256 by name."""
    own_python = f"{sys.version_info.major}.{sys.version_info.minor}"
    sources = [(project.root / "images" / "uv.txt", own_python), (project.root / "requirements.txt", own_python)]
    sources += [(requirement.lock.path, requirement.environment.python) for requirement in requirements]
    packages = [package for path, python in sources if path.is_file() for package in index.parse_lock(path, python)]
    return download([file for package in packages for file in index.find_files(package)], folder, say)


def _copy_locks(requirements: Sequence[Requirement], folder: Path) -> dict[str, str]:
    """Copy the locks of ad-hoc environments, which aren't in the project. Return the sha256 by file."""
    files = {}
    for requirement in requirements:
        if not requirement.environment.asked:
            continue
        for path in (requirement.lock.path, adhoc.get_file(requirement.environment.name)):
            target = folder / "locks" / path.name
            write_atomically(target, file_bytes(path))
            files[f"locks/{path.name}"] = hash_file(target)
    return files


def download(files: Iterable[File], folder: Path, progress: Callable[[str], object]) -> dict[str, str]:
    """Download files into a folder in parallel, except those that are valid already. Return the sha256 by name.

    `progress` receives a line about each downloaded file. Raises CannotRunHereError if a file is unavailable, or if its
    hash differs from the one in the lock.
    """
    by_name = {file.filename: file for file in files}
    hashes = {name: file.hashes["sha256"] for name, file in by_name.items()}
    folder.mkdir(parents=True, exist_ok=True)
    remove_unfinished(folder)
    missing = [name for name in by_name if _check_hash(folder / name, hashes[name])]
    stop = threading.Event()
    with ThreadPoolExecutor(_PARALLEL_DOWNLOADS) as pool:
        fetching = {
            pool.submit(_fetch, index.find_address(by_name[name]), folder / name, hashes[name], stop): name
            for name in missing
        }
        try:
            for count, future in enumerate(as_completed(fetching), 1):
                size = future.result()
                progress(f"{count} of {len(missing)}: {fetching[future]} ({size / 1e6:.1f} MB)")
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return hashes


def hash_file(path: Path) -> str:
    """Return the SHA-256 hash of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_hash(path: Path, digest: str) -> str:
    """Return the problem of a file that must have this SHA-256 hash, or an empty text. Links count as missing."""
    if not path.is_file() or path.is_symlink():
        return "is missing"
    return "" if hash_file(path) == digest else "was changed"


def _check_file_in_pack(folder: Path, name: str, digest: str) -> str:
    """Return the problem of a file in an untrusted pack, or an empty text. Links and paths outside it are refused."""
    try:
        with os.fdopen(open_regular_file(Path(name), within=folder), "rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if actual == digest else "was changed"


def _fetch(url: str, path: Path, digest: str, stop: threading.Event) -> int:
    """Download a file, and return its size in bytes. After an error, no part of the file remains."""
    try:
        with replace_file(path) as part:
            _copy(url, part, stop)
            if hash_file(part) != digest:
                raise CannotRunHereError(f"The hash of {url} differs from the hash in the lock file.")
            return part.stat().st_size
    except OSError as error:
        raise CannotRunHereError(f"{url} could not be downloaded to {path.parent}: {error}.") from None


def _copy(url: str, path: Path, stop: threading.Event) -> None:
    """Copy a local file or download a remote one. Raises OSError (also for errors of the library requests)."""
    import requests

    parts = urlsplit(url)
    if parts.scheme == "file":
        shutil.copyfile(url2pathname(parts.path), path)
        return
    # a session uses the proxies and certificates in the environment variables
    with requests.Session() as session:
        session.mount(f"{parts.scheme}://", requests.adapters.HTTPAdapter(max_retries=3))
        with session.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response, path.open("wb") as file:
            response.raise_for_status()
            for block in response.iter_content(1 << 20):
                if stop.is_set():
                    raise InterruptedError("another file could not be downloaded")
                file.write(block)
