"""Reads scenario headers: the table [tool.harness] in a file's PEP 723 header. No file is imported."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness import toml
from harness.model import settings
from harness.model.scenario import ENVIRONMENT, Claim, ClaimSide, Comparison, Expectation, Need, Pick, Scenario, Sweep
from harness.model.texts import find_nearest
from harness.scenarios import signature
from harness.toml import Key, TomlDocument, format_number_text, is_number

if TYPE_CHECKING:
    from harness.scenarios.models import ClaimTable, ComparisonTable

_ROOT: Key = ("tool", "harness")
#: The default comparison, for a header that has neither comparisons nor claims.
RELEASES = Comparison("release vs release", ENVIRONMENT)
#: Maximum number of combinations of axis values, including excluded combinations.
COMBINATIONS = 100_000

_PHASE = re.compile(r"""\.phase\(\s*(["'])(.+?)\1""")


def parse(text: str, path: Path) -> Scenario:
    """Return the scenario that the text of the file `path` describes. Raises FileError with all problems."""
    from harness.scenarios import models, validation  # noqa: PLC0415 - they import pydantic

    document, table = _read(text, path)
    findings, values = document.findings, _read_axes(table)
    axis_tables, environ_tables = _get_table(table, "axes"), _get_table(table, "env")
    if (count := prod(map(len, values.values()))) > COMBINATIONS:
        findings.add((*_ROOT, "axes"), f"`axes` have {count:,} combinations.", f"At most {COMBINATIONS:,} are allowed.")
        findings.check()  # other checks would take too long
    sweeps = {axis for axis, entry in {**axis_tables, **environ_tables}.items() if isinstance(entry, dict)}
    phases = None if "script" in table else [match[2] for match in _PHASE.finditer(text)]
    context = models.HeaderContext(values, sweeps, phases)
    script = validation.validate(models.ScriptTable, document.values, findings, context=context)
    arguments = {axis: values[axis] for axis in axis_tables}
    requires_python = str(document.values.get("requires-python", ""))
    signature.check(text, arguments, requires_python, findings)
    findings.check()
    assert script is not None
    header = script.tool.harness
    entries, claims = {**header.axes, **header.env}, [_make_claim(claim) for claim in header.claim]
    return Scenario(
        name=path.stem,
        path=path,
        title=header.title or path.stem,
        source=header.source,
        tags=header.tags,
        axes=values,
        requires_python=script.requires_python,
        dependencies=script.dependencies,
        default=header.default,
        environ=list(environ_tables),
        exclude=header.exclude,
        needs=[Need(**dict(need)) for need in header.needs],
        compare=[_make_comparison(comparison) for comparison in header.compare] or ([] if claims else [RELEASES]),
        sweeps={axis: Sweep(entry.unit) for axis, entry in entries.items() if isinstance(entry, models.SweepTable)},
        expect=[Expectation(**dict(expectation)) for expectation in header.expect],
        data_handling=header.profile.data,
        settings=[axis for axis in values if axis not in axis_tables and axis not in environ_tables],
        uses_keras=signature.uses_keras(text),
        claims=claims,
        files=header.files,
        script=header.script,
    )


def read_axes(text: str, path: Path) -> Mapping[str, Sequence[str]]:
    """Return the values of each axis; none if they are invalid. Raises FileError if the text has no header."""
    return _read_axes(_read(text, path)[1])


def find_line(text: str, path: Path, key: Key) -> int:
    """Return the line of a key of `[tool.harness]`, counted from 1. Raises FileError if the text has no header."""
    return toml.read_header(text, path, _ROOT).findings.line((*_ROOT, *key))


def _read(text: str, path: Path) -> tuple[TomlDocument, dict[str, Any]]:
    """Return the header, and its table [tool.harness]. Raises FileError if there is none."""
    document = toml.read_header(text, path, _ROOT)
    tool = document.values.get("tool")
    tables = tool if isinstance(tool, dict) else {}
    for name in tables:
        if name != "harness" and find_nearest(name, ["harness"]):
            problem = f"harness doesn't read the table `tool.{name}`."
            document.findings.add(("tool", name), problem, "Did you mean `tool.harness`?")
    if not isinstance(tables.get("harness"), dict):
        fix = 'Add the line [tool.harness] and the keys of this table below it. Example: title = "One training step"'
        document.findings.add(_ROOT, "The header doesn't contain the table [tool.harness].", fix)
        document.findings.check()
    return document, tables["harness"]


def _read_axes(table: dict[str, Any]) -> dict[str, list[str]]:
    """Return the values of each axis. A setting is an axis if the header has a default, comparison or claim for it."""
    declared = {
        axis: _read_axis_values(entry) for kind in ("axes", "env") for axis, entry in _get_table(table, kind).items()
    }
    default = _get_table(table, "default")
    sides = [_get_table(entry, side) for entry in get_tables(table, "claim") for side in ("worse", "better", "when")]
    requested_axes = [entry.get("along") for entry in get_tables(table, "compare")]
    requested_axes += [axis for side in sides for axis in side]
    return declared | {
        name: list(settings.values(name) if name in default else settings.SETTINGS[name].values)
        for name in settings.SETTINGS
        if name not in declared and (name in default or name in requested_axes)
    }


def _read_axis_values(entry: object) -> list[str]:
    """Return the values of an axis; none if they are invalid."""
    numbers = entry.get("sweep") if isinstance(entry, dict) else None
    if isinstance(numbers, list) and len(numbers) > 1 and all(map(is_number, numbers)):
        entry = [format_number_text(number) for number in numbers]
    is_valid = isinstance(entry, list) and all(isinstance(value, str) for value in entry)
    return cast(list[str], entry) if is_valid else []


def _get_table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table in a table; an empty one if it is missing or invalid."""
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def get_tables(table: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the tables in a list of tables."""
    tables = table.get(name)
    return [entry for entry in tables if isinstance(entry, dict)] if isinstance(tables, list) else []


def _make_comparison(table: "ComparisonTable") -> Comparison:
    pick = [Pick(entry.requires, entry.axes) for entry in table.pick]
    return Comparison(**dict(table) | {"name": table.name or table.along, "pick": pick})


def _make_claim(table: "ClaimTable") -> Claim:
    worse, better = (side and ClaimSide(side.environment, side.axes) for side in (table.worse, table.better))
    ranges = {name: getattr(table, name) and tuple(getattr(table, name)) for name in ("ratio", "seconds", "bytes")}
    return Claim(**dict(table) | ranges | {"worse": worse, "better": better})
