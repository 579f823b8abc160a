"""Reads and checks a scenario's header: its PEP 723 block, never the Python below it."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.model.errors import UsageError
from harness.model.scenario import ENVIRONMENT, Comparison, Need, Pick, Scenario

# the expression of PEP 723 itself
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_KEYS = {"title", "source", "tags", "axes", "default", "env", "exclude", "needs", "compare"}
_AXIS = re.compile(r"[a-z][a-z0-9_]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_RESERVED = {ENVIRONMENT, "device", "scenario", "bench"}


def parse(text: str, path: Path) -> Scenario:
    """The scenario that the text of the file `path` describes. Raises UsageError, which says where and what."""
    document = _toml(text, path)
    table = document.get("tool", {}).get("harness")
    if not isinstance(table, dict):
        raise UsageError(f"{path}: the header has no [tool.harness] table.")
    return _Header(table, path).scenario(document)


def _toml(text: str, path: Path) -> dict[str, Any]:
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if len(blocks) != 1:
        found = "no" if not blocks else "more than one"
        raise UsageError(f"{path}: {found} `# /// script` header (PEP 723).")
    lines = blocks[0]["content"].splitlines()
    try:
        return tomllib.loads("\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: the header is not valid TOML: {error}") from None


class _Header:
    """The table [tool.harness] of one file; every method reads one key, or raises a UsageError that names it."""

    def __init__(self, table: dict[str, Any], path: Path) -> None:
        self.table = table
        self.path = path
        self.axes = self._axes()

    def scenario(self, document: Mapping[str, Any]) -> Scenario:
        unknown = sorted(set(self.table) - _KEYS)
        if unknown:
            raise self._error(unknown[0], f"is not a key; the keys are {', '.join(sorted(_KEYS))}")
        return Scenario(
            name=self.path.stem,
            path=self.path,
            title=self._text(self.table, "title", "") or self.path.stem,
            source=self._text(self.table, "source", ""),
            tags=self._texts(self.table.get("tags", []), "tags"),
            axes=self.axes,
            requires_python=self._text(document, "requires-python", ""),
            dependencies=self._requirements(document.get("dependencies", []), "dependencies"),
            default=self._point(self.table.get("default", {}), "default"),
            environ=list(self.table.get("env", {})),
            exclude=[self._point(entry, "exclude") for entry in self._tables("exclude")],
            needs=[self._need(entry) for entry in self._tables("needs")],
            compare=[self._comparison(entry) for entry in self._tables("compare")],
        )

    def _error(self, key: str, problem: str) -> UsageError:
        return UsageError(f"{self.path}: in the header, `{key}` {problem}.")

    def _axes(self) -> dict[str, list[str]]:
        return self._values("axes", _AXIS) | self._values("env", _VARIABLE)

    def _values(self, key: str, name: re.Pattern[str]) -> dict[str, list[str]]:
        """Axis to its values, of the table `key`."""
        table = self.table.get(key, {})
        if not isinstance(table, dict):
            raise self._error(key, "is not a table of lists")
        for axis, values in table.items():
            if not name.fullmatch(axis) or axis in _RESERVED:
                raise self._error(f"{key}.{axis}", f"is no name for an axis here (it must match {name.pattern})")
            if not self._texts(values, f"{key}.{axis}"):
                raise self._error(f"{key}.{axis}", "has no value")
            if len(set(values)) < len(values):
                raise self._error(f"{key}.{axis}", "has a value twice")
        return dict(table)

    def _need(self, entry: dict[str, Any]) -> Need:
        self._known(entry, "needs", {"when", "requires", "reason", "advice"})
        return Need(
            requires=self._requirements(entry.get("requires", []), "needs.requires"),
            when=self._point(entry.get("when", {}), "needs.when"),
            reason=self._text(entry, "reason", ""),
            advice=self._text(entry, "advice", ""),
        )

    def _comparison(self, entry: dict[str, Any]) -> Comparison:
        self._known(entry, "compare", {"name", "along", "plus", "against", "pick"})
        along, plus = self._text(entry, "along", ""), self._text(entry, "plus", "")
        against = self._text(entry, "against", "")
        if along == ENVIRONMENT:
            if plus or against:
                raise self._error("compare.plus", "has no meaning along the environments: the reference is the run's")
        elif along not in self.axes:
            raise self._error(
                "compare.along", f"is {along!r}; it must be `environment` or one of {', '.join(self.axes)}"
            )
        elif plus not in self.axes[along] or (against and against not in self.axes[along]):
            raise self._error("compare.plus", f"and `against` must be values of {along}: {', '.join(self.axes[along])}")
        return Comparison(
            name=self._text(entry, "name", along),
            along=along,
            plus=plus,
            against=against,
            pick=[self._pick(pick) for pick in entry.get("pick", [])],
        )

    def _pick(self, entry: Any) -> Pick:
        if not isinstance(entry, dict):
            raise self._error("compare.pick", "is not a list of tables")
        axes = {key: value for key, value in entry.items() if key != "requires"}
        requires = self._requirements(entry.get("requires", []), "compare.pick.requires")
        return Pick(requires=requires, axes=self._point(axes, "compare.pick"))

    def _known(self, entry: dict[str, Any], key: str, known: set[str]) -> None:
        unknown = sorted(set(entry) - known)
        if unknown:
            raise self._error(f"{key}.{unknown[0]}", f"is not a key; the keys are {', '.join(sorted(known))}")

    def _tables(self, key: str) -> list[dict[str, Any]]:
        entries = self.table.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise self._error(key, f"is not a list of tables ([[tool.harness.{key}]])")
        return entries

    def _point(self, entry: Any, key: str) -> dict[str, str]:
        """Axis to one of its values."""
        if not isinstance(entry, dict):
            raise self._error(key, "is not a table of axis = value")
        for axis, value in entry.items():
            if axis not in self.axes:
                raise self._error(key, f"names the axis {axis!r}; the axes are {', '.join(self.axes)}")
            if value not in self.axes[axis]:
                raise self._error(key, f"gives {axis} the value {value!r}; it has {', '.join(self.axes[axis])}")
        return dict(entry)

    def _text(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self._error(key, "is not a string")
        return value

    def _texts(self, value: Any, key: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, 'is not a list of strings (write numbers in quotes: "32")')
        return value

    def _requirements(self, value: Any, key: str) -> list[str]:
        from packaging.requirements import InvalidRequirement, Requirement

        texts = self._texts(value, key)
        for text in texts:
            try:
                Requirement(text)
            except InvalidRequirement:
                raise self._error(key, f"has {text!r}, which is no requirement (PEP 508)") from None
        return texts
