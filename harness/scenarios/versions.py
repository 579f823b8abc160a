"""Generates a scenario that compares two versions of a scenario's file, with an axis for the version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import toml
from harness.model.errors import UsageError
from harness.model.scenario import BEFORE_AND_AFTER, SIDE, STEP, Axes, Scenario
from harness.scenarios import header
from harness.scenarios.catalog import write_cached


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
    parsed = {}
    for side, files in sides.items():
        # as in toml.read_file: invalid UTF-8 is reported as a problem of a line
        text = files[f"{name}.py"].decode("utf-8-sig", "replace").replace("\r\n", "\n")
        parsed[side] = header.parse(text, Path(side, f"{name}.py"))
    stem = f"{name}_{SIDE}_by_{SIDE}"
    files = {f"{side}/{file}": data for side, contents in sides.items() for file, data in contents.items()}
    text = _format_scenario(name, parsed, _make_header(name, parsed, list(files)))
    return write_cached(kind, files | {f"{stem}.py": text.encode()}) / f"{stem}.py"


def _make_header(name: str, parsed: Mapping[str, Scenario], files: Sequence[str]) -> dict[str, Any]:
    """Return the generated scenario's header: the header of the newer version, without its comparisons."""
    old, new = parsed.values()
    if SIDE in new.axes:
        raise UsageError(f"{name} already has an axis {SIDE!r}.", "To compare versions, rename this axis.")
    axes = _share_axes(name, old, new)

    def is_shared(point: Axes) -> bool:
        # a setting is an axis of the generated scenario only if it has a default
        return all(value in axes[axis] if axis in axes else axis in new.default for axis, value in point.items())

    tables: dict[str, Any] = dict(axes)
    for axis, sweep in new.sweeps.items():
        tables[axis] = {"sweep": [float(value) for value in axes[axis]], "unit": sweep.unit}
    base, head = BEFORE_AND_AFTER
    quantities = {STEP, *(entry.of for entry in old.compare)}
    header_table: dict[str, Any] = {
        "title": new.title,
        "source": new.source,
        "tags": list(new.tags),
        "axes": {axis: table for axis, table in tables.items() if axis not in new.environ}
        | {SIDE: list(BEFORE_AND_AFTER)},
        "env": {axis: table for axis, table in tables.items() if axis in new.environ},
        "default": {axis: value for axis, value in new.default.items() if is_shared({axis: value})},
        "exclude": [dict(point) for point in new.exclude if is_shared(point)],
        "needs": [
            {key: value for key, value in asdict(need).items() if value} | {"when": {**need.when, SIDE: side}}
            for side, scenario in parsed.items()
            for need in scenario.needs
            if is_shared(need.when)
        ],
        "compare": [
            {"name": f"{head} against {base}", "along": SIDE, "plus": head, "against": base, "of": quantity}
            for quantity in dict.fromkeys([STEP, *(entry.of for entry in new.compare if entry.of in quantities)])
        ],
        "profile": {"data": list(new.data_handling)},
        "files": list(files),
    }
    pythons = [new.requires_python, old.requires_python]
    return {
        "requires-python": ",".join(dict.fromkeys(filter(None, pythons))),
        "dependencies": list(dict.fromkeys([*new.dependencies, *old.dependencies])),
        "tool": {"harness": {key: value for key, value in header_table.items() if value not in ("", {}, [])}},
    }


def _share_axes(name: str, old: Scenario, new: Scenario) -> dict[str, list[str]]:
    """Return the declared axes with the values that both versions have. Raises UsageError if these are too few.

    Settings aren't declared: one header can have a setting as an axis that the other doesn't have.
    """
    advice = "These versions can't be compared in one run. Measure each version in a separate run."
    old_axes, new_axes = (
        {axis: values for axis, values in scenario.axes.items() if axis not in scenario.settings}
        for scenario in (old, new)
    )
    if old_axes.keys() != new_axes.keys():
        names = ", ".join(sorted(old_axes.keys() ^ new_axes.keys()))
        raise UsageError(f"The two versions of {name} have different axes: only one of them has {names}.", advice)
    shared_axes = {axis: [value for value in new_axes[axis] if value in old_axes[axis]] for axis in new_axes}
    for axis, common in shared_axes.items():
        is_sweep = axis in new.sweeps
        if is_sweep != (axis in old.sweeps):
            raise UsageError(f"The axis {axis} is a sweep in only one of the two versions of {name}.", advice)
        if len(common) < (2 if is_sweep else 1):
            problem = "fewer than two common values of the sweep" if is_sweep else "no common value of the axis"
            raise UsageError(f"The two versions of {name} have {problem} {axis}.", advice)
    return shared_axes


def _format_scenario(name: str, parsed: Mapping[str, Scenario], document: Mapping[str, Any]) -> str:
    new_scenario = parsed[BEFORE_AND_AFTER[1]]
    axes = [axis for axis in new_scenario.axes if axis not in (*new_scenario.environ, *new_scenario.settings)]
    arguments = "".join(f", {axis}={axis}" for axis in axes)
    uses_keras = any(scenario.uses_keras for scenario in parsed.values())
    lines = [
        "# /// script",
        *(f"# {key} = {toml.format_value(value)}" for key, value in document.items() if key != "tool"),
        "#",
        "# [tool.harness]",
        *(f"# {key} = {toml.format_value(value)}" for key, value in document["tool"]["harness"].items()),
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
        *(
            f"# bench.phase({json.dumps(comparison['of'], ensure_ascii=False)})"
            for comparison in document["tool"]["harness"]["compare"]
        ),
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
