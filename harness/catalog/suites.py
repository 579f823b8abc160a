"""Reads scenarios/suites.toml."""

from typing import Any

from harness.catalog import toml
from harness.catalog.project import Project
from harness.catalog.toml import Findings, Key, is_number, number_text
from harness.model.scenario import ENVIRONMENT, Suite, SuitePart

_KEYS = ("title", "environments", "rounds", "budget", "warmup", "measure", "select")
_SELECT = "Write [[{}.select]] with its `scenario`, and below it the values of its axes."


def load_suites(project: Project) -> dict[str, Suite]:
    """Every suite by name. Raises FileError, which has all that is wrong with the file."""
    suites, findings = read_suites(project)
    findings.check()
    return suites


def read_suites(project: Project) -> tuple[dict[str, Suite], Findings]:
    """Every suite by name as far as it can be read, and what is wrong. Raises FileError for what is no TOML."""
    path = project.scenarios / "suites.toml"
    read = toml.read(toml.read_file(path) if path.exists() else "", path)
    findings = Findings(path, read.places)
    return {name: _suite(name, table, findings) for name, table in read.table.items()}, findings


def _suite(name: str, table: Any, findings: Findings) -> Suite:
    if not isinstance(table, dict):
        findings.add((name,), f"`{name}` is no suite.", f"Write [{name}].")
        return Suite(name=name, title=name, environments=[], parts=[])
    findings.unknown_keys((name,), table, _KEYS, name)
    rounds, selected = table.get("rounds"), table.get("select", [])
    if rounds is not None and (not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1):
        findings.add((name, "rounds"), f"`{name}.rounds` is not a whole number above 0.", "For example rounds = 3.")
        rounds = None
    if not isinstance(selected, list) or not selected:
        findings.add((name, "select"), f"The suite {name} selects nothing.", _SELECT.format(name))
        selected = []
    return Suite(
        name=name,
        title=_text((name, "title"), table, findings) or name,
        environments=_texts((name, "environments"), table.get("environments", ["*"]), findings),
        parts=[_part((name, "select", number), part, findings) for number, part in enumerate(selected)],
        rounds=rounds,
        budget=_text((name, "budget"), table, findings),
        warmup=_text((name, "warmup"), table, findings),
        measure=_text((name, "measure"), table, findings),
    )


def _part(key: Key, table: Any, findings: Findings) -> SuitePart:
    if not isinstance(table, dict) or not isinstance(table.get("scenario"), str):
        findings.add((*key, "scenario"), f"A part of the suite {key[0]} names no `scenario`.", _SELECT.format(key[0]))
        return SuitePart(scenario="", axes={})
    axes = {axis: _texts((*key, axis), value, findings) for axis, value in table.items() if axis != "scenario"}
    environments = axes.pop(ENVIRONMENT, ())
    return SuitePart(scenario=table["scenario"], axes=axes, environments=environments)


def _text(key: Key, table: dict[str, Any], findings: Findings) -> str:
    value = table.get(str(key[-1]), "")
    if isinstance(value, str):
        return value
    findings.add(key, f"`{key[-1]}` is not a text.", f'Put it in quotes: {key[-1]} = "{value}".')
    return ""


def _texts(key: Key, value: Any, findings: Findings) -> list[str]:
    """A list of at least one text; a number of a sweep counts as the text that cells have for it."""
    texts = [number_text(item) if is_number(item) else item for item in value] if isinstance(value, list) else []
    if texts and all(isinstance(text, str) for text in texts):
        return texts
    findings.add(key, f"`{key[-1]}` is not a list of texts.", f'For example {key[-1]} = ["one", "other"].')
    return []
