"""A run's free-form facts as pairs of label and text; keys that nobody foresaw are shown by their names."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.analysis.columns import pins
from harness.model.requirements import TENSORFLOW, installed
from harness.model.run import Run
from harness.report.format import bytes_

#: The packages that stand in the report's table of environments; the others are folded away.
LEADING = ("tensorflow", "keras", "numpy")

#: More environments than this do not stand side by side.
ENVIRONMENTS = 6


def pairs(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of every fact that says something: `memory_bytes` becomes `memory`, in a unit."""
    told = [(_label(key), _text(key, value)) for key, value in facts.items()]
    return [(name, text) for name, text in told if text]


def environments(run: Run) -> list[dict[str, str]]:
    """For each environment its name, its versions of the leading packages and of Python, and what ran."""
    return [
        {
            "name": environment.name,
            **{name: installed(name, pins(run, environment.name)) or "" for name in LEADING},
            "python": environment.python,
            "image": _short(run.images.get(environment.name, "")),
        }
        for environment in run.environments
    ]


def other_packages(run: Run) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the packages that do not lead: a row a package, or, of many environments, a row each."""
    known = {environment.name: run.pins.get(environment.name, {}) for environment in run.environments}
    names = sorted({name for packages in known.values() for name in packages} - {*LEADING, *TENSORFLOW})
    if len(known) <= ENVIRONMENTS:
        rows = [[name, *(packages.get(name, "") for packages in known.values())] for name in names]
        return ["package", *known], rows
    lists = {
        environment: ", ".join(f"{name} {packages[name]}" for name in names if name in packages)
        for environment, packages in known.items()
    }
    return ["environment", "packages"], [[environment, text] for environment, text in lists.items() if text]


def cpus(numbers: Iterable[int]) -> str:
    """CPU numbers with runs joined: `0-3, 8`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(str(end) for end in span) for span in spans)


def _label(key: str) -> str:
    words = key.removesuffix("_bytes").replace("_", " ")
    return {"cpu": "CPU", "gpus": "GPUs", "gpu telemetry": "GPU telemetry"}.get(words, words)


def _text(key: str, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if key.endswith("_bytes") and isinstance(value, int | float):
        return bytes_(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(str(item) for item in value)
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return "; ".join(", ".join(f"{label} {text}" for label, text in pairs(item)) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(digest: str) -> str:
    """Twelve digits of a hash, as engines show it."""
    algorithm, colon, digits = digest.rpartition(":")
    return f"{algorithm}{colon}{digits[:12]}"
