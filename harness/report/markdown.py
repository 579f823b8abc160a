"""report.md: right on GitHub, readable as it is in a terminal."""

import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.report import escape
from harness.report.attribution import AttributionView
from harness.report.cells import Cells
from harness.report.charts.picture import Picture
from harness.report.charts.pictures import pictures
from harness.report.comparisons import REMARKS, Comparisons
from harness.report.course import Resolution
from harness.report.differences import Differences, Text
from harness.report.document import Document, build
from harness.report.facts import Machine
from harness.report.grid import Grid, without_empty
from harness.report.observed import Told
from harness.report.sweeps import SweepView
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
    document = build(run, launches)
    drawn = pictures(document)
    return Report(lay_out(document, drawn, templates), drawn)


def lay_out(document: Document, drawn: Sequence[Picture], templates: Path | None = None) -> str:
    """The text of report.md, which shows the pictures `drawn` of the document."""
    jinja = _environment(templates)
    text = jinja.get_template("report.md.j2").render(
        document=document,
        pictures=drawn,
        report_command=shlex.join(["harness", "report", document.folder]),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


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
    jinja.globals["facts"] = safe(_facts)
    jinja.globals["differences"] = safe(_differences)
    jinja.globals["changes"] = safe(_changes)
    jinja.globals["grid"] = safe(_grid)
    jinja.globals["comparisons"] = safe(_comparisons)
    jinja.globals["effects"] = safe(_effects)
    jinja.globals["shapes"] = safe(_shapes)
    jinja.globals["absences"] = safe(_absences)
    jinja.globals["told"] = safe(_told)
    jinja.globals["races"] = safe(_races)
    jinja.globals["picture"] = safe(_picture)
    return jinja


def _escaped(cells: Sequence[str]) -> list[str]:
    return [escape.markdown(cell) for cell in cells]


def _grid(grid: Grid) -> str:
    rows = [_escaped([*labels, *values]) for labels, values in grid.rows]
    first, last = len(grid.labels), len(grid.labels) + len(grid.headings)
    return table(_escaped([*grid.labels, *grid.headings]), rows, right=range(first, last))


def _facts(machine: Machine) -> str:
    """All that was recorded of a machine and of the backend, a line a fact."""
    told = [*(("machine", *pair) for pair in machine.host), *(("backend", *pair) for pair in machine.backend)]
    return table(["of", "fact", "value"], [_escaped(line) for line in told])


def _differences(found: Differences) -> str:
    rows = [
        [
            f"**{escape.markdown(cell.text)}**" if cell.stands_out and cell.text else escape.markdown(cell.text)
            for cell in row
        ]
        for row in found.rows
    ]
    return table(_escaped(found.headings), rows)


def _changes(found: Differences) -> str:
    return table(["environment", "packages"], [_escaped(line) for line in found.changes])


# The sentences in the cells of the next four are macros of the template that `say` is, escaped there.


def _comparisons(view: Comparisons, say: Any, resolution: Resolution | None) -> str:
    told = view.too_few_rounds
    rows = [[*_escaped(line.cells), str(say.remarks(line.compared, resolution, told))] for line in view.lines]
    headings = [*_escaped(view.headings), REMARKS]
    return table(*without_empty(headings, rows, last=2), right=[len(view.labels) + 1])


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
    return table(*without_empty(headings, rows, last=2), right=[1, 2])


def _races(view: SweepView, say: Any) -> str:
    """A line for each crossing of each comparison, or one that says that there is none."""
    rows = []
    for race in view.races:
        remarks = str(say.race_remarks(view, race))
        lines = [
            (
                "" if each.opens_low else each.before,
                each.at,
                str(say.span_of(each)) if each.low else "",
                "" if each.opens_high else each.after,
            )
            for each in race.crossings
        ] or [(race.ahead, "", "", race.ahead)]
        rows += [
            [*_escaped([race.what, before, at]), interval, *_escaped([after]), remarks]
            for before, at, interval, after in lines
        ]
    headings = ["comparison", "less time before", f"crossing, {view.of}", "interval", "less time after", REMARKS]
    return table(*without_empty(_escaped(headings), rows), right=[2])


def _told(told: Told) -> str:
    return table(_escaped(told.headings), [[_text(cell) for cell in row] for row in told.rows])


def _text(cell: Text) -> str:
    """A cell's text, in bold where it stands out."""
    escaped = escape.markdown(cell.text)
    return f"**{escaped}**" if cell.stands_out and escaped else escaped


def _shapes(cells: Cells, say: Any) -> str:
    rows = [
        [*_escaped([*names, *values]), str(say.shape_remarks(shape))]
        for (names, values), shape in zip(cells.shape.rows, cells.shapes, strict=True)
    ]
    headings = _escaped([*cells.shape.labels, *cells.shape.headings])
    return table(*without_empty([*headings, REMARKS], rows), right=range(1, len(headings)))


def _picture(drawn: Sequence[Picture], scenario: Scenario, kind: str, device: str = "") -> str:
    """The scenario's picture of that kind, by what it says; empty where there is none."""
    found = (each for each in drawn if (each.scenario, each.kind, each.device) == (scenario.name, kind, device))
    return "".join(f"![{escape.markdown(each.words.alt)}]({each.file})" for each in found)


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
