"""Fat binaries with headers and no code: what `fatbins.py` reads of them is what a compiler would have written."""

import struct
from collections.abc import Iterable

_KINDS = {"ptx": 1, "sm": 2}


def fat_binary(*code: str, size: int = 64, header: int = 64) -> bytes:
    """One module with this code (`sm_80`, `ptx_90`), `size` bytes of each."""
    return wrapped(b"".join(entry(item, size, header) for item in code))


def wrapped(entries: bytes) -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def entry(code: str, size: int = 64, header: int = 64) -> bytes:
    """One entry; of `ptx_90:8.5/sm_90a` the PTX tells its version and target."""
    code, _, directives = code.partition(":")
    version, _, target = directives.partition("/")
    kind, _, architecture = code.partition("_")
    held = f"//\n.version {version}\n.target {target}".encode() if version else b"\x90" * size
    return plain(kind, int(architecture), held, header)


def plain(kind: str, architecture: int, held: bytes, header: int = 64, flags: int = 0) -> bytes:
    start = struct.pack("<HHIQ12xI8xQ", _KINDS.get(kind, 99), 0x101, header, len(held), architecture, flags)
    return start.ljust(header, b"\0") + held


def library(modules: Iterable[Iterable[str]]) -> bytes:
    """A file with these modules, with other things between them."""
    return b"\x7fELF" + b"".join(b"\0" * 12 + fat_binary(*code) for code in modules) + b"the end"
