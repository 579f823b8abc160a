"""report.md: right on GitHub, readable as it is in a terminal."""

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import escape, facts
from harness.report.attribution import AttributionView
from harness.report.cells import Cells
from harness.report.charts.picture import Picture
from harness.report.charts.pictures import pictures
from harness.report.comparisons import REMARKS, Comparisons
from harness.report.course import Resolution
from harness.report.document import Document, build
from harness.report.grid import Grid
from harness.report.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

#: Cells wider than this are not padded for: one long reason would push every line of its table apart.
PADDED = 64


@dataclass(frozen=True, slots=True)
class Report:
    """report.md, and the pictures that it shows."""

    text: str
    pictures: Sequence[Picture]


def render(run: Run, launches: Sequence[Launch], templates: Path | None = None) -> str:
    """The Markdown report of a run, without its pictures."""
    return report(run, launches, templates).text


def report(run: Run, launches: Sequence[Launch], templates: Path | None = None) -> Report:
    """The report of a run. `templates` is the folder of the templates, the project's own by default."""
    import shlex

    document = build(run, launches)
    drawn = pictures(document)
    packages, versions = facts.other_packages(run)
    jinja = _environment(templates)
    text = jinja.get_template("report.md.j2").render(
        document=document,
        pictures=drawn,
        host=facts.pairs(run.host),
        backend=facts.pairs(run.backend),
        environments=[list(entry.values()) for entry in facts.environments(run)],
        packages=packages,
        versions=versions,
        typed=shlex.join(run.command),
        report_command=shlex.join(["harness", "report", document.folder]),
    )
    return Report(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", drawn)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """A Markdown table of escaped cells, padded so that its columns align; those whose indices are `right`, there."""
    widths = [
        max(3, _width(heading), *(width for row in rows if (width := _width(row[index])) <= PADDED), 0)
        for index, heading in enumerate(headings)
    ]
    aligned = [index in right for index in range(len(headings))]
    rule = [
        "-" * (width - 1) + ":" if to_right else "-" * width for width, to_right in zip(widths, aligned, strict=True)
    ]
    return "\n".join(_line(row, widths, aligned) for row in [headings, rule, *rows])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if to_right else cell + space)
    return f"| {' | '.join(padded)} |"


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in {"W", "F"} for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _environment(folder: Path | None) -> "Environment":
    from markupsafe import Markup

    def safe(function: Callable[..., str]) -> Callable[..., Markup]:
        return lambda *arguments: Markup(function(*arguments))

    jinja = environment(escape.markdown, folder)
    jinja.filters["fenced"] = safe(escape.fenced)
    jinja.filters["html"] = safe(escape.html)
    jinja.filters["link"] = safe(lambda address, title: escape.link(title, address))
    jinja.globals["table"] = safe(lambda headings, rows: table(_escaped(headings), [_escaped(row) for row in rows]))
    jinja.globals["grid"] = safe(_grid)
    jinja.globals["comparisons"] = safe(_comparisons)
    jinja.globals["effects"] = safe(_effects)
    jinja.globals["shapes"] = safe(_shapes)
    jinja.globals["absences"] = safe(_absences)
    jinja.globals["picture"] = safe(_picture)
    return jinja


def _escaped(cells: Sequence[str]) -> list[str]:
    return [escape.markdown(cell) for cell in cells]


def _grid(grid: Grid) -> str:
    rows = [_escaped([*labels, *values]) for labels, values in grid.rows]
    first, last = len(grid.labels), len(grid.labels) + len(grid.headings)
    return table(_escaped([*grid.labels, *grid.headings]), rows, right=range(first, last))


# The sentences in the cells of the next four are macros of the template that `say` is, escaped there.


def _comparisons(view: Comparisons, say: Any, resolution: Resolution | None) -> str:
    rows = [[*_escaped(line.cells), str(say.remarks(line.compared, resolution))] for line in view.lines]
    headings = [*_escaped(view.headings), REMARKS]
    return table(*_without_empty(headings, rows), right=[len(view.labels) + 1])


def _effects(view: AttributionView, say: Any, resolution: Resolution | None) -> str:
    rows = [
        [
            str(say.effect(line)),
            *_escaped([line.factor, line.interval, line.verdict or ""]),
            str(say.effect_remarks(line, resolution)),
        ]
        for line in view.lines
    ]
    headings = ["change", "factor", "interval", "verdict", REMARKS]
    return table(*_without_empty(headings, rows), right=[1, 2])


def _shapes(cells: Cells, say: Any) -> str:
    rows = [
        [*_escaped([*names, *values]), str(say.shape_remarks(shape))]
        for (names, values), shape in zip(cells.shape.rows, cells.shapes, strict=True)
    ]
    headings = _escaped([*cells.shape.labels, *cells.shape.headings])
    return table(*_without_empty([*headings, REMARKS], rows), right=range(1, len(headings)))


def _picture(drawn: Sequence[Picture], scenario: Scenario, kind: str) -> str:
    """The scenario's picture of that kind, by what it says; empty where there is none."""
    found = (each for each in drawn if (each.scenario, each.kind) == (scenario.name, kind))
    return "".join(f"![{escape.markdown(each.words.alt)}]({each.file})" for each in found)


def _without_empty(headings: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Without the last column where it says nothing."""
    if any(row[-1] for row in rows):
        return headings, rows
    return headings[:-1], [row[:-1] for row in rows]


def _absences(document: Document, say: Any) -> str:
    rows = [
        [
            escape.markdown(absence.cause.status.value),
            str(say.cells(absence)),
            str(say.reason(absence)),
            str(say.advice(absence, document.folder)),
        ]
        for absence in document.absences
    ]
    return table(["status", "cells", "why", "what to do"], rows)
