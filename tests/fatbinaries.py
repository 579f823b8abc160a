"""Fat binaries with headers and no code: what `fatbins.py` reads of them is what a compiler would have written."""

import struct
from collections.abc import Iterable

_KINDS = {"ptx": 1, "sm": 2}


def fat_binary(*code: str, size: int = 64, header: int = 64) -> bytes:
    """One module with this code (`sm_80`, `ptx_90`), `size` bytes of each."""
    return wrapped(b"".join(entry(each, size, header) for each in code))


def wrapped(entries: bytes) -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def entry(code: str, size: int = 64, header: int = 64) -> bytes:
    kind, _, architecture = code.partition("_")
    start = struct.pack("<HHIQ12xI", _KINDS.get(kind, 99), 0x101, header, size, int(architecture))
    return start.ljust(header, b"\0") + b"\x90" * size


def library(modules: Iterable[Iterable[str]]) -> bytes:
    """A file with these modules, with other things between them."""
    return b"\x7fELF" + b"".join(b"\0" * 12 + fat_binary(*code) for code in modules) + b"the end"
