"""Converts untrusted bytes to text that is safe to store and show."""

from harness.model.texts import escape


def join_lines(text: str, limit: int = 500) -> str:
    """Return the text's words on one line of at most `limit` characters."""
    line = escape(" ".join(text[: 10 * limit].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Tail:
    """Keeps the end of a stream of bytes, in bounded memory, and counts the bytes before it."""

    def __init__(self, limit: int = 64 * 1024) -> None:
        self._limit = limit
        self._tail = bytearray()
        self._dropped = 0

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._tail += chunk
        # trim only at twice the limit, so that each byte is copied about once, even with small chunks
        if len(self._tail) > 2 * self._limit:
            self._trim()

    def text(self) -> str:
        """Return the end of the stream. If earlier bytes were dropped, the first line reports how many."""
        self._trim()
        text = escape(self._tail.decode("utf-8", "backslashreplace"), keep="\n\t")
        return f"[{self._dropped} bytes before this were not saved]\n{text}" if self._dropped else text

    def _trim(self) -> None:
        surplus = len(self._tail) - self._limit
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus
