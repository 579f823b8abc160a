"""The files that come out of a launch: within limits, under safe names, regular files alone."""

import os
import re
import stat
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from harness.backends.text import one_line

#: What is kept of a launch: bytes in all, files, and how many entries are looked at.
BYTES_LIMIT = 64 * 1024**2
FILES_LIMIT = 1_000
ENTRIES_LIMIT = 10_000


@dataclass
class Artifacts:
    """The files of one launch by safe relative name, and a line for each thing that was refused (the first twenty).

    What it is asked and given comes from an untrusted script's folder.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _entries: int = 0

    def refuse(self, name: str, why: str) -> None:
        """Note what is not kept."""
        if len(self.refused) < 20:
            self.refused.append(f"{one_line(name, 100)}: {why}")

    def full(self, name: str, size: int) -> bool:
        """Whether to stop at an entry of this size. To skip it would mean to read it, however large."""
        self._entries += 1
        kept = sum(map(len, self.files.values()))
        over = kept + size > BYTES_LIMIT or len(self.files) >= FILES_LIMIT or self._entries > ENTRIES_LIMIT
        if over:
            self.refuse(name, f"this and what follows is more than {BYTES_LIMIT >> 20} MiB or {FILES_LIMIT} files")
        return over

    def add(self, name: str, content: bytes) -> None:
        """Keep one file, under a name of its own."""
        safe = safe_name(name) or "unnamed"
        while safe in self.files:
            safe += "_"
        self.files[safe] = content


def from_folder(folder: Path) -> Artifacts:
    """The files under a folder that an untrusted script has filled and no longer touches; no link is followed."""
    found = Artifacts()
    for parent, names, files in os.walk(folder, onerror=None, followlinks=False):
        names.sort()
        linked = [name for name in names if (Path(parent) / name).is_symlink()]
        for path in (Path(parent) / name for name in sorted(files + linked)):
            name = path.relative_to(folder).as_posix()
            try:
                entry = path.lstat()
                if found.full(name, entry.st_size):
                    return found
                if stat.S_ISREG(entry.st_mode):
                    found.add(name, path.read_bytes())
                else:
                    found.refuse(name, "no regular file")
            except OSError as error:
                found.refuse(name, error.strerror or "cannot be read")
    return found


def from_archive(chunks: Iterable[bytes]) -> Artifacts:
    """The files in a tar archive of one folder, read as it comes and no further than the limits."""
    found = Artifacts()
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|") as tar:
            for member in tar:
                if member.isdir():
                    continue
                name = member.name.partition("/")[2] or member.name  # without the folder's own name
                if found.full(name, member.size):
                    break
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    found.refuse(name, "no regular file")
                else:
                    found.add(name, content.read())
    except tarfile.TarError as error:
        found.refuse("the archive", str(error))
    return found


class _Chunks:
    """Chunks of bytes with the one method of a file that a reader of tar streams calls."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def read(self, size: int) -> bytes:
        parts, have = [self._rest], len(self._rest)
        while have < size and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]


def safe_name(name: str) -> str:
    """An untrusted file name as a relative path that can do no harm, or empty where nothing is left of it."""
    parts = (re.sub(r"[^A-Za-z0-9._+-]", "_", part)[:100].lstrip(".") for part in PurePosixPath(name).parts)
    return "/".join([part for part in parts if part.strip("_")][:8])
