"""Reads the TOML of files and of script headers (PEP 723), and collects all problems with their lines."""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from harness.files import is_link_elsewhere, read_text
from harness.model.errors import FileError, Problem, UsageError
from harness.model.texts import find_nearest

#: The path to a value: keys of tables, and indexes of list entries.
Key = tuple[str | int, ...]

#: The largest number of characters in a text, and of entries in a list. No real header has more, and reading more would
#: take too long.
TEXT_LIMIT, LIST_LIMIT = 1_000, 1_000

#: The largest number of characters in the TOML of a file, of nested levels, and of characters in a key. Keys with dots
#: and lists in lists are nested too.
SIZE_LIMIT, DEPTH_LIMIT, KEY_LIMIT = 256 * 1024, 16, 100

#: The largest number of problems that are reported for a file. The rest of the file isn't read.
PROBLEMS_LIMIT = 100

#: The largest size of a file in bytes.
FILE_LIMIT = 16 * 1024**2

_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")

#: Tokens for finding the end of a statement: strings and comments (which may contain brackets), brackets, line feeds.
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|\#[^\n]*|[\[\]{}\n]''', re.DOTALL
)

# an integer with about as many digits as Python can convert (sys.get_int_max_str_digits)
_DIGITS = re.compile(r"[0-9_]{4000}")

# the regular expression in PEP 723
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_HEADER_START, _HEADER_END = "# /// script", "# ///"


@contextmanager
def hide_linked_file(path: Path) -> Iterator[None]:
    """Replace errors that could quote a file outside the folder of `path`, to which `path` is a link."""
    try:
        yield
    except UsageError:
        if not is_link_elsewhere(path):
            raise
        raise UsageError(
            f"{path} is a link to a file outside its folder, and that file isn't valid.",
            "Check where the link points to, or replace the link with a copy of the file.",
        ) from None


class Findings:
    """The problems of one file. Its TOML starts in line `first`. Messages name keys relative to the table `root`."""

    def __init__(self, path: Path, toml: str, first: int = 1, root: Key = ()) -> None:
        self._problems: dict[Problem, None] = {}
        self._path = path
        self._lines = toml.split("\n")
        self._first = first
        self._root = root

    def add(self, key: Key, text: str, fix: str = "", *, value: str = "") -> None:
        """Add a problem of a key, or of its `value`."""
        self.at(self.line(key, value), text, fix)

    def at(self, line: int, text: str, fix: str = "") -> None:
        """Add a problem in a line of the file, unless it was added before.

        Raises FileError if there are too many problems.
        """
        self._problems.setdefault(Problem(self._path, line, text, fix))
        if len(self._problems) >= PROBLEMS_LIMIT:
            self.check()

    @property
    def problems(self) -> list[Problem]:
        """The problems that were added so far."""
        return list(self._problems)

    def check(self) -> None:
        """Raise FileError if there are problems."""
        if self.problems:
            raise FileError(self.problems)

    def name(self, key: Key) -> str:
        """Return the name of a key in messages, without the index of a list entry."""
        relative = key[len(self._root) :] if key[: len(self._root)] == self._root else key
        return ".".join(part for part in relative if isinstance(part, str))

    def line(self, key: Key, value: str = "") -> int:
        """Return the line of a key, counted from 1, or the line of its `value` if the text contains the value.

        If the key is missing, return the line of the table that should contain it.
        """
        prefix = key
        while prefix and prefix not in self._statements:
            prefix = prefix[:-1]
        start, end = self._statements.get(prefix, (0, 1))
        # in a statement of several lines, search the line of the key, and then the line of the value
        for word in (next((part for part in reversed(key) if isinstance(part, str)), ""), value):
            pattern = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
            start = next(
                (number for number in range(start, end) if word and pattern.search(self._lines[number])), start
            )
        return self._first + start

    @cached_property
    def _statements(self) -> dict[Key, tuple[int, int]]:
        """Return the range of lines of each key's statement, counted from 0."""
        ranges: dict[Key, tuple[int, int]] = {}
        entry_indexes: dict[Key, int] = {}  # the index of the current entry of each list of tables
        table: Key = ()
        for start, end in _find_ranges(self._lines):
            statement = "\n".join(self._lines[start:end])
            keys = [key for key, _ in _walk_values(tomllib.loads(statement))]
            if statement.lstrip().startswith("["):
                table = ()
                parts = [part for part in max(keys, key=len) if isinstance(part, str)]
                is_list = statement.lstrip().startswith("[[")
                for number, part in enumerate(parts, 1):
                    table = (*table, part)
                    ranges.setdefault(table, (start, end))
                    if is_list and number == len(parts):
                        entry_indexes[table] = entry_indexes.get(table, -1) + 1
                    if table in entry_indexes:
                        table = (*table, entry_indexes[table])
                        ranges.setdefault(table, (start, end))
            else:
                for key in keys:
                    ranges.setdefault((*table, *key), (start, end))
        return ranges


