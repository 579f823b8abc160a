"""Generates a scenario that compares two versions of a scenario's file, with an axis for the version."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import toml
from harness.model.errors import UsageError
from harness.model.scenario import BEFORE_AND_AFTER, SIDE, STEP, Scenario
from harness.scenarios import header
from harness.scenarios.catalog import write_cached

#: Keys of a header that describe the scenario itself, rather than its comparisons.
_SHARED_KEYS = ("title", "source", "tags", "axes", "env", "default", "exclude", "profile")


def write_side_by_side(name: str, before: Mapping[str, bytes], after: Mapping[str, bytes], kind: str) -> Path:
    """Write the scenario `NAME_side_by_side` into the folder `kind` of the user's cache, and return its path.

    `before` and `after` are the files of both versions of the scenario `name`, by file name, including `NAME.py`. The
    same files give the same path. The axis `side` (`base`, `head`) selects the version for a launch, and the only
    comparison is along this axis. Other axes have the values that both versions have. Claims, expectations and other
    comparisons are left out.

    Raises FileError for an invalid version, UsageError if the versions have different axes, and CannotRunHereError if
    the cache can't be written.
    """
    sides = dict(zip(BEFORE_AND_AFTER, (before, after), strict=True))
    texts = {side: _decode(files[f"{name}.py"]) for side, files in sides.items()}
    parsed = {side: header.parse(text, Path(side, f"{name}.py")) for side, text in texts.items()}
    documents = {side: toml.read_header(text, Path(side, f"{name}.py")).values for side, text in texts.items()}
    stem = f"{name}_{SIDE}_by_{SIDE}"
    files = {f"{side}/{file}": data for side, contents in sides.items() for file, data in contents.items()}
    text = _format_scenario(name, parsed, _make_header(name, parsed, documents, list(files)))
    return write_cached(kind, files | {f"{stem}.py": text.encode()}) / f"{stem}.py"


def _decode(data: bytes) -> str:
    # as in toml.read_file: invalid UTF-8 is reported as a problem of a line
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _make_header(
    name: str, parsed: Mapping[str, Scenario], documents: Mapping[str, Mapping[str, Any]], files: Sequence[str]
) -> dict[str, Any]:
    """Return the generated scenario's header: the header of the newer version, without its comparisons."""
    old_scenario, new_scenario = parsed.values()
    old_table, new_table = (document["tool"]["harness"] for document in documents.values())
    axes = {table: _share_axes(name, old_table.get(table, {}), new_table.get(table, {})) for table in ("axes", "env")}
    if SIDE in new_scenario.axes:
        raise UsageError(f"{name} already has an axis {SIDE!r}.", "To compare versions, rename this axis.")
    # settings are missing here, because one header can have a setting as an axis that the other doesn't have
    values = {axis: axis_values for table in axes.values() for axis, axis_values in table.items()}
    quantities = dict.fromkeys(
        [STEP, *(entry.of for entry in new_scenario.compare if entry.of in _list_comparisons(old_scenario))]
    )
    base, head = BEFORE_AND_AFTER
    header_table: dict[str, Any] = {
        **{key: new_table[key] for key in _SHARED_KEYS if key in new_table},
        "axes": {**axes["axes"], SIDE: list(BEFORE_AND_AFTER)},
        "env": axes["env"],
        "default": {
            axis: value for axis, value in new_table.get("default", {}).items() if _has_values(values, {axis: value})
        },
        "exclude": [point for point in new_table.get("exclude", []) if _has_values(values, point)],
        "needs": [
            {**need, "when": {**need.get("when", {}), SIDE: side}}
            for side, tables in ((base, old_table), (head, new_table))
            for need in tables.get("needs", [])
            if _has_values(values, need.get("when", {}))
        ],
        "compare": [
            {"name": f"{head} against {base}", "along": SIDE, "plus": head, "against": base, "of": quantity}
            for quantity in quantities
        ],
        "files": list(files),
    }
    pythons = [new_scenario.requires_python, old_scenario.requires_python]
    return {
        "requires-python": ",".join(dict.fromkeys(filter(None, pythons))),
        "dependencies": list(dict.fromkeys([*new_scenario.dependencies, *old_scenario.dependencies])),
        "tool": {"harness": {key: value for key, value in header_table.items() if value not in ({}, [])}},
    }


def _list_comparisons(scenario: Scenario) -> set[str]:
    return {comparison.of for comparison in scenario.compare}


