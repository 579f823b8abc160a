"""What every chart is made of: its words, its specification, and the name of its file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

#: Longer names of scenarios are cut in a file's name.
NAME_CHARACTERS = 60


class Kind(StrEnum):
    """What a chart shows of a table."""

    RATIOS = "ratios"
    TIMES = "times"
    SWEEPS = "sweeps"
    EFFECTS = "effects"
    PHASES = "phases"
    COURSE = "course"


@dataclass(frozen=True, slots=True)
class Words:
    """What is written around a chart's marks, in plain text: title, notes below it, title of its axis.

    `alt` says the content to somebody who does not see it.
    """

    title: str
    notes: Sequence[str]
    axis: str
    alt: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart of one scenario. `name` is its file's without the ending, `specification` is Vega-Lite.

    `device` is the one that its chart is of, where the scenario has a chart of that kind for each of several.
    """

    kind: Kind
    scenario: str
    name: str
    words: Words
    specification: Mapping[str, Any]
    device: str = ""

    @property
    def file(self) -> str:
        """Where it lies, as seen from report.md."""
        return f"charts/{self.name}.svg"


def file_names(scenarios: Iterable[str]) -> dict[str, str]:
    """For each scenario what stands for it in names of files: letters, digits, `-` and `_`, each different."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for scenario in dict.fromkeys(scenarios):
        plain = re.sub(r"[^A-Za-z0-9_]+", "-", scenario)[:NAME_CHARACTERS].strip("-") or "scenario"
        name, number = plain, 1
        # file systems that do not tell upper from lower case hold both
        while name.lower() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.lower())
        found[scenario] = name
    return found
