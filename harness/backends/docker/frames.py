"""Output streams of a container, as the engine sends them: frames of several streams in one connection."""

import struct
from collections.abc import Iterator

#: Numbers of the streams, and the header of a frame: the stream's number, three zeros, and the length.
STDOUT, STDERR = 1, 2
_HEADER = struct.Struct(">BxxxL")


class Frames:
    """Separates the two streams. The input arrives in pieces of bytes that can end anywhere.

    The SDK also has a reader. But it asks the system before every few bytes, and waits forever on an encrypted
    connection whose library has already read the next frame.
    """

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._left = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the pieces in the next bytes, each with the number of its stream."""
        rest = memoryview(chunk)
        while rest:
            if self._left:
                piece, rest = rest[: self._left], rest[self._left :]
                self._left -= len(piece)
                yield self._stream, bytes(piece)
            else:
                missing = _HEADER.size - len(self._header)
                self._header, rest = self._header + rest[:missing], rest[missing:]
                if len(self._header) == _HEADER.size:
                    (self._stream, self._left), self._header = _HEADER.unpack(self._header), b""
