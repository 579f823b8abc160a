"""Shared objects with a name and no content, made without a compiler: the system's loader opens them."""

import struct

_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_WRITE = 6
_NEEDED, _STRINGS, _SYMBOLS, _STRINGS_SIZE, _SYMBOL_SIZE, _SONAME = 1, 5, 6, 10, 11, 14
_HEADER, _SEGMENT, _SYMBOL = 64, 56, 24


def shared_object(soname: str, needed: tuple[str, ...] = ()) -> bytes:
    """An ELF file for x86-64 with this SONAME, which asks for the libraries in `needed`."""
    strings, offsets = b"\0", {}
    for name in (soname, *needed):
        offsets[name] = len(strings)
        strings += name.encode() + b"\0"
    strings += bytes(-len(strings) % 8)
    symbols_at = _HEADER + 3 * _SEGMENT
    strings_at = symbols_at + _SYMBOL
    dynamic_at = strings_at + len(strings)
    entries = [
        (_SONAME, offsets[soname]),
        *((_NEEDED, offsets[name]) for name in needed),
        (_STRINGS, strings_at),
        (_SYMBOLS, symbols_at),
        (_STRINGS_SIZE, len(strings)),
        (_SYMBOL_SIZE, _SYMBOL),
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    size = dynamic_at + len(dynamic)
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    header = identity + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, _HEADER, _SEGMENT, 3, 0, 0, 0)
    segments = (
        _segment(_LOAD, 0, size, 4096),
        _segment(_DYNAMIC, dynamic_at, len(dynamic), 8),
        _segment(_STACK, 0, 0, 16),
    )
    return header + b"".join(segments) + bytes(_SYMBOL) + strings + dynamic


def _segment(kind: int, offset: int, size: int, alignment: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, _READ_WRITE, offset, offset, offset, size, size, alignment)
