"""Reads and checks a scenario's header, and that its function takes what the header gives it. Nothing is imported."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.catalog import signature, toml
from harness.catalog.toml import Findings, Key, choices, is_json, is_number, number_text
from harness.model.errors import FileError
from harness.model.scenario import ENVIRONMENT, Comparison, Expectation, Need, Pick, Scenario, Sweep
from harness.model.texts import nearest

_TABLE: Key = ("tool", "harness")
_KEYS = ("title", "source", "tags", "axes", "env", "default", "exclude", "needs", "compare", "expect", "profile")
_NEED_KEYS = ("when", "requires", "reason", "advice")
_COMPARE_KEYS = ("name", "along", "plus", "against", "pick", "percent")
_EXPECT_KEYS = ("observation", "value", "when", "requires")
_SWEEP_KEYS = ("sweep", "unit")
_PROFILE_KEYS = ("data",)
_AXIS = re.compile(r"[a-z][a-z0-9_]*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_RESERVED = {ENVIRONMENT, "device", "scenario", "bench"}


def parse(text: str, path: Path) -> Scenario:
    """The scenario that the text of the file `path` describes. Raises FileError, which has all that is wrong."""
    document, header = _read(text, path)
    scenario = header.scenario(document, path)
    signature.check(text, scenario, header.findings)
    header.findings.check()
    return scenario


def axes(text: str, path: Path) -> Mapping[str, Sequence[str]]:
    """The axes alone, as far as they are right, for what has to be quick. Raises FileError without a header."""
    return _read(text, path)[1].axes


def _read(text: str, path: Path) -> tuple[Mapping[str, Any], "_Header"]:
    found = toml.read_header(text, path)
    findings = Findings(path, found.places)
    tool = found.table.get("tool")
    table = tool.get("harness") if isinstance(tool, dict) else None
    for name in tool if isinstance(tool, dict) else ():
        if name != "harness" and nearest(name, ["harness"]):
            findings.add(("tool", name), f"`tool.{name}` is not read.", "Did you mean `tool.harness`?")
    if not isinstance(table, dict):
        findings.add(_TABLE, "The header has no [tool.harness] table.", "It holds `title`, `axes` and `compare`.")
        raise FileError(findings.problems)
    return found.table, _Header(table, findings)


class _Header:
    """The table [tool.harness] of one file; every method reads one key, and notes what is wrong with it."""

    def __init__(self, table: dict[str, Any], findings: Findings) -> None:
        self.table = table
        self.findings = findings
        self.sweeps: dict[str, Sweep] = {}
        #: Every axis with its values; without one where these cannot be read.
        self.axes = self._axes("axes", _AXIS) | self._axes("env", _VARIABLE)

    def scenario(self, document: Mapping[str, Any], path: Path) -> Scenario:
        """What the header says, as far as it can be read."""
        self._known((), self.table, _KEYS)
        return Scenario(
            name=path.stem,
            path=path,
            title=self._text(("title",), self.table) or path.stem,
            source=self._text(("source",), self.table),
            tags=self._texts(("tags",), self.table),
            axes=self.axes,
            requires_python=self._python(document),
            dependencies=self._requirements(("dependencies",), document, within=()),
            default=self._point(("default",), self.table.get("default", {})),
            environ=list(self._dict(("env",), self.table.get("env", {}))),
            exclude=[self._point(key, entry) for key, entry in self._tables("exclude")],
            needs=[self._need(key, entry) for key, entry in self._tables("needs")],
            compare=[self._comparison(key, entry) for key, entry in self._tables("compare")],
            sweeps=self.sweeps,
            expect=[self._expectation(key, entry) for key, entry in self._tables("expect")],
            data_handling=self._data_handling(),
        )

    def _add(self, key: Key, problem: str, fix: str = "", *, value: object = "") -> None:
        """A problem of the key within [tool.harness]; the sentence begins with its name."""
        self.findings.add((*_TABLE, *key), f"`{_dotted(key)}` {problem}", fix, value=str(value))

    def _known(self, key: Key, table: Mapping[str, Any], known: Sequence[str]) -> None:
        self.findings.unknown_keys((*_TABLE, *key), table, known, _dotted(key))

    def _axes(self, key: str, name: re.Pattern[str]) -> dict[str, list[str]]:
        """Axis to its values, of the table `key`."""
        found: dict[str, list[str]] = {}
        for axis, values in self._dict((key,), self.table.get(key, {})).items():
            found[axis] = []
            if not name.fullmatch(axis) or axis in _RESERVED:
                reserved = f" and is none of {', '.join(sorted(_RESERVED))}" if key == "axes" else ""
                self._add((key, axis), "is no name for an axis.", f"One here matches {name.pattern}{reserved}.")
            elif isinstance(values, dict):
                found[axis] = self._sweep((key, axis), axis, values)
            else:
                found[axis] = self._values((key, axis))
        return found

    def _values(self, key: Key) -> list[str]:
        axis = str(key[-1])
        known, table = len(self.findings.problems), self.table[str(key[0])]
        values = self._texts(key, table)
        if not values and len(self.findings.problems) == known:
            self._add(key, "has no value.", f'Give it some: {axis} = ["one", "other"].')
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            self._add(key, f"has {twice!r} twice.", "Take one of them out.", value=twice)
        return values

    def _sweep(self, key: Key, axis: str, table: dict[str, Any]) -> list[str]:
        """The values of a numeric axis, as texts."""
        self.sweeps[axis] = Sweep(unit=self._text((*key, "unit"), table))
        self._known(key, table, _SWEEP_KEYS)
        numbers, place, example = table.get("sweep"), (*key, "sweep"), f"Write {axis} = {{ sweep = [1, 32, 1024] }}."
        if not isinstance(numbers, list) or len(numbers) < 2 or not all(is_number(number) for number in numbers):
            self._add(place, "is not a list of at least two finite numbers.", example)
            return []
        for below, above in pairwise(numbers):
            if below >= above:
                self._add(place, f"has {above} after {below}.", "Write its numbers in increasing order.", value=above)
        return [number_text(number) for number in numbers]

    def _need(self, key: Key, entry: dict[str, Any]) -> Need:
        self._known(key, entry, _NEED_KEYS)
        return Need(
            requires=self._requirements((*key, "requires"), entry),
            when=self._point((*key, "when"), entry.get("when", {})),
            reason=self._text((*key, "reason"), entry),
            advice=self._text((*key, "advice"), entry),
        )

    def _comparison(self, key: Key, entry: dict[str, Any]) -> Comparison:
        self._known(key, entry, _COMPARE_KEYS)
        along, plus, against = (self._text((*key, name), entry) for name in ("along", "plus", "against"))
        if along == ENVIRONMENT:
            for name in ("plus", "against"):
                if name in entry:
                    self._add((*key, name), "has no meaning along the environments.", "The reference is the run's.")
        elif along in self.sweeps:
            fix = "Compare along another axis: that is done at each of its sizes."
            self._add((*key, "along"), f"is {along!r}, which is a sweep.", fix)
        elif along not in self.axes:
            fix = choices(along, [ENVIRONMENT, *self.axes], "possible values")
            self._add((*key, "along"), f"is {along!r}; it must be `environment` or an axis.", fix)
        else:
            for name, value in (("plus", plus), ("against", against)):
                if self.axes[along] and value not in self.axes[along] and (value or name == "plus"):
                    fix = choices(value, self.axes[along], "values")
                    told = f"is {value!r}" if value else "is missing"
                    self._add((*key, name), f"{told}; it must be a value of {along}.", fix)
        percent = entry.get("percent", False)
        if not isinstance(percent, bool):
            fix = "With true, the report's table has a column of percentages, as the source tells them."
            self._add((*key, "percent"), f"is {percent!r}; it must be true or false.", fix)
        return Comparison(
            name=self._text((*key, "name"), entry) or along,
            along=along,
            plus=plus,
            against=against,
            pick=[self._pick(each, pick) for each, pick in self._list((*key, "pick"), entry.get("pick", []))],
            percent=percent is True,
        )

    def _pick(self, key: Key, entry: dict[str, Any]) -> Pick:
        axes = {name: value for name, value in entry.items() if name != "requires"}
        for axis in axes:
            if axis in self.sweeps:
                self._add((*key, axis), "is a sweep.", "Environments are compared at each of its sizes.")
        return Pick(requires=self._requirements((*key, "requires"), entry), axes=self._point(key, axes))

    def _expectation(self, key: Key, entry: dict[str, Any]) -> Expectation:
        self._known(key, entry, _EXPECT_KEYS)
        observation = self._text((*key, "observation"), entry)
        if not observation:
            self._add((*key, "observation"), "is missing.", "It is the name that is given to bench.observe.")
        if not is_json(entry.get("value")):
            fix = "It is what the source states: a text, a number, a boolean, a list or a table of them."
            self._add((*key, "value"), "is missing, or nothing that JSON has.", fix)
        return Expectation(
            observation=observation,
            value=entry.get("value"),
            when=self._point((*key, "when"), entry.get("when", {})),
            requires=self._requirements((*key, "requires"), entry),
        )

    def _data_handling(self) -> list[str]:
        """Globs of the functions that a profile counts as data handling."""
        table = self.table.get("profile", {})
        if not isinstance(table, dict):
            self._add(("profile",), "is not a table.", 'Write [tool.harness.profile], and data = ["*.cast"] below it.')
            return []
        self._known(("profile",), table, _PROFILE_KEYS)
        return self._texts(("profile", "data"), table)

    def _tables(self, key: str) -> list[tuple[Key, dict[str, Any]]]:
        """The tables of a list of tables, each with its key."""
        return self._list((key,), self.table.get(key, []))

    def _list(self, key: Key, entries: Any) -> list[tuple[Key, dict[str, Any]]]:
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._add(key, "is not a list of tables.", f"Write [[tool.harness.{_dotted(key)}]].")
            return []
        return [((*key, number), entry) for number, entry in enumerate(entries)]

    def _dict(self, key: Key, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self._add(key, "is not a table.", f"Write [tool.harness.{_dotted(key)}], and the axes below it.")
        return {}

    def _point(self, key: Key, entry: Any) -> dict[str, str]:
        """Axis to one of its values; a sweep's may be given as numbers."""
        point = {}
        for axis, value in self._dict(key, entry).items():
            text = number_text(value) if axis in self.sweeps and is_number(value) else value
            if axis not in self.axes:
                fix = choices(axis, self.axes, "axes")
                self._add((*key, axis), f"names the axis {axis!r}, which there is not.", fix)
            elif self.axes[axis] and text not in self.axes[axis]:
                fix = choices(str(text), self.axes[axis], "values")
                self._add((*key, axis), f"gives {axis} the value {value!r}, which it has not.", fix, value=value)
            else:
                point[axis] = text
        return point

    def _text(self, key: Key, table: Mapping[str, Any]) -> str:
        value = table.get(str(key[-1]), "")
        if isinstance(value, str):
            return value
        self._add(key, "is not a text.", f'Put it in quotes: {key[-1]} = "{value}".')
        return ""

    def _texts(self, key: Key, table: Mapping[str, Any], within: Key = _TABLE) -> list[str]:
        value = table.get(str(key[-1]), [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        numbers = isinstance(value, list) and all(map(is_number, value)) and key[0] in ("axes", "env")
        fix = f"Put each in quotes, or write {key[-1]} = {{ sweep = {value} }}." if numbers else "Put each in quotes."
        self.findings.add((*within, *key), f"`{_dotted(key)}` is not a list of texts.", fix)
        return []

    def _requirements(self, key: Key, table: Mapping[str, Any], within: Key = _TABLE) -> list[str]:
        from packaging.requirements import InvalidRequirement, Requirement

        texts = self._texts(key, table, within)
        for text in texts:
            try:
                Requirement(text)
            except InvalidRequirement:
                problem = f"`{_dotted(key)}` has {text!r}, which is no requirement (PEP 508)."
                self.findings.add((*within, *key), problem, 'For example "tensorflow>=2.4".', value=text)
        return texts

    def _python(self, document: Mapping[str, Any]) -> str:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        value = document.get("requires-python", "")
        try:
            # it takes a list too
            SpecifierSet(value if isinstance(value, str) else repr(value))
        except InvalidSpecifier:
            problem = f"`requires-python` is {value!r}, which is no range of versions (PEP 440)."
            self.findings.add(("requires-python",), problem, 'For example ">=3.6".')
            return ""
        return str(value)


def _dotted(key: Key) -> str:
    """A key as the sentences name it: without the number of a list's entry, which the line tells."""
    return ".".join(part for part in key if isinstance(part, str))
