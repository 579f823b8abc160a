"""Downloads files of packages into a flat folder, and checks each against its lock."""

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from harness.catalog.index import File
from harness.model.errors import CannotRunHereError

#: One connection seldom fills the line, and more than these seldom more.
_AT_A_TIME = 4

#: Seconds without a byte.
_PATIENCE = 60


def download(files: Iterable[File], folder: Path, progress: Callable[[str], object]) -> dict[str, str]:
    """Bring the files into a folder, several at a time; what is there and right is left. Returns name to sha256.

    `progress` is called with a line for each file that was fetched. Raises CannotRunHereError where a file cannot be
    had, or is not the one that the lock names.
    """
    wanted = {file.name: file for file in files}
    folder.mkdir(parents=True, exist_ok=True)
    missing = [file for name, file in wanted.items() if not _is_there(folder / name, file.sha256)]
    stop = threading.Event()
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        fetching = {pool.submit(_fetch, file, folder, stop): file for file in missing}
        try:
            for count, done in enumerate(as_completed(fetching), 1):
                size = done.result()
                progress(f"{count} of {len(missing)}: {fetching[done].name} ({size / 1e6:.1f} MB)")
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return {name: file.sha256 for name, file in wanted.items()}


def sha256(path: Path) -> str:
    """The hash of a file. Raises OSError."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _is_there(path: Path, wanted: str) -> bool:
    return path.is_file() and sha256(path) == wanted


def _fetch(file: File, folder: Path, stop: threading.Event) -> int:
    """Bring one file; returns its bytes. Nothing of it is left where it cannot be had."""
    path = folder / file.name
    part = path.with_name(f".{path.name}.part")
    try:
        _copy(file.url, part, stop)
        if sha256(part) != file.sha256:
            raise CannotRunHereError(f"{file.url} is not the file that the lock names: its hash is another.")
        size = part.stat().st_size
        part.replace(path)
    except OSError as error:
        raise CannotRunHereError(f"{file.url} could not be brought into {folder}: {error}.") from None
    finally:
        part.unlink(missing_ok=True)
    return size


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
