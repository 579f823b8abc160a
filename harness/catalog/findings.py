"""Collects what is wrong with a TOML document, so that all of it is told at once."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.catalog.places import Key, Places
from harness.model.nearest import nearest
from harness.model.problem import FileError, Problem


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
