"""Reads regular files, writes files completely or not at all, and returns the user's cache and data folders.

This module imports no other module of harness.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

#: The default size limit of a file, in bytes.
MOST = 64 * 1024**2

#: The number of bytes to read at once from a file that has grown.
CHUNK = 1024**2

#: The folder of downloaded code in the user's cache.
DOWNLOADS = "downloads"


def open_regular_file(path: Path, flags: int = os.O_RDONLY, *, within: Path | None = None) -> int:
    """Open a regular file and return its descriptor. Refuses pipes, because opening a pipe could block.

    `within` is a folder that another user may have created. `path` is relative to it, must stay inside it, and must
    not go through a link. Raises OSError. Its `strerror` can follow a colon in a message: `it is a link`.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC
    if within is None:
        handle = os.open(path, flags, choose_mode(path))
    else:
        folder, name = _open_below(within, path)
        try:
            handle = os.open(name, flags | os.O_NOFOLLOW, choose_mode(within / path), dir_fd=folder)
        except OSError as error:
            raise _explain_error(error, within / path) from None
        finally:
            os.close(folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return handle


def _open_below(within: Path, path: Path) -> tuple[int, str]:
    """Open the folder of a file without following links; return its descriptor and the file's name."""
    parts = PurePosixPath(path).parts
    if not parts or path.is_absolute() or ".." in parts or "\0" in str(path):
        raise OSError(errno.EINVAL, "the path leaves the folder", str(path))
    *folders, name = parts
    handle = os.open(within, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in folders:
        try:
            inner_handle = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        except OSError as error:
            raise _explain_error(error, within / path) from None
        finally:
            os.close(handle)
        handle = inner_handle
    return handle, name


def _explain_error(error: OSError, path: Path) -> OSError:
    """Return the error of opening a file without following links. If a link is the cause, the error names it."""
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return OSError(error.errno, "it is a link", str(path))
    if error.errno == errno.ENOTDIR and any(parent.is_symlink() for parent in path.parents):
        return OSError(error.errno, "it is behind a link", str(path))
    return error


def read(path: Path, *, within: Path | None = None, most: int = MOST) -> bytes:
    """Return the content of a file of at most `most` bytes. `within` is as in `open_regular_file`. Raises OSError."""
    with os.fdopen(open_regular_file(path, within=within), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # `file.read(n)` allocates n bytes, so request the file's size first, and then more if the file grew
        data = file.read(size + 1) if size <= most else b""
        while len(data) <= most and (chunk := file.read(CHUNK)):
            data += chunk
    if size > most or len(data) > most:
        size_text = f"{most >> 20:,} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise OSError(errno.EFBIG, f"it is larger than {size_text}", str(path))
    return data


def read_text(path: Path, *, most: int = MOST) -> str:
    """Return the text of a UTF-8 file, with line feeds. Raises OSError, or UnicodeDecodeError (a ValueError)."""
    return read(path, most=most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def is_link_elsewhere(path: Path) -> bool:
    """Return whether a file is a link to a file outside its folder. Errors don't quote such a file.

    The author of the link may not be allowed to read the file, for example in a pull request.
    """
    return not path.resolve().is_relative_to(path.parent.resolve())


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON document. Raises ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def hash_files(files: Mapping[str, bytes]) -> str:
    """Return a SHA-256 hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


#: The names of unfinished files of `replace_file`.
_PART = re.compile(r"\..{1,60}\.[0-9a-f]{8}\.part", re.DOTALL)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends. If the block raises, the file is removed.

    A reader of `path` sees the old file or the new file, never a part. If `path` is a link, the target of the link
    doesn't change. Creates the folder if it is missing. Raises OSError.
    """
    if path.name in ("", ".."):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    make_folder(path.parent)
    part = _make_part_path(path)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, choose_mode(path)))
    try:
        yield part
        part.replace(path)
    except OSError as error:
        if error.errno and not error.filename:  # the error of a write doesn't name the file
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def create_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`. Its file becomes `path` when the block ends.

    Creates the folder if it is missing. If another process creates `path` in the meantime, its file stays. Raises
    OSError.
    """
    make_folder(path.parent)
    part = _make_part_path(path)
    try:
        yield part
        part.chmod(part.stat().st_mode & choose_mode(path))
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        except OSError:  # the file system has no hard links
            part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def _make_part_path(path: Path) -> Path:
    # Nobody can guess this name and create a link there. O_EXCL doesn't follow links. Names have at most 255 bytes.
    return path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}.part")


def is_unfinished(path: Path) -> bool:
    """Return whether this is the name of a temporary file of `replace_file`."""
    return _PART.fullmatch(path.name) is not None


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder. No process may be writing there."""
    if folder.is_dir() and not folder.is_symlink():
        for path in folder.iterdir():
            if is_unfinished(path):
                with suppress(OSError):
                    path.unlink()


def remove_folder(folder: Path) -> None:
    """Remove a folder with all files, which may come from an untrusted script."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # folders are nested too deeply for Python
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def write_atomically(path: Path, data: str | bytes, *, synced: bool = False) -> None:
    """Write a file with `replace_file`, text as UTF-8. With `synced`, flush it to the disk. Raises OSError."""
    with replace_file(path) as part, part.open("wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user chose. Raises OSError.

    A device, a pipe or an open file such as /dev/stdout isn't replaced: the data is appended to it.
    """
    if not _is_stream(path):
        write_atomically(path, data)
        return
    with path.open("ab") as file:
        file.write(data)


def _is_stream(path: Path) -> bool:
    """Return whether this is a device, a pipe, or an open file of a process (a link in /proc, or to such a link)."""
    if not path.exists() or path.is_dir():
        return False
    if not path.is_file():
        return True
    places = [path, path.parent / path.readlink()] if path.is_symlink() else []
    return any(place.parent.resolve().is_relative_to("/proc") for place in places)


def append(path: Path, line: bytes, *, within: Path | None = None) -> None:
    """Append a line to a file, and flush it to the disk. Creates the file if it is missing.

    The line is written completely or not at all. `within` is as in `open_regular_file`. Raises OSError.
    """
    handle = open_regular_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, within=within)
    try:
        old_size = os.fstat(handle).st_size
        try:
            with os.fdopen(handle, "ab", closefd=False) as file:
                file.write(line + b"\n")
                file.flush()
                os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, old_size)
            error.filename = error.filename or str(path)
            raise
    finally:
        os.close(handle)


def suggest_remedy(error: OSError) -> str:
    """Return the advice for a failed write, as the start of a sentence."""
    return "Free disk space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Make it writable"


def choose_mode(path: Path) -> int:
    """Return the permissions of a new file: only the user can access files in the data folder."""
    return 0o600 if path.is_relative_to(get_data_dir()) else 0o666


def make_folder(path: Path) -> None:
    """Make a folder and its parents; only the user can access the data folder and folders in it. Raises OSError."""
    data_folder = get_data_dir()
    for folder in [*reversed(path.parents), path]:
        if folder.is_relative_to(data_folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    # earlier versions created the default folder without this mode; a folder that the user chose may be shared
    if path == data_folder and "HARNESS_DATA_DIR" not in os.environ and stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o700)


def get_cache_dir() -> Path:
    """Return `HARNESS_CACHE_DIR`, or the user's cache folder for harness."""
    if override := os.environ.get("HARNESS_CACHE_DIR"):
        return Path(override).absolute()
    import platformdirs

    return platformdirs.user_cache_path("harness")


def get_wheel_path(name: str) -> Path:
    """Return the path of a wheel in the user's cache. `name` is `SHA256/FILE.whl`."""
    return get_cache_dir() / "wheels" / name


def get_data_dir() -> Path:
    """Return the folder for data that can't be recreated: `HARNESS_DATA_DIR`, or the user's data folder for harness."""
    if override := os.environ.get("HARNESS_DATA_DIR"):
        return Path(override).absolute()
    import platformdirs

    return platformdirs.user_data_path("harness")
