"""Runs in a GPU image, by itself: reads which GPU code libraries hold, from the fat binaries in them.

    python fatbins.py FILE|FOLDER...

    {PATH: {"modules": [[NUMBER, BYTES, [CODE, ...]], ...],  how many modules have just this code, most bytes first
            "unread": NUMBER}}                               what begins like a fat binary and is none

A CODE is `sm_XY`, machine code for the compute capability X.Y, or `ptx_XY`, which a driver compiles for X.Y and newer.
Of a folder all shared objects are read; those without GPU code are left out. A gigabyte takes about a second.

The compiler puts each module into a *fat binary* of its own: a header (magic number, version 1, its own length of 16
bytes, length of what follows), then for each architecture an entry: kind, version, length of the entry's header, length
of what it holds, and from its 28th byte the architecture, 80 for 8.0. What an entry holds may be compressed; the
headers are not. NVIDIA has not published the format.

It knows nothing of the harness, and runs on every Python from 3.7 on, the catalogue's oldest.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"\x50\xed\x55\xba"
#: Magic number, version, length of this header, length of all entries.
HEADER = struct.Struct("<IHHQ")
#: Kind, version, length of this header, length of what follows it, nothing of interest, architecture.
ENTRY = struct.Struct("<HHIQ12xI")
PTX, MACHINE = 1, 2
KINDS = {PTX: "ptx", MACHINE: "sm"}
#: The shortest and the longest header of an entry that is believed.
SHORTEST, LONGEST = 64, 4096


class Module(NamedTuple):
    """One fat binary: its code, in the file's order, and how many bytes it takes."""

    code: tuple[str, ...]
    size: int


def main(names: list[str]) -> None:
    """Print what the files hold."""
    found = {str(path): summary(path) for name in names for path in files(Path(name))}
    print(json.dumps({path: held for path, held in found.items() if held["modules"] or held["unread"]}))


def files(path: Path) -> list[Path]:
    """The file, or the shared objects in the folder, links aside."""
    found = path.rglob("*.so*") if path.is_dir() else [path]
    return sorted({each.resolve() for each in found if each.is_file()})


def summary(path: Path) -> dict[str, Any]:
    """What one file holds."""
    number: Counter[tuple[str, ...]] = Counter()
    size: Counter[tuple[str, ...]] = Counter()
    unread = 0
    with path.open("rb") as file:
        # an empty file cannot be mapped
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
        for module in modules(data):
            if module is None:
                unread += 1
            else:
                number[module.code] += 1
                size[module.code] += module.size
    return {"modules": [[number[code], size[code], list(code)] for code, _ in size.most_common()], "unread": unread}


def modules(data: Any) -> Iterator[Module | None]:
    """The fat binaries in `data`, which is a mapped file or bytes; None for what has a fat binary's header alone.

    The magic number may stand anywhere, as in the code that looks for it: where version and lengths are no fat
    binary's, it is passed over.
    """
    at = data.find(MAGIC)
    while at >= 0:
        end = at + 1
        if at + HEADER.size <= len(data):
            _, version, length, size = HEADER.unpack_from(data, at)
            if version == 1 and length == HEADER.size:
                code = entries(data, at + length, at + length + size)
                yield Module(code, length + size) if code else None
                end = at + length + size if code else end
        at = data.find(MAGIC, end)


def entries(data: Any, at: int, end: int) -> tuple[str, ...]:
    """The code between two places; nothing where that is not all entries from the one to the other."""
    code: list[str] = []
    if end > len(data):
        return ()
    while at + SHORTEST <= end:
        kind, _, length, size, architecture = ENTRY.unpack_from(data, at)
        if not SHORTEST <= length <= LONGEST or size > end - at - length:
            return ()
        if kind in KINDS:  # CUDA's compilers know others, which are no code that runs
            code.append(f"{KINDS[kind]}_{architecture}")
        at += length + size
    return tuple(code) if at == end else ()


if __name__ == "__main__":
    main(sys.argv[1:])
