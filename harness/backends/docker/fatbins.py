"""Script for GPU images: lists the GPU code in libraries, from their fat binaries.

    python fatbins.py FILE|FOLDER...

    {PATH: {"modules": [[NUMBER, BYTES, [CODE, ...]], ...],  how many modules have just this code, most bytes first
            "unread": NUMBER}}                               what begins like a fat binary and is none

A CODE is `sm_XY`, machine code for the compute capability X.Y, or `ptx_XY`, which a driver compiles for X.Y and newer;
`ptx_XY:V` says too which version of PTX a driver must know for that, where the module has other machine code but none
that runs on X.Y. All shared objects in a folder are read. Objects without GPU code are omitted. The script reads a
gigabyte in about a second.

The compiler puts each module into a *fat binary* of its own: a header (magic number, version 1, its own length of 16
bytes, length of what follows), then for each architecture an entry: kind, version, length of the entry's header, length
of what it holds, from its 28th byte the architecture, 80 for 8.0, and from its 40th the flags, of which 0x2000 says
that what it holds is compressed by LZ4. The headers are never compressed. NVIDIA has not published the format.

It doesn't depend on harness, and runs on every Python from 3.7 on, which is the oldest in the catalogue.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"\x50\xed\x55\xba"
#: Magic number, version, length of this header, length of all entries.
HEADER = struct.Struct("<IHHQ")
#: Kind, version, length of this header, length of the data, architecture, flags.
ENTRY = struct.Struct("<HHIQ12xI8xQ")
COMPRESSED = 0x2000
PTX, MACHINE = 1, 2
KINDS = {PTX: "ptx", MACHINE: "sm"}
#: The shortest and the longest header of an entry that is believed.
SHORTEST, LONGEST = 64, 4096
#: PTX starts with comments, and then its version.
HEAD = 1024
VERSION = re.compile(rb"^\s*\.version\s+(\d+\.\d+)", re.MULTILINE)


class Module(NamedTuple):
    """One fat binary: its code, in the file's order, and its size in bytes."""

    code: tuple[str, ...]
    size: int


def main(names: list[str]) -> None:
    """Print the contents of the files."""
    summaries = {str(path): summary(path) for name in names for path in files(Path(name))}
    print(json.dumps({path: held for path, held in summaries.items() if held["modules"] or held["unread"]}))


def files(path: Path) -> list[Path]:
    """Return the file, or the shared objects in the folder, without links."""
    paths = path.rglob("*.so*") if path.is_dir() else [path]
    return sorted({file.resolve() for file in paths if file.is_file()})


def summary(path: Path) -> dict[str, Any]:
    """Return the content of one file."""
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
                code = tuple(sorted(module.code, key=order))
                number[code] += 1
                size[code] += module.size
    return {"modules": [[number[code], size[code], list(code)] for code, _ in size.most_common()], "unread": unread}


def modules(data: Any) -> Iterator[Module | None]:
    """Return the fat binaries in `data`; None if there is only the header of a fat binary.

    `data` is a mapped file or bytes.

    The magic number can occur anywhere, for example in code that searches for it. If version and lengths aren't valid,
    it is skipped.
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
    """Return the code between two offsets; nothing if other data is between them."""
    code: list[str] = []
    ptx: dict[int, str] = {}
    if end > len(data):
        return ()
    while at + SHORTEST <= end:
        kind, _, length, size, architecture, flags = ENTRY.unpack_from(data, at)
        if not SHORTEST <= length <= LONGEST or size > end - at - length:
            return ()
        if kind == PTX:
            ptx[len(code)] = version(data[at + length : at + length + min(size, HEAD)], compressed=flags & COMPRESSED)
        if kind in KINDS:  # CUDA's compilers know others, which are no code that runs
            code.append(f"{KINDS[kind]}_{architecture}")
        at += length + size
    machine = [number(entry) for entry in code if entry.startswith("sm_")]
    for place, ptx_version in ptx.items():
        target = number(code[place])
        runs = any(own // 10 == target // 10 and own <= target for own in machine)
        if ptx_version and machine and not runs:
            code[place] += f":{ptx_version}"
    return tuple(code) if at == end else ()


def number(code: str) -> int:
    """Return the architecture of a code: 80 for 8.0."""
    return int(code.partition("_")[2].partition(":")[0])


def order(code: str) -> tuple[bool, int, str]:
    """Machine code by its architecture, then PTX."""
    return code.startswith("ptx"), number(code), code


def version(start: bytes, *, compressed: int) -> str:
    """Return the version of PTX from its first lines; empty if it has none."""
    match = VERSION.search(decompress_block(start) if compressed else start)
    return match.group(1).decode() if match else ""


def decompress_block(start: bytes) -> bytes:
    """Decompress the start of a block that was compressed with LZ4.

    The block consists of sequences: a byte with two lengths, literal bytes of the first length, and an offset back into
    the output, from which bytes of the second length plus four are copied ("LZ4 Block Format").
    """
    out, at = bytearray(), 0
    try:
        while at < len(start):
            lengths = start[at]
            plain, at = read_length(start, at + 1, lengths >> 4)
            out += start[at : at + plain]
            at += plain
            back = start[at] | start[at + 1] << 8
            copied, at = read_length(start, at + 2, lengths & 15)
            for _ in range(copied + 4):
                out.append(out[-back])
    except IndexError:  # the start ends there, or is no such block
        pass
    return bytes(out)


def read_length(start: bytes, at: int, length: int) -> tuple[int, int]:
    """Return a length and its end.

    A value of 15 continues in the next bytes, which are added until one is below 255.
    """
    more = length == 15
    while more:
        length += start[at]
        more = start[at] == 255
        at += 1
    return length, at


if __name__ == "__main__":
    main(sys.argv[1:])