def _find_ranges(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the line ranges of the statements of valid TOML, counted from 0. An empty line counts as a statement."""
    text = "\n".join([*lines, ""])
    start = end = depth = 0
    for token in _TOKEN.finditer(text):
        end += token[0].count("\n")
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if token[0] == "\n" and depth == 0:
            yield start, end
            start = end


def _find_open_bracket(lines: Sequence[str]) -> int:
    """Return the number of the line whose bracket is open where the last line starts a key or a table; otherwise 0."""
    if not re.match(r"\s*(\[|[\w.-]+\s*=)", lines[-1]):
        return 0
    number, opened = 1, list[int]()
    for token in _TOKEN.finditer("\n".join([*lines[:-1], ""])):
        if token[0] in "[{":
            opened.append(number)
        elif token[0] in "]}" and opened:
            opened.pop()
        number += token[0].count("\n")
    return opened[0] if opened else 0


def _walk_values(value: Any) -> Iterator[tuple[Key, Any]]:
    """Yield every key in a nested value, with the key's own value. Outer keys come first."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in children:
        yield (name,), entry
        yield from (((name, *key), element) for key, element in _walk_values(entry))


@dataclass(frozen=True, slots=True)
class TomlDocument:
    """The values in the TOML of a file, and its problems."""

    values: dict[str, Any]
    findings: Findings


def read(toml: str, path: Path, first: int = 1, root: Key = ()) -> TomlDocument:
    """Return the TOML that starts in line `first` of the file `path`. Raises FileError if it's invalid or too large."""
    lines = toml.rstrip("\n").split("\n")

    def make_error(text: str, number: int = 1, fix: str = "") -> FileError:
        return FileError([Problem(path, first + number - 1, text, fix)])

    if len(toml) > SIZE_LIMIT:
        raise make_error(f"This has more than {SIZE_LIMIT:,} characters of TOML.")
    try:
        values = tomllib.loads(toml)
    except RecursionError:
        raise make_error(f"This is nested deeper than {DEPTH_LIMIT} levels.") from None
    except tomllib.TOMLDecodeError as invalid:
        position = _POSITION.search(str(invalid))
        number = min(int(position["line"]) if position and position["line"] else len(lines), len(lines))
        start = _find_open_bracket(lines[:number])
        if start:
            raise make_error(
                f"This is not valid TOML: the bracket in `{lines[start - 1].strip()[:TEXT_LIMIT]}` isn't closed.",
                start,
                "Close it before the next key or table.",
            ) from None
        line = lines[number - 1].strip()
        # a word without quotes instead of a value
        quotes = " Strings need double quotes." if "=" in line and "Invalid value" in str(invalid) else ""
        text = f"This is not valid TOML: {_POSITION.sub('', str(invalid)).rstrip('.')[:TEXT_LIMIT]}."
        raise make_error(text, number, f"The line is `{line[:TEXT_LIMIT]}`.{quotes}") from None
    except ValueError:  # an integer that is too long for Python, whose line isn't reported
        number = next((number for number, line in enumerate(lines, 1) if _DIGITS.search(line)), 1)
        raise make_error("Invalid integer: expected at most 64 bits.", number) from None
    if problem := _check_depth(values):
        raise make_error(problem)
    document = TomlDocument(values, Findings(path, toml, first, root))
    _check_sizes(document)
    return document


def _check_depth(values: dict[str, Any]) -> str:
    """Return a sentence about nesting or a key that exceeds the limits; otherwise an empty text."""
    pending: list[tuple[Any, int]] = [(values, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > DEPTH_LIMIT + 1:
            return f"This is nested deeper than {DEPTH_LIMIT} levels."
        if isinstance(value, dict) and any(len(key) > KEY_LIMIT for key in value):
            return f"A key has more than {KEY_LIMIT} characters."
        children = value.values() if isinstance(value, dict) else value
        pending += [(child, depth + 1) for child in children if isinstance(child, dict | list)]
    return ""


def _check_sizes(document: TomlDocument) -> None:
    """Raise FileError if texts, lists or integers exceed the limits."""
    for key, value in _walk_values(document.values):
        name = f"`{document.findings.name(key)}`"
        if isinstance(value, str) and len(value) > TEXT_LIMIT:
            text = f"{name} has {len(value):,} characters: expected at most {TEXT_LIMIT:,}."
        elif isinstance(value, list) and len(value) > LIST_LIMIT:
            text = f"{name} has {len(value):,} entries: expected at most {LIST_LIMIT:,}."
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            text = f"Invalid {name}: expected an integer of at most 64 bits."
        else:
            continue
        document.findings.add(key, text)
    document.findings.check()


def read_file(path: Path) -> str:
    """Return the text of a file. Raises FileError if it can't be read."""
    try:
        str(path).encode()
        return read_text(path, most=FILE_LIMIT)
    except UnicodeEncodeError:
        fix = "Rename the file or its folder."
        raise FileError([Problem(path, 0, "The path of this file is not UTF-8.", fix)]) from None
    except OSError as error:
        raise FileError([Problem(path, 0, f"The file cannot be read: {error.strerror or error}.")]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        text = f"{path.name} cannot be read: this line is not UTF-8."
        raise FileError([Problem(path, line, text, "Save the file as UTF-8.")]) from None


def read_header(text: str, path: Path, root: Key = ()) -> TomlDocument:
    """Return the header in the text of the script `path` (PEP 723).

    Raises FileError if there is none, or if it is invalid.
    """
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if not blocks:
        raise FileError([_explain_no_header(text, path)])
    if len(blocks) > 1:
        fix = "A file can have only one header (PEP 723). Remove this one, or move its lines to the first header."
        line = _count_line(text, blocks[1].start())
        raise FileError([Problem(path, line, f"This is a second `{_HEADER_START}` header.", fix)])
    lines = blocks[0]["content"].rstrip("\n").split("\n")
    toml = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines)
    return read(toml, path, _count_line(text, blocks[0].start("content")), root)


def _count_line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _explain_no_header(text: str, path: Path) -> Problem:
    """Return the reason why no header was found: no start, a line that isn't a comment, or no end."""
    lines = text.split("\n")
    if _HEADER_START not in lines:
        fix = (
            f"Start the file with `{_HEADER_START}`, the TOML in comments, and `{_HEADER_END}`. To create such a file: "
            "`harness scenarios new`. To run a script without a header: `harness run`."
        )
        return Problem(path, 1, f"This file has no `{_HEADER_START}` header (PEP 723).", fix)
    start = lines.index(_HEADER_START)
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if line == _HEADER_END:
            break
        if line != "#" and not line.startswith("# "):
            fix = f"Start every line of the header with `# `, and end it with the line `{_HEADER_END}`."
            return Problem(path, number, f"This line interrupts the header that starts in line {start + 1}.", fix)
    fix = f"Write at least one line of TOML in comments, and then the line `{_HEADER_END}`."
    return Problem(path, start + 1, "The header is empty or isn't closed.", fix)


def list_choices(typed: str, names: Iterable[str], kind: str) -> str:
    """Return sentences with the name nearest to `typed`, if any, and with all valid names."""
    names = list(names)
    nearest = find_nearest(typed, names)
    hint = f"Did you mean `{nearest}`? " if nearest else ""
    return f"{hint}The {kind} are {', '.join(names)}." if names else f"No {kind} are defined."


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a finite number that fits into a float. A boolean isn't a number."""
    largest = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest


def format_number_text(number: float) -> str:
    """Return the text of a number in cells: "1024" for 1024 and 1024.0, "0.5".

    The kit's `byhand.choices` does the same.
    """
    return str(int(number)) if number == int(number) else repr(number)


def format_value(value: object) -> str:
    """Return a text, a float, a list or a table as TOML on one line."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{format_value(key)} = {format_value(entry)}' for key, entry in value.items())} }}"
        case list():
            return f"[{', '.join(map(format_value, value))}]"
        case str():
            # an escape of JSON is valid TOML, but not one of a character above U+FFFF
            text = json.dumps(value, ensure_ascii=False)
            return re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)
        case float():
            return json.dumps(value)
    raise TypeError(f"harness doesn't write a {type(value).__name__} as TOML")


def is_json(value: object) -> bool:
    """Return whether JSON can store a value of TOML: dates and infinities aren't allowed."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
