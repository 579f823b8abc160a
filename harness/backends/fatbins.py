"""Script for GPU images: lists the GPU code in libraries, from their fat binaries.

    python fatbins.py [FILE|FOLDER]...    default: TensorFlow's libraries, cuDNN and cuBLAS in this Python's packages

    {PATH: [[CODE, ...], ...]}    the code of each kind of module in a file

A CODE is `sm_XY` (machine code for compute capability X.Y) or `ptx_XY:V/T` (PTX labeled X.Y, which a driver compiles).
V is the version of PTX that a driver must support, and T is the PTX's own target, such as `sm_90a`, which decides for
which GPUs it can be compiled. All shared objects in a folder are read. Objects without GPU code are omitted. The script
reads about 1 GB per second.

The compiler puts each module into a separate *fat binary*. Its header consists of a magic number, version 1, the
header's length (16 bytes), and the length of all entries. Then it has one entry per architecture, which starts with its
kind, version, header length and data length. At offset 28, the entry has the architecture (80 for 8.0), and at offset
40 its flags. The flag 0x2000 means that the data is compressed with LZ4. Headers are never compressed. NVIDIA has not
published the format.

The script doesn't depend on harness, and runs on Python 3.7 and later. Python 3.7 is the oldest version in the catalog.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"\x50\xed\x55\xba"
#: Magic number, version, length of this header, length of all entries.
HEADER = struct.Struct("<IHHQ")
#: Kind, version, length of this header, length of the data, architecture, flags.
ENTRY = struct.Struct("<HHIQ12xI8xQ")
COMPRESSED = 0x2000
PTX, MACHINE = 1, 2
KINDS = {PTX: "ptx", MACHINE: "sm"}
#: The shortest and the longest valid header of an entry.
SHORTEST, LONGEST = 64, 4096
#: How many bytes of PTX are searched for its version and target, which follow comments at its start.
HEAD = 1024
DIRECTIVES = re.compile(rb"^\s*\.version\s+(\d+\.\d+)\s+\.target\s+(sm_\d+\w*)", re.MULTILINE)


def main(names: list[str]) -> None:
    """Print the GPU code of each file that contains some."""
    paths = [Path(name) for name in names] or list_paths(Path(sysconfig.get_path("purelib")))
    modules = {str(file): list(count_modules(file)) for path in paths for file in list_files(path)}
    print(json.dumps({path: code for path, code in modules.items() if code}))


def list_paths(packages: Path) -> list[Path]:
    """Return the folder of TensorFlow, and the libraries of cuDNN and cuBLAS, in a folder of packages."""
    nvidia = [path for name in ("cudnn", "cublas") for path in packages.glob(f"nvidia/*/lib/lib{name}*.so*")]
    return [packages / "tensorflow", *nvidia]


def list_files(path: Path) -> list[Path]:
    """Return the file, or the shared objects in the folder, without links."""
    paths = path.rglob("*.so*") if path.is_dir() else [path]
    return sorted({file.resolve() for file in paths if file.is_file()})


def count_modules(path: Path) -> Counter[tuple[str, ...]]:
    """Return the number of modules in a file by their code, which is in order."""
    with path.open("rb") as file:
        # an empty file cannot be mapped
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
        return Counter(tuple(sorted(code, key=make_sort_key)) for code in find_modules(data))


def find_modules(data: Any) -> Iterator[tuple[str, ...]]:
    """Yield the code of each fat binary in `data`, which is a mapped file or bytes."""
    return (tuple(code for code, *_ in entries) for entries in find_entries(data))


def find_entries(data: Any) -> Iterator[list[tuple[str, int, int, int]]]:
    """Yield the entries of each fat binary in `data`: the code, its start and end, and whether it is compressed.

    The magic number can also occur elsewhere, for example in code that searches for it. Without a valid header and
    valid entries, it is skipped.
    """
    offset = data.find(MAGIC)
    while offset >= 0:
        end = offset + 1
        if offset + HEADER.size <= len(data):
            _, version, length, size = HEADER.unpack_from(data, offset)
            is_header = version == 1 and length == HEADER.size
            entries = read_entries(data, offset + length, offset + length + size) if is_header else []
            if entries:
                yield entries
                end = offset + length + size
        offset = data.find(MAGIC, end)


def read_entries(data: Any, offset: int, end: int) -> list[tuple[str, int, int, int]]:
    """Return the entries between two offsets; empty if other data is between them."""
    entries: list[tuple[str, int, int, int]] = []
    if end > len(data):
        return []
    while offset + SHORTEST <= end:
        kind, _, length, size, architecture, flags = ENTRY.unpack_from(data, offset)
        if not SHORTEST <= length <= LONGEST or size > end - offset - length:
            return []
        start, offset = offset + length, offset + length + size
        if kind in KINDS:  # CUDA's compilers also write other kinds, which aren't executable code
            head = data[start : min(start + HEAD, offset)] if kind == PTX else b""
            directives = find_directives(head, compressed=flags & COMPRESSED)
            entries.append((f"{KINDS[kind]}_{architecture}{directives}", start, offset, flags & COMPRESSED))
    return entries if offset == end else []


def parse_architecture(code: str) -> int:
    """Return the architecture of a code: 80 for 8.0."""
    return int(code.partition("_")[2].partition(":")[0])


def make_sort_key(code: str) -> tuple[bool, int, str]:
    """Return a sort key: machine code comes first, then PTX, each by its architecture."""
    return code.startswith("ptx"), parse_architecture(code), code


def find_directives(start: bytes, *, compressed: int) -> str:
    """Return `:V/T`, the version and the target in the first lines of PTX; empty if they contain none."""
    match = DIRECTIVES.search(decompress_block(start) if compressed else start)
    return f":{match.group(1).decode()}/{match.group(2).decode()}" if match else ""


def decompress_block(start: bytes) -> bytes:
    """Decompress the start of a block that was compressed with LZ4.

    The block consists of sequences: a byte with two lengths, literal bytes of the first length, and an offset back into
    the output, from which bytes of the second length plus four are copied ("LZ4 Block Format").
    """
    output, offset = bytearray(), 0
    try:
        while offset < len(start):
            lengths = start[offset]
            literal_length, offset = read_length(start, offset + 1, lengths >> 4)
            output += start[offset : offset + literal_length]
            offset += literal_length
            distance = start[offset] | start[offset + 1] << 8
            copy_length, offset = read_length(start, offset + 2, lengths & 15)
            for _ in range(copy_length + 4):
                output.append(output[-distance])
    except IndexError:  # the data ends here, or isn't an LZ4 block
        pass
    return bytes(output)


def read_length(start: bytes, offset: int, length: int) -> tuple[int, int]:
    """Return a length, and the offset after it.

    If `length` is 15, the next bytes are added to it, up to and including the first byte below 255.
    """
    has_more = length == 15
    while has_more:
        length += start[offset]
        has_more = start[offset] == 255
        offset += 1
    return length, offset


if __name__ == "__main__":
    main(sys.argv[1:])