def _share_axes(name: str, old_axes: Mapping[str, Any], new_axes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the axes in a table with the values that both versions have. Raises UsageError if these are too few."""
    advice = "These versions can't be compared in one run. Measure each version in a separate run."
    if old_axes.keys() != new_axes.keys():
        names = ", ".join(sorted(old_axes.keys() ^ new_axes.keys()))
        raise UsageError(f"The two versions of {name} have different axes: only one of them has {names}.", advice)
    shared_axes: dict[str, Any] = {}
    for axis, axis_values in new_axes.items():
        if isinstance(axis_values, dict) != isinstance(old_axes[axis], dict):
            raise UsageError(f"The axis {axis} is a sweep in only one of the two versions of {name}.", advice)
        is_sweep = isinstance(axis_values, dict)
        values = axis_values["sweep"] if is_sweep else axis_values
        other_values = old_axes[axis]["sweep"] if is_sweep else old_axes[axis]
        common = [value for value in values if value in other_values]
        if len(common) < (2 if is_sweep else 1):
            problem = "fewer than two common values of the sweep" if is_sweep else "no common value of the axis"
            raise UsageError(f"The two versions of {name} have {problem} {axis}.", advice)
        shared_axes[axis] = {**axis_values, "sweep": common} if is_sweep else common
    return shared_axes


def _has_values(values: Mapping[str, Any], selection: Mapping[str, Any]) -> bool:
    """Return whether `values` contain all selected values of each axis. An axis that isn't in `values` is skipped."""
    for axis, selected in selection.items():
        axis_values = values.get(axis)
        if axis_values is None:
            continue
        texts = _format_values(axis_values["sweep"] if isinstance(axis_values, dict) else axis_values)
        if not _format_values(selected if isinstance(selected, list) else [selected]) <= texts:
            return False
    return True


def _format_values(values: Sequence[Any]) -> set[str]:
    """Return values as texts, because a header can name a value of a sweep as a number or as a text."""
    return {toml.format_number_text(value) if toml.is_number(value) else value for value in values}


def _format_scenario(name: str, parsed: Mapping[str, Scenario], document: Mapping[str, Any]) -> str:
    new_scenario = parsed[BEFORE_AND_AFTER[1]]
    axes = [axis for axis in new_scenario.axes if axis not in (*new_scenario.environ, *new_scenario.settings)]
    arguments = "".join(f", {axis}={axis}" for axis in axes)
    uses_keras = any(scenario.uses_keras for scenario in parsed.values())
    lines = [
        "# /// script",
        *(f"# {key} = {_format_toml(value)}" for key, value in document.items() if key != "tool"),
        "#",
        "# [tool.harness]",
        *(f"# {key} = {_format_toml(value)}" for key, value in document["tool"]["harness"].items()),
        "# ///",
        f'"""Two versions of the scenario {name}, in a file that `harness matrix --base` generated."""',
        "",
        "import importlib.util",
        "import os",
        "import sys",
        "",
        "from kit import main",
        "",
        # harness looks for the name of Keras in a scenario's file
        *(["keras = None", ""] if uses_keras else []),
        # harness finds phases by these lines, and a comparison may be about one of them
        *(f"# bench.phase({_format_json(comparison['of'])})" for comparison in document["tool"]["harness"]["compare"]),
        "",
        f"def scenario({', '.join(['bench', *axes, SIDE])}):",
        f"    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), {SIDE})",
        "    sys.path.insert(0, folder)",
        f'    spec = importlib.util.spec_from_file_location({name!r}, os.path.join(folder, "{name}.py"))',
        "    module = importlib.util.module_from_spec(spec)",
        f"    sys.modules[{name!r}] = module",
        "    spec.loader.exec_module(module)",
        f"    module.scenario(bench{arguments})",
        "",
        "",
        'if __name__ == "__main__":',
        "    main(scenario)",
        "",
    ]
    return "\n".join(lines)


def _format_toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    match value:
        case dict():
            return (
                "{ "
                + ", ".join(f"{_format_toml(str(key))} = {_format_toml(entry)}" for key, entry in value.items())
                + " }"
            )
        case list():
            return "[" + ", ".join(map(_format_toml, value)) + "]"
        case str():
            return re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", _format_json(value))
        case bool() | int() | float():
            return json.dumps(value)
    raise TypeError(f"a header can't store a {type(value).__name__}")


def _format_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
