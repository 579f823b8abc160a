"""Reads scenarios/suites.toml."""

import tomllib
from collections.abc import Mapping
from typing import Any

from harness.catalog.project import Project
from harness.model.errors import UsageError
from harness.model.scenario import ENVIRONMENT
from harness.model.suite import Part, Suite


def load_suites(project: Project) -> dict[str, Suite]:
    """Every suite by name. Raises UsageError for a file that is not a list of suites."""
    path = project.scenarios / "suites.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    return {name: _suite(name, table, f"{path}: suite {name}") for name, table in document.items()}


def _suite(name: str, table: Any, where: str) -> Suite:
    if not isinstance(table, dict) or set(table) - {"title", "environments", "select"}:
        raise UsageError(f"{where}: not a table of `title`, `environments` and `select`.")
    environments = table.get("environments", ["*"])
    parts = table.get("select", [])
    if not _texts(environments) or not isinstance(parts, list) or not parts:
        raise UsageError(f"{where}: `environments` is a list of names, `select` a list of at least one table.")
    return Suite(
        name=name,
        title=str(table.get("title", name)),
        environments=environments,
        parts=[_part(part, where) for part in parts],
    )


def _part(table: Any, where: str) -> Part:
    if not isinstance(table, Mapping) or not isinstance(table.get("scenario"), str):
        raise UsageError(f"{where}: each `select` names its `scenario`.")
    axes = {axis: value for axis, value in table.items() if axis != "scenario"}
    for axis, values in axes.items():
        if not _texts(values):
            raise UsageError(f"{where}: `{axis}` is not a list of strings.")
    environments = axes.pop(ENVIRONMENT, ())
    return Part(scenario=table["scenario"], axes=axes, environments=environments)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
