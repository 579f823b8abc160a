"""The files that come out of a launch: within limits, under safe names, regular files alone."""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.backends.text import one_line

#: What is kept of a launch: bytes in all, files, and how many entries are looked at.
BYTES_LIMIT = 64 * 1024**2
FILES_LIMIT = 1_000
ENTRIES_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The files by safe relative name, and a line for each thing that was refused (the first twenty)."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    refused: Sequence[str] = ()


class Collector:
    """Takes the files of one launch. What it is asked and given comes from an untrusted script's folder."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._refused: list[str] = []
        self._entries = 0
        self._bytes = 0

    def refuse(self, name: str, why: str) -> None:
        """Note what is not kept."""
        if len(self._refused) < 20:
            self._refused.append(f"{one_line(name, 100)}: {why}")

    def full(self, name: str, size: int) -> bool:
        """Whether to stop at an entry of this size. To skip it would mean to read it, however large."""
        self._entries += 1
        over = self._bytes + size > BYTES_LIMIT or len(self._files) >= FILES_LIMIT or self._entries > ENTRIES_LIMIT
        if over:
            self.refuse(name, f"this and what follows is more than {BYTES_LIMIT >> 20} MiB or {FILES_LIMIT} files")
        return over

    def add(self, name: str, content: bytes) -> None:
        """Keep one file, under a name of its own."""
        safe = safe_name(name) or "unnamed"
        while safe in self._files:
            safe += "_"
        self._files[safe] = content
        self._bytes += len(content)

    def artifacts(self) -> Artifacts:
        """What was kept, and what was not."""
        return Artifacts(self._files, tuple(self._refused))


def from_folder(folder: Path) -> Artifacts:
    """The files under a folder that an untrusted script has filled and no longer touches; no link is followed."""
    collector = Collector()
    for parent, names, files in os.walk(folder, onerror=None, followlinks=False):
        names.sort()
        linked = [name for name in names if (Path(parent) / name).is_symlink()]
        for path in (Path(parent) / name for name in sorted(files + linked)):
            name = path.relative_to(folder).as_posix()
            try:
                entry = path.lstat()
                if collector.full(name, entry.st_size):
                    return collector.artifacts()
                if stat.S_ISREG(entry.st_mode):
                    collector.add(name, path.read_bytes())
                else:
                    collector.refuse(name, "no regular file")
            except OSError as error:
                collector.refuse(name, error.strerror or "cannot be read")
    return collector.artifacts()


def safe_name(name: str) -> str:
    """An untrusted file name as a relative path that can do no harm, or empty where nothing is left of it."""
    parts = (re.sub(r"[^A-Za-z0-9._+-]", "_", part)[:100].lstrip(".") for part in PurePosixPath(name).parts)
    return "/".join([part for part in parts if part.strip("_")][:8])
