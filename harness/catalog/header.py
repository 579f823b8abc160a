"""Reads and checks a scenario's header, and that its function takes what the header gives it. Nothing is imported."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from harness.catalog import claims, signature, toml
from harness.catalog.toml import Key, Table, choices, is_json, is_number, number_text
from harness.model import settings
from harness.model.environment import Device
from harness.model.scenario import (
    ENVIRONMENT,
    GROWTH,
    PEAK,
    STEP,
    TRACES,
    Comparison,
    Expectation,
    Need,
    Pick,
    Scenario,
    Sweep,
)
from harness.model.texts import nearest

_ROOT: Key = ("tool", "harness")
_KEYS = (
    *("title", "source", "tags", "axes", "env", "default", "exclude", "needs", "compare", "claim", "expect", "profile"),
    *("files", "script"),
)
#: What a header that names neither a comparison nor a claim asks.
RELEASES = Comparison("release vs release", ENVIRONMENT)
_RESERVED = ("bench", "device", ENVIRONMENT, "scenario")
#: How many combinations the values of all axes have at most, those that `exclude` names among them.
COMBINATIONS = 100_000
#: How long a value of an axis is at most, in characters: it stands in tables and on command lines.
VALUE_LENGTH = 200

#: What an axis's name in each of the tables has to match, and that in words.
_AXIS_NAMES = {
    "axes": (
        rf"(?!({'|'.join(_RESERVED)})$)[a-z][a-z0-9_]*",
        f"Use lower-case letters, digits and `_`, beginning with a letter; not {', '.join(_RESERVED)}.",
    ),
    "env": (r"[A-Z][A-Z0-9_]*", "Use upper-case letters, digits and `_`, beginning with a letter."),
}

#: The phases that launches have without a line in the scenario's file, and how a file names its own.
_PHASES = ("container start", "interpreter start", "device", "first fill", "warm up", "steady state")
_PHASE = re.compile(r"""\.phase\(\s*(["'])(.+?)\1""")


def parse(text: str, path: Path) -> Scenario:
    """The scenario that the text of the file `path` describes. Raises FileError, which has all that is wrong."""
    header = _Header(text, path)
    scenario = header.scenario(path)
    signature.check(text, scenario, header.findings)
    header.findings.check()
    return replace(scenario, uses_keras=signature.uses_keras(text))


def axes(text: str, path: Path) -> Mapping[str, Sequence[str]]:
    """The axes alone, as far as they are right, for what has to be quick. Raises FileError without a header."""
    return _Header(text, path).axes


def line(text: str, path: Path, key: Key) -> int:
    """The line of a key of `[tool.harness]`, counted from 1. Raises FileError without a header."""
    return toml.read_header(text, path, _ROOT).findings.line((*_ROOT, *key))


class _Header:
    """The header of one file. Every method reads a part of it, as far as it can be read, and notes what is wrong."""

    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.document = toml.read_header(text, path, _ROOT)
        self.findings = self.document.findings
        self.table = self._tool_harness()
        self.sweeps: dict[str, Sweep] = {}
        #: Every axis with its values; without one where these cannot be read.
        self.environ = self._axes("env")
        own = self._axes("axes") | self.environ
        self.settings = self._settings(own)
        self.axes = own | self.settings

    def scenario(self, path: Path) -> Scenario:
        """What the header says."""
        table = self.table
        table.check_keys(_KEYS)
        profile = table.table("profile", 'Write [tool.harness.profile], and data = ["*.cast"] below it.')
        profile.check_keys(["data"])
        self._check_size()
        default = self._point(table, "default")
        exclude = [self._axis_values(entry) for entry in table.tables("exclude")]
        known = claims.Known(self.axes, default, self.sweeps, exclude, self._axis_values, self._quantity, _devices)
        compare = [self._comparison(entry) for entry in table.tables("compare")]
        claimed = [claims.read(entry, known) for entry in table.tables("claim")]
        return Scenario(
            name=path.stem,
            path=path,
            title=table.text("title") or path.stem,
            source=table.text("source"),
            tags=table.texts("tags"),
            axes=self.axes,
            requires_python=self._python(),
            dependencies=_requirements(self.document, "dependencies"),
            default=default,
            environ=list(self.environ),
            exclude=exclude,
            needs=[self._need(entry) for entry in table.tables("needs")],
            compare=compare or ([] if claimed else [RELEASES]),
            sweeps=self.sweeps,
            expect=[self._expectation(entry) for entry in table.tables("expect")],
            data_handling=profile.texts("data"),
            settings=list(self.settings),
            claims=claimed,
            files=table.texts("files"),
            script=table.text("script"),
        )

    def _check_size(self) -> None:
        count = prod(map(len, self.axes.values()))
        if count > COMBINATIONS:
            self.table.wrong("axes", f"have {count:,} combinations.", f"Write at most {COMBINATIONS:,}.")
            self.findings.check()  # what else is read would go through them

    def _tool_harness(self) -> Table:
        tool = self.document.values.get("tool")
        tables = tool if isinstance(tool, dict) else {}
        for name in tables:
            if name != "harness" and nearest(name, ["harness"]):
                fix = "Did you mean `tool.harness`?"
                self.findings.add(("tool", name), f"The harness does not read `tool.{name}`.", fix)
        if not isinstance(tables.get("harness"), dict):
            fix = 'Write [tool.harness], and below it for example title = "One training step".'
            self.findings.add(_ROOT, "The header has no table [tool.harness].", fix)
            self.findings.check()
        return Table(tables["harness"], self.findings, _ROOT)

    def _axes(self, kind: str) -> dict[str, list[str]]:
        """Axis to its values, of the table `kind`."""
        pattern, rule = _AXIS_NAMES[kind]
        table = self.table.table(kind, f"Write [tool.harness.{kind}], and each axis with its values below it.")
        found: dict[str, list[str]] = {}
        for axis, values in table.values.items():
            found[axis] = []
            if not re.fullmatch(pattern, axis):
                table.wrong(axis, "is not a valid name for an axis.", rule)
            elif isinstance(values, dict):
                found[axis] = self._sweep(axis, table.table(axis, ""))
            else:
                found[axis] = _axis(axis, table)
        return found

    def _settings(self, own: Collection[str]) -> dict[str, list[str]]:
        """The settings that the header gives a default, compares along or has claims of: axes like the others."""
        default = self.table.values.get("default")
        given = list(default) if isinstance(default, dict) else []
        compare, claimed = (_entries(self.table.values.get(name)) for name in ("compare", "claim"))
        sides = [entry.get(name) for entry in claimed for name in ("worse", "better", "when")]
        along = [entry.get("along") for entry in compare]
        along += [axis for side in sides if isinstance(side, dict) for axis in side]
        return {
            name: list(settings.values(name) if name in given else settings.SETTINGS[name].values)
            for name in settings.SETTINGS
            if name not in own and name in [*given, *along]
        }

    def _sweep(self, axis: str, table: Table) -> list[str]:
        """The values of a numeric axis, as texts."""
        self.sweeps[axis] = Sweep(unit=table.text("unit"))
        table.check_keys(["sweep", "unit"])
        numbers = table.values.get("sweep")
        if not isinstance(numbers, list) or len(numbers) < 2 or not all(map(is_number, numbers)):
            fix = f"For example: {axis} = {{ sweep = [1, 32, 1024] }}."
            table.wrong("sweep", "must be a list of two or more finite numbers.", fix)
            return []
        if not table.is_short("sweep", numbers):
            return []
        for below, above in pairwise(numbers):
            if below >= above:
                fix = "Write the numbers in increasing order, each once."
                table.wrong("sweep", f"has {above} after {below}.", fix, value=above)
        return [number_text(number) for number in numbers]

    def _need(self, entry: Table) -> Need:
        entry.check_keys(_names(Need))
        return Need(
            requires=_requirements(entry, "requires"),
            when=self._point(entry, "when"),
            reason=entry.text("reason"),
            advice=entry.text("advice"),
            devices=_devices(entry),
        )

    def _comparison(self, entry: Table) -> Comparison:
        entry.check_keys(_names(Comparison))
        along, plus, against = entry.text("along"), entry.text("plus"), entry.text("against")
        if along == ENVIRONMENT:
            for name in ("plus", "against"):
                if name in entry.values:
                    fix = "Remove it: each environment is compared with the run's reference."
                    entry.wrong(name, f'has no meaning with along = "{ENVIRONMENT}".', fix)
        elif along in self.sweeps:
            fix = "Name another axis: it is compared at each value of the sweep."
            entry.wrong("along", f"is {along!r}, which is a sweep.", fix)
        elif along not in self.axes:
            fix = choices(along, [ENVIRONMENT, *self.axes], "possible values")
            entry.wrong("along", f"is {along!r}; it must be `{ENVIRONMENT}` or an axis.", fix)
        else:
            # without `against`, `plus` is compared with every other value
            for name, value in [("plus", plus), *([("against", against)] if against else [])]:
                if self.axes[along] and value not in self.axes[along]:
                    problem = f"{f'is {value!r}' if value else 'is missing'}; it must be a value of {along}."
                    entry.wrong(name, problem, choices(value, self.axes[along], "values"))
        percent = entry.values.get("percent", False)
        if not isinstance(percent, bool):
            fix = "Write true if the source gives its result in percent: the report then has such a column."
            entry.wrong("percent", f"is {percent!r}; it must be true or false.", fix)
        return Comparison(
            name=entry.text("name") or along,
            along=along,
            plus=plus,
            against=against,
            pick=[self._pick(pick) for pick in entry.tables("pick")],
            percent=percent is True,
            of=self._quantity(entry),
        )

    def _quantity(self, entry: Table) -> str:
        """What an entry is about: the step, another quantity, or a phase, which a helper of the file may name too."""
        of = entry.text("of") or STEP
        named = [STEP, PEAK, GROWTH, TRACES, *(found[2] for found in _PHASE.finditer(self.text)), *_PHASES]
        # those of a plain script are the kit's
        if of not in named and nearest(of, named) and "script" not in self.table.values:
            problem = f"is {of!r}, which is no quantity, and no phase of the file."
            entry.wrong("of", problem, choices(of, dict.fromkeys(named), "possible values"), value=of)
        return of

    def _pick(self, entry: Table) -> Pick:
        for axis in entry.values:
            if axis in self.sweeps:
                entry.wrong(axis, "is a sweep.", "Remove it: environments are compared at each value of the sweep.")
        return Pick(requires=_requirements(entry, "requires"), axes=self._axis_values(entry, besides="requires"))

    def _expectation(self, entry: Table) -> Expectation:
        entry.check_keys(_names(Expectation))
        observation, value = entry.text("observation"), entry.values.get("value")
        if not observation:
            entry.wrong("observation", "is missing.", "Write the name that the scenario passes to bench.observe().")
        if value is None or not is_json(value):
            fix = "Write what the source states: a string, a finite number, true, false, or a list or table of these."
            entry.wrong("value", "is missing." if value is None else "has a value that JSON does not have.", fix)
        return Expectation(
            observation=observation,
            value=value,
            when=self._point(entry, "when"),
            requires=_requirements(entry, "requires"),
        )

    def _point(self, entry: Table, name: str) -> dict[str, str]:
        """Axis to one of its values, of the table `name` in `entry`."""
        return self._axis_values(entry.table(name, f'For example: {name} = {{ mode = "graph" }}.'))

    def _axis_values(self, table: Table, besides: str = "") -> dict[str, str]:
        """Axis to one of its values, of a table with axes only, and one key `besides`; a sweep's may be numbers."""
        point = {}
        for axis, value in table.values.items():
            text = number_text(value) if axis in self.sweeps and is_number(value) else value
            if axis == besides:
                continue
            if axis not in self.axes:
                table.wrong(axis, "is not an axis.", choices(axis, self.axes, "axes"))
            elif self.axes[axis] and text not in self.axes[axis]:
                fix = choices(str(text), self.axes[axis], "values")
                table.wrong(axis, f"is {value!r}, which is not a value of the axis.", fix, value=value)
            else:
                point[axis] = text
        return point

    def _python(self) -> str:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        value = self.document.values.get("requires-python", "")
        try:
            # it takes a list too
            SpecifierSet(value if isinstance(value, str) else repr(value))
        except InvalidSpecifier:
            problem = f"is {value!r}, which is not a range of versions (PEP 440)."
            self.document.wrong("requires-python", problem, 'For example: ">=3.6".')
            return ""
        return str(value)


def _axis(axis: str, table: Table) -> list[str]:
    """The values of an axis that is no sweep."""
    given = table.values[axis]
    if given == []:
        table.wrong(axis, "has no value.", f'For example: {axis} = ["one", "other"].')
    elif isinstance(given, list) and all(map(is_number, given)):
        fix = f"Put each in quotes, or write {axis} = {{ sweep = {given} }}."
        table.wrong(axis, "must be a list of strings.", fix)
        return []
    values = table.texts(axis)
    for value, times in Counter(values).items():
        if len(value) > VALUE_LENGTH:
            table.wrong(axis, f"has a value of {len(value):,} characters.", f"Write at most {VALUE_LENGTH}.")
        if times > 1:
            table.wrong(axis, f"has {value!r} twice.", "Remove one of them.", value=value)
    return values


def _devices(entry: Table, name: str = "devices") -> list[Device]:
    """The devices that a need, or a claim, names; each once where they are right."""
    known = [device.value for device in Device]
    texts = entry.texts(name)
    for text in texts:
        if text not in known:
            entry.wrong(name, f"has {text!r}, which is no device.", choices(text, known, "devices"), value=text)
    if entry.values.get(name) == []:
        entry.wrong(name, "names no device.", f'For example: {name} = ["cpu"].')
    return [Device(text) for text in dict.fromkeys(texts) if text in known]


def _entries(value: object) -> list[dict[str, Any]]:
    """The tables of a list of tables, as far as it is one."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _requirements(table: Table, name: str) -> list[str]:
    from packaging.requirements import InvalidRequirement, Requirement

    texts = table.texts(name)
    for text in texts:
        try:
            Requirement(text)
        except InvalidRequirement:
            problem = f"has {text!r}, which is not a requirement (PEP 508)."
            table.wrong(name, problem, 'For example: "tensorflow>=2.4".', value=text)
    return texts


def _names(kind: type[Need | Comparison | Expectation]) -> list[str]:
    return [field.name for field in fields(kind)]
