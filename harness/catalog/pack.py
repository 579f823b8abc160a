"""A pack: a folder with all that a machine without a network needs, checked against hashes; filled, and used."""

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
from harness.catalog import adhoc, index
from harness.catalog.index import File
from harness.catalog.project import Project
from harness.files import opened, replacing, write_atomically
from harness.files import read as file_bytes
from harness.model.backend import ImageStore
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, DamagedError, UsageError

FILE = "MANIFEST.json"
SCHEMA = 1

#: One connection seldom fills the line, and more than these seldom more.
_AT_A_TIME = 4

#: Seconds without a byte.
_PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a pack holds.

    `harness` is the version that wrote it; `environments` maps name to devices; `images` maps a file to the image in
    it, as `reference` and `id`; `files` maps each file, relative to the pack's folder, to its sha256.
    """

    harness: str
    environments: Mapping[str, list[str]] = field(default_factory=dict)
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def over(self, older: "Manifest") -> "Manifest":
        """Return this manifest, extended by the entries that only `older` has."""
        names = {**older.environments, **self.environments}
        devices = {
            name: sorted({*older.environments.get(name, ()), *self.environments.get(name, ())}) for name in names
        }
        return Manifest(self.harness, devices, {**older.images, **self.images}, {**older.files, **self.files})


def read(folder: Path) -> Manifest:
    """The manifest of a pack. Raises UsageError where the folder is none, or is damaged."""
    path = folder / FILE
    try:
        found = json.loads(file_bytes(Path(FILE), within=folder))
        if found.get("schema") != SCHEMA:
            raise UsageError(f"{path} has schema {found.get('schema')}; this harness reads {SCHEMA}.")
        manifest = Manifest(**found)
        texts = [manifest.harness, *manifest.files.values()]
        texts += [each[key] for each in manifest.images.values() for key in ("reference", "id")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a hash or a reference is no text")
        return manifest
    except OSError as error:
        raise UsageError(
            f"{folder} is not a pack: {FILE} cannot be read: {error.strerror}.", "Make one: harness images pack FOLDER"
        ) from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise DamagedError(path, str(error)) from None


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last. Raises CannotRunHereError."""
    try:
        write_atomically(folder / FILE, json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n")
    except OSError as error:
        raise CannotRunHereError(f"{folder} cannot be written: {error.strerror}.") from None


def check(folder: Path, manifest: Manifest) -> None:
    """Compare every file with the manifest. Raises UsageError, which names those that are missing or were changed."""
    faults = {name: _fault_within(folder, name, wanted) for name, wanted in sorted(manifest.files.items())}
    problems = [f"{name} {fault}" for name, fault in faults.items() if fault]
    if problems:
        first = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise UsageError(f"{folder} is not as it was packed: {first}.", "Carry it again, or pack it again.")


def fill(
    folder: Path,
    project: Project,
    requirements: Sequence[Requirement],
    images: ImageStore | None,
    say: Callable[[str], object],
) -> list[Path]:
    """Fetch all that builds of these environments need into a folder; what is there already is not fetched again.

    `images` gives base images, None leaves them out; `say` is told, in a line, of each thing that was fetched. Returns
    the files. Raises CannotRunHereError where something cannot be had or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHereError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    before = read(folder) if (folder / FILE).is_file() else Manifest(__version__)
    # the images first: where one cannot be had, that is known before gigabytes are fetched
    saved = {} if images is None else _save_images(images, requirements, folder, before.images, say)
    files = {name: sha256(folder / name) for name in saved}
    wheels = _wheels(project, requirements, folder / "wheels", say)
    files |= {f"wheels/{name}": digest for name, digest in wheels.items()} | _copy_locks(requirements, folder)
    named = {requirement.environment.name: [requirement.device.value] for requirement in requirements}
    write(folder, Manifest(__version__, named, saved, files).over(before))
    return [folder / name for name in files]


def use(folder: Path, images: Callable[[], ImageStore], say: Callable[[str], object]) -> Path:
    """Check a pack, give its base images to the engine, and keep its locks; returns the folder of its packages.

    `images` is called where the pack has some. Raises UsageError for what is not as it was packed, CannotRunHereError.
    """
    manifest = read(folder)
    check(folder, manifest)
    unchecked = sorted(manifest.images.keys() - manifest.files.keys())
    if unchecked:
        raise DamagedError(folder / FILE, f"it has no hash of {unchecked[0]}")
    if manifest.images:
        engine = images()
        for name, image in manifest.images.items():
            engine.load(folder / name, image["reference"])
            say(f"loaded {image['reference']}")
    for name in sorted(each for each in manifest.files if each.startswith("locks/")):  # what else is there is unchecked
        adhoc.folder().mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, adhoc.folder())
    return (folder / "wheels").resolve()


def _save_images(
    store: ImageStore,
    requirements: Sequence[Requirement],
    folder: Path,
    had: Mapping[str, Mapping[str, str]],
    say: Callable[[str], object],
) -> dict[str, dict[str, str]]:
    """Save the base images that a pack that `had` some lacks; returns file to `reference` and `id`, of all."""
    images = {}
    for reference in store.bases(requirements):
        identity = store.obtain(reference)
        name = f"images/{re.sub(r'[^A-Za-z0-9.-]', '-', reference)}.tar"
        if had.get(name, {}).get("id") != identity or not (folder / name).is_file():
            store.save(reference, folder / name)
            say(f"saved {reference}")
        images[name] = {"reference": reference, "id": identity}
    return images


def _wheels(
    project: Project, requirements: Sequence[Requirement], folder: Path, say: Callable[[str], object]
) -> dict[str, str]:
    """Fetch the packages of the locks, of images/uv.txt and of the harness itself; returns name to sha256."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    sources = [(project.root / "images" / "uv.txt", own), (project.root / "requirements.txt", own)]
    sources += [(requirement.lock.path, requirement.environment.python) for requirement in requirements]
    packages = [package for path, python in sources if path.is_file() for package in index.locked(path, python)]
    return download([file for package in packages for file in index.files(package)], folder, say)


def _copy_locks(requirements: Sequence[Requirement], folder: Path) -> dict[str, str]:
    """Copy the locks that are not in the project, those of ad-hoc environments; returns file to sha256."""
    files = {}
    for requirement in requirements:
        if not requirement.environment.asked:
            continue
        for path in (requirement.lock.path, adhoc.file(requirement.environment.name)):
            target = folder / "locks" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            files[f"locks/{path.name}"] = sha256(target)
    return files


def download(files: Iterable[File], folder: Path, progress: Callable[[str], object]) -> dict[str, str]:
    """Bring the files into a folder, several at a time; what is there and right is left. Returns name to sha256.

    `progress` is called with a line for each file that was fetched. Raises CannotRunHereError where a file cannot be
    had, or is not the one that the lock names.
    """
    wanted = {file.filename: file for file in files}
    hashes = {name: file.hashes["sha256"] for name, file in wanted.items()}
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in wanted if _fault(folder / name, hashes[name])]
    stop = threading.Event()
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        fetching = {
            pool.submit(_fetch, index.address(wanted[name]), folder / name, hashes[name], stop): name
            for name in missing
        }
        try:
            for count, done in enumerate(as_completed(fetching), 1):
                size = done.result()
                progress(f"{count} of {len(missing)}: {fetching[done]} ({size / 1e6:.1f} MB)")
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return hashes


