"""Reads the files that a launch produced. It saves only regular files, under safe names and within limits."""

import os
import re
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, cast

from harness.backends.untrusted_text import join_lines
from harness.model.texts import format_plain

#: Limits for the artifacts of a launch: total bytes, files, checked entries, depth of folders, and seconds for reading.
BYTES_LIMIT = 64 * 1024**2
FILES_LIMIT = 1_000
ENTRIES_LIMIT = 10_000
DEPTH_LIMIT = 8
SECONDS_LIMIT = 30.0

#: The largest number of refused files that are listed.
_MAX_LISTED = 20

_CHUNK_BYTES = 1024**2


@dataclass
class Artifacts:
    """The files of a launch: their content by safe relative name, and a message for each of the first 20 refused files.

    All names and contents come from the folder of an untrusted script.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _entries: int = 0
    _bytes: int = 0
    _folders: set[str] = field(default_factory=set)
    _deadline: float = field(default_factory=lambda: time.monotonic() + SECONDS_LIMIT)

    def refuse(self, name: str, why: str) -> None:
        """Record a file that isn't saved."""
        if len(self.refused) < _MAX_LISTED:
            self.refused.append(f"{join_lines(name, 100)}: {why}")

    @property
    def left(self) -> int:
        """The number of bytes that can still be saved."""
        return BYTES_LIMIT - self._bytes

    def must_stop_at(self, name: str, size: int = 0) -> bool:
        """Count an entry of this size, and return whether reading must stop before it.

        The entry can't be skipped, because skipping an entry of an archive means reading it.
        """
        self._entries += 1
        exceeds_limits = size > self.left or len(self.files) >= FILES_LIMIT or self._entries > ENTRIES_LIMIT
        if exceeds_limits:
            limits = f"{BYTES_LIMIT >> 20} MiB, {FILES_LIMIT} files or {ENTRIES_LIMIT} entries"
            self.refuse(name, f"this file and the files after it exceed the limits: {limits}")
        is_late = not exceeds_limits and time.monotonic() > self._deadline
        if is_late:
            self.refuse(name, f"this file and the files after it were not read within {format_plain(SECONDS_LIMIT)} s")
        return exceeds_limits or is_late

    def add(self, name: str, content: bytes) -> None:
        """Save one file under a unique name that isn't a folder of another file."""
        saved_as = safe_name = make_safe_name(name) or "unnamed"
        # append a number to the parent that is already a file or, without such a parent, to the name
        taken = next((parent for parent in reversed(_list_parents(safe_name)) if parent in self.files), safe_name)
        number = len(self.files)
        while saved_as in self._folders or not self.files.keys().isdisjoint([saved_as, *_list_parents(saved_as)]):
            number += 1
            saved_as = f"{taken}_{number}{safe_name[len(taken) :]}"
        self.files[saved_as] = content
        self._folders.update(_list_parents(saved_as))
        self._bytes += len(content)


def _list_parents(name: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(name).parents if parent.name]


def read_folder(folder: int) -> Artifacts:
    """Return the files in a folder that an untrusted script has written, and may still change.

    `folder` is a descriptor that was opened before the script started, so that a replaced path has no effect. The
    function follows no links, enters no other file system, and opens only regular files.
    """
    artifacts = Artifacts()
    _walk(artifacts, folder, "", os.fstat(folder).st_dev)
    return artifacts


def _walk(artifacts: Artifacts, folder: int, path: str, device: int) -> bool:
    """Add the files below an open folder. Return False if a limit was reached."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, ENTRIES_LIMIT + 1))
    for entry_name in names:
        name = f"{path}{entry_name}"
        try:
            entry = os.stat(entry_name, dir_fd=folder, follow_symlinks=False)
            if artifacts.must_stop_at(name, entry.st_size if stat.S_ISREG(entry.st_mode) else 0):
                return False
            if entry.st_dev != device:
                artifacts.refuse(name, "on another file system")
            elif stat.S_ISDIR(entry.st_mode):
                if name.count("/") + 1 >= DEPTH_LIMIT:
                    artifacts.refuse(name, f"deeper than {DEPTH_LIMIT} folders")
                    continue
                with open_entry(entry_name, folder, os.O_DIRECTORY) as subfolder:
                    if os.fstat(subfolder).st_dev == device and not _walk(artifacts, subfolder, f"{name}/", device):
                        return False
            elif stat.S_ISREG(entry.st_mode):
                with open_entry(entry_name, folder) as file:
                    _read(artifacts, file, name, device)
            else:
                artifacts.refuse(name, "not a regular file")
        except OSError as error:
            artifacts.refuse(name, error.strerror or "cannot be read")
    return True


@contextmanager
def open_entry(name: str | Path, folder: int | None = None, flags: int = 0) -> Iterator[int]:
    """Open a path, or an entry of an open folder, during the block. Links are refused, and pipes don't block."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _read(artifacts: Artifacts, file: int, name: str, device: int) -> None:
    """Add an open file, unless it isn't the file that was checked, or grows while it is read."""
    entry = os.fstat(file)
    if not stat.S_ISREG(entry.st_mode) or entry.st_dev != device:
        artifacts.refuse(name, "not a regular file")
        return
    chunks, remaining = [], artifacts.left
    while remaining >= 0 and (chunk := os.read(file, min(_CHUNK_BYTES, remaining + 1))):
        chunks.append(chunk)
        remaining -= len(chunk)
    if remaining < 0:
        artifacts.refuse(name, "it grew while it was read")
    else:
        artifacts.add(name, b"".join(chunks))


def read_archive(chunks: Iterable[bytes]) -> Artifacts:
    """Return the files in a tar archive of one folder, read as a stream up to the limits."""
    artifacts = Artifacts()
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|") as tar:
            for member in tar:
                name = member.name.partition("/")[2]  # without the name of the folder
                if member.isdir() and not name:
                    continue
                name = name or member.name
                if artifacts.must_stop_at(name, member.size):
                    break
                if member.isdir():
                    continue
                if name.count("/") >= DEPTH_LIMIT:
                    artifacts.refuse(name, f"deeper than {DEPTH_LIMIT} folders")
                    continue
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    artifacts.refuse(name, "not a regular file")
                else:
                    artifacts.add(name, content.read())
    except tarfile.TarError as error:
        artifacts.refuse("the archive", str(error))
    return artifacts


class _Chunks:
    """A stream of bytes with `read`, which is the only method that `tarfile` calls on a stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._unread = b""

    def read(self, size: int) -> bytes:
        parts, length = [self._unread], len(self._unread)
        while length < size and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            length += len(chunk)
        data = b"".join(parts)
        self._unread = data[size:]
        return data[:size]


def make_safe_name(name: str) -> str:
    """Return an untrusted file name as a safe relative path; empty if no part of the name is usable."""
    parts = (re.sub(r"[^A-Za-z0-9._+-]", "_", part)[:100].lstrip(".") for part in PurePosixPath(name).parts)
    return "/".join([part for part in parts if part.strip("_")][-DEPTH_LIMIT:])
