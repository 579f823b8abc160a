"""Reads the TOML of files and of scripts' headers (PEP 723), so that all that is wrong is told at once, by line."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from harness.model.errors import FileError, Problem
from harness.model.texts import nearest

#: The way to a value: keys of tables, and numbers, from 0, of a list's entries.
Key = tuple[str | int, ...]

_WHERE = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")

# the expression of PEP 723 itself
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_BEGIN, _END = "# /// script", "# ///"


@dataclass(frozen=True, slots=True)
class Toml:
    """What some TOML says, and where its keys stand in the file."""

    table: dict[str, Any]
    places: "Places"


def read(toml: str, path: Path, first: int = 1) -> Toml:
    """The TOML whose first line is line `first` of the file `path`. Raises FileError where it is none."""
    try:
        return Toml(tomllib.loads(toml), Places(toml, first))
    except tomllib.TOMLDecodeError as error:
        lines = toml.rstrip("\n").split("\n")
        where = _WHERE.search(str(error))
        number = min(int(where["line"]) if where and where["line"] else len(lines), len(lines))
        fix = f"The line is `{lines[number - 1].strip()}`; a text stands in double quotes."
        text = f"This is not valid TOML: {_WHERE.sub('', str(error)).rstrip('.')}."
        raise FileError([Problem(path, first + number - 1, text, fix)]) from None


def read_file(path: Path) -> str:
    """The text of a file. Raises FileError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError([Problem(path, 0, f"{path.name} cannot be read: {error.strerror or error}.")]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileError([Problem(path, line, f"{path.name} cannot be read: this is no UTF-8.")]) from None


def read_header(text: str, path: Path) -> Toml:
    """The header in the text of the script `path` (PEP 723). Raises FileError where there is none, or no right one."""
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if not blocks:
        raise FileError([_no_header(text, path)])
    if len(blocks) > 1:
        line = _line_at(text, blocks[1].start())
        raise FileError([Problem(path, line, f"This is a second `{_BEGIN}` header.", "A file has one (PEP 723).")])
    lines = blocks[0]["content"].rstrip("\n").split("\n")
    toml = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    return read(toml, path, _line_at(text, blocks[0].start("content")))


def _no_header(text: str, path: Path) -> Problem:
    """Why there is no block: none was begun, a line in it is no comment, or it never ends."""
    lines = text.split("\n")
    if _BEGIN not in lines:
        fix = f"Begin the file with `{_BEGIN}`, the TOML in comments, and `{_END}`: `harness scenarios new` writes one."
        return Problem(path, 1, f"There is no `{_BEGIN}` header (PEP 723).", fix)
    begin = lines.index(_BEGIN)
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if line == _END:
            break
        if line != "#" and not line.startswith("# "):
            fix = f"Begin each of its lines with `# `, and end it with the line `{_END}`."
            return Problem(path, number, f"The header that begins in line {begin + 1} is broken off here.", fix)
    fix = f"End it with the line `{_END}`, after at least one line of TOML in comments."
    return Problem(path, begin + 1, "The header has no end, or nothing in it.", fix)


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


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


class Findings:
    """The problems of one file, whose keys stand at `places`."""

    def __init__(self, path: Path, places: Places) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._places = places

    def add(self, key: Key, text: str, fix: str = "", *, value: str = "") -> None:
        """A problem of a key, or of the `value` that stands there."""
        self.at(self._places.line(key, value), text, fix)

    def at(self, line: int, text: str, fix: str = "") -> None:
        """A problem in a line of the file, once."""
        problem = Problem(self._path, line, text, fix)
        if problem not in self.problems:
            self.problems.append(problem)

    def unknown_keys(self, key: Key, table: Mapping[str, Any], known: Sequence[str], name: str = "") -> None:
        """A problem for each key of the table at `key` that is not one of `known`; `name` is the table's, as shown."""
        for each in table:
            if each not in known:
                dotted = f"{name}.{each}" if name else each
                self.add((*key, each), f"`{dotted}` is not a key.", choices(each, known, "keys"))

    def check(self) -> None:
        """Raises FileError where there are problems."""
        if self.problems:
            raise FileError(self.problems)


def choices(typed: str, names: Iterable[str], kind: str) -> str:
    """What there is in place of a name that does not exist, the nearest first."""
    names = list(names)
    near = nearest(typed, names)
    hint = f"Did you mean `{near}`? " if near else ""
    return f"{hint}The {kind} are {', '.join(names)}." if names else f"There are no {kind}."


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold; a boolean is none, nor is infinity."""
    most = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most


def number_text(number: float) -> str:
    """A number as cells have it: "1024" for 1024 and for 1024.0, "0.5". The kit's `byhand.choices` does the same."""
    return str(int(number)) if number == int(number) else repr(number)


def is_json(value: object) -> bool:
    """Whether a value of TOML is one of JSON too: dates and infinities are not."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(map(is_json, value.values()))
    return isinstance(value, str | bool) or is_number(value)
