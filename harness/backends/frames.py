"""An attached container's two streams, as the engine sends them through one connection.

A frame is a header of 8 bytes (the stream's number, three zeros, the length as a big-endian 32-bit number) and as many
bytes of that stream. The SDK has a reader too; it asks the system before every few bytes, and waits for ever on an
encrypted connection whose library has already read the next frame.
"""

import struct
from collections.abc import Iterator

STDOUT = 1
STDERR = 2

_HEADER = struct.Struct(">BxxxL")


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
