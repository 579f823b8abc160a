"""Where the keys of a TOML document stand: tomllib tells values, and no lines."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

#: The way to a value: keys of tables, and numbers, from 0, of a list's entries.
Key = tuple[str | int, ...]


class Places:
    """The lines of a valid document whose first line is line `first` of its file."""

    def __init__(self, toml: str, first: int = 1) -> None:
        self._lines = toml.split("\n")
        self._first = first
        self._found: dict[Key, tuple[int, int]] | None = None

    def line(self, key: Key, value: str = "") -> int:
        """The line of a key, or, where it stands there in quotes or bare, of its `value`; counted from 1 in the file.

        Of a key that is not there, the line of what it would be in.
        """
        if self._found is None:
            self._found = {}
            for path, lines in _statements(self._lines):
                self._found.setdefault(path, lines)
        known = key
        while known and known not in self._found:
            known = known[:-1]
        begin, end = self._found.get(known, (0, 1))
        # a statement of one line is found; in a longer one, the key and then the value narrow it down
        for word in (next((part for part in reversed(key) if isinstance(part, str)), ""), value):
            begin = self._naming(word, begin, end) if word else begin
        return self._first + begin

    def _naming(self, word: str, begin: int, end: int) -> int:
        pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
        return next((number for number in range(begin, end) if pattern.search(self._lines[number])), begin)


def _statements(lines: list[str]) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Each key with the range of lines of the statement that it stands in.

    A statement is the fewest lines that tomllib reads: a `[table]`, or a key and its value.
    """
    table: Key = ()
    entries: dict[Key, int] = {}
    begin = 0
    while begin < len(lines):
        end = begin + 1
        while (read := _read(lines[begin:end])) is None and end < len(lines):
            end += 1
        if read and lines[begin].lstrip().startswith("["):
            table = _opened(read, entries)
            yield from ((table[:length], (begin, end)) for length in range(1, len(table) + 1))
        elif read:
            yield from (((*table, *key), (begin, end)) for key in _keys(read))
        begin = end


def _read(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return None


def _opened(read: dict[str, Any], entries: dict[Key, int]) -> Key:
    """The key of the table that a `[table]` or `[[table]]` opens; `entries` counts those of each list so far."""
    key: Key = ()
    value: Any = read
    while value:
        if isinstance(value, list):
            entries[key] = entries.get(key, -1) + 1
            return (*key, entries[key])
        ((name, value),) = value.items()
        key = (*key, name)
        if isinstance(value, dict) and key in entries:
            key = (*key, entries[key])
    return key


def _keys(value: Any) -> Iterator[Key]:
    """The keys in a value, the outer ones first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in inner:
        yield (name,)
        yield from ((name, *key) for key in _keys(entry))