def sha256(path: Path) -> str:
    """The hash of a file. Raises OSError."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _fault(path: Path, wanted: str) -> str:
    """What is wrong with a file whose hash should be `wanted`; empty where it is right."""
    if not path.is_file():
        return "is missing"
    return "" if sha256(path) == wanted else "was changed"


def _fault_within(folder: Path, name: str, wanted: str) -> str:
    """What is wrong with a file of a pack, which may be someone else's: it lies in it, and is no link."""
    try:
        with os.fdopen(opened(Path(name), within=folder), "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if found == wanted else "was changed"


def _fetch(url: str, path: Path, wanted: str, stop: threading.Event) -> int:
    """Bring one file; returns its bytes. Nothing of it is left where it cannot be had."""
    try:
        with replacing(path) as part:
            _copy(url, part, stop)
            if sha256(part) != wanted:
                raise CannotRunHereError(f"{url} is not the file that the lock names: its hash differs.")
            return part.stat().st_size
    except OSError as error:
        raise CannotRunHereError(f"{url} could not be brought into {path.parent}: {error}.") from None


def _copy(url: str, path: Path, stop: threading.Event) -> None:
    """Raises OSError; requests' errors are some, too."""
    import requests

    parts = urlsplit(url)
    if parts.scheme == "file":
        shutil.copyfile(url2pathname(parts.path), path)
        return
    # a session of its own follows the proxies and certificates that the environment names
    with requests.Session() as session:
        session.mount(f"{parts.scheme}://", requests.adapters.HTTPAdapter(max_retries=3))
        with session.get(url, stream=True, timeout=_PATIENCE) as answer, path.open("wb") as out:
            answer.raise_for_status()
            for block in answer.iter_content(1 << 20):
                if stop.is_set():
                    raise InterruptedError("another file could not be had")
                out.write(block)
