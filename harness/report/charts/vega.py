"""A chart: its texts and its specification."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from harness.analysis.tables import ScenarioTable
from harness.model.launch import Clock
from harness.model.scenario import STEP
from harness.report.charts.drawing import drawer

#: The largest number of characters of a scenario's name in a file name.
NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Words:
    """The plain text around a chart: title, notes below it, and axis title. A chart below a sentence has no title.

    `alt` describes the content to somebody who can't see the chart.
    """

    title: str
    notes: Sequence[str]
    axis: str
    alt: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart of one scenario. `name` is its file name without the ending, and `specification` is Vega-Lite.

    `measure` is the name of the quantity in its fields `time` and `ratio`, such as `CPU time` or `peak memory`.
    """

    name: str
    words: Words
    specification: Mapping[str, Any]
    measure: str = Clock.WALL.time

    @property
    def file(self) -> str:
        """The path of the file relative to report.md."""
        return f"charts/{self.name}.svg"

    @property
    def dark_file(self) -> str:
        """The path of the file for dark pages."""
        return f"charts/{self.name}-dark.svg"

    def svg(self) -> str:
        """Return the chart as an SVG document with selectable text, and a title and description for screen readers.

        Raises DrawingError.
        """
        head, tag, body = drawer().svg(self.specification).partition(">")
        title, alt = escape(self.words.title or self.words.axis), escape(self.words.alt)
        return f'{head} role="img"{tag}<title>{title}</title><desc>{alt}</desc>{body}\n'


def make_file_name(kind: str, table: ScenarioTable) -> str:
    """Return the name of a table's chart in files, without its ending: `ratios-keras_step`, `times-step-peak-memory`.

    It consists of letters, digits, `-` and `_`. Other charts of a report can have the same name until
    `blocks.number_pictures` numbers them.
    """
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", table.scenario.name)[:NAME_CHARACTERS].strip("-") or "scenario"
    words = [] if table.quantity == STEP else re.findall(r"[A-Za-z0-9]+", table.quantity) or ["other"]
    return "-".join([kind, stem, *words])


def number_names(names: Iterable[str], form: str, key: Callable[[str], str] = str) -> list[str]:
    """Return the names. A name whose key is already used gets a number, in the form `form`, such as `{} ({})`."""
    by_key: dict[str, str] = {}
    for name in names:
        candidate, number = name, 1
        while key(candidate) in by_key:
            number += 1
            candidate = form.format(name, number)
        by_key[key(candidate)] = candidate
    return list(by_key.values())
