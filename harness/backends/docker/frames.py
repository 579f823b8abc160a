"""Output streams of a container, as the engine sends them: frames of several streams in one connection."""

import struct
from collections.abc import Iterator

#: Numbers of the streams, and the header of a frame: the stream's number, three zeros, and the length.
STDOUT, STDERR = 1, 2
_HEADER = struct.Struct(">BxxxL")


class Frames:
    """Separates the two streams. The input arrives in pieces of bytes that can end anywhere.

    The SDK also has a reader. But that reader makes a system call for every few bytes. It also waits forever on an
    encrypted connection whose library has already read the next frame.
    """

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._missing_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the pieces in the next bytes, each with the number of its stream."""
        remaining = memoryview(chunk)
        while remaining:
            if self._missing_bytes:
                piece, remaining = remaining[: self._missing_bytes], remaining[self._missing_bytes :]
                self._missing_bytes -= len(piece)
                yield self._stream, bytes(piece)
            else:
                missing = _HEADER.size - len(self._header)
                self._header, remaining = self._header + remaining[:missing], remaining[missing:]
                if len(self._header) == _HEADER.size:
                    (self._stream, self._missing_bytes), self._header = _HEADER.unpack(self._header), b""
