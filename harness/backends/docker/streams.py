"""What goes to a container and comes from it through the engine: files as tar archives, and its two streams in frames.

A frame is a header of 8 bytes (the stream's number, three zeros, the length as a big-endian 32-bit number) and as many
bytes of that stream. The SDK has a reader too; it asks the system before every few bytes, and waits for ever on an
encrypted connection whose library has already read the next frame.
"""

import io
import struct
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO, cast

from harness.backends.artifacts import Artifacts, Collector

STDOUT = 1
STDERR = 2

_HEADER = struct.Struct(">BxxxL")

#: The user `harness` of the images.
UID = 1000


def pack(files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> bytes:
    """A tar archive of the files and folders, all owned by the images' user."""
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(parents | set(folders)):
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for name, content in files.items():
            tar.addfile(_entry(name, tarfile.REGTYPE, 0o644, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    entry.uid = entry.gid = UID
    return entry


def unpack(chunks: Iterable[bytes]) -> Artifacts:
    """The regular files in a tar archive of one folder, read as it comes and no further than the limits."""
    collector = Collector()
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|") as tar:
            for member in tar:
                if member.isdir():
                    continue
                name = member.name.partition("/")[2] or member.name  # without the folder's own name
                if collector.full(name, member.size):
                    break
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    collector.refuse(name, "no regular file")
                else:
                    collector.add(name, content.read())
    except tarfile.TarError as error:
        collector.refuse("the archive", str(error))
    return collector.artifacts()


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


class Frames:
    """Takes bytes in chunks of any size and gives them back as pieces of the two streams; keeps at most a header."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = 0
        self._left = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """The pieces in the next bytes: the stream's number and its bytes."""
        at = 0
        while at < len(chunk):
            if self._left:
                piece = chunk[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                yield self._stream, piece
            else:
                wanted = chunk[at : at + _HEADER.size - len(self._header)]
                at += len(wanted)
                self._header += wanted
                if len(self._header) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._header)
                    self._header = b""
