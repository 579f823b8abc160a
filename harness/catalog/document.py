"""Reads the TOML of a file, or of a part of it, so that what is wrong has a line."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.catalog.places import Places
from harness.model.problem import FileError, Problem

_WHERE = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Document:
    """What some TOML says, and where its keys stand in the file."""

    table: dict[str, Any]
    places: Places


def read(toml: str, path: Path, first: int = 1) -> Document:
    """The TOML whose first line is line `first` of the file `path`. Raises FileError where it is none."""
    try:
        return Document(tomllib.loads(toml), Places(toml, first))
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
