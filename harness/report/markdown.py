"""report.md: right on GitHub, readable as it is in a terminal."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import escape, facts
from harness.report.document import Document, build
from harness.report.grid import Grid
from harness.report.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

#: Cells wider than this are not padded for: one long reason would push every line of its table apart.
PADDED = 48

#: A table of numbers wider than this becomes two, the times and the percentages.
WIDE = 140


def render(run: Run, launches: Sequence[Launch], templates: Path | None = None) -> str:
    """The Markdown report of a run. `templates` is the folder of the templates, the project's own by default."""
    import shlex

    document = build(run, launches)
    jinja = _environment(templates)
    text = jinja.get_template("report.md.j2").render(
        document=document,
        host=facts.pairs(run.host),
        backend=facts.pairs(run.backend),
        environments=[list(entry.values()) for entry in facts.environments(run)],
        packages=facts.other_packages(run),
        names=[environment.name for environment in run.environments],
        absences=_absences(document, jinja),
        typed=shlex.join(run.command),
        report_command=shlex.join(["harness", "report", document.folder]),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """A Markdown table of escaped cells, padded so that its columns align; the last `numbers` columns to the right."""
    widths = [
        max(3, _width(heading), *(width for row in rows if (width := _width(row[index])) <= PADDED), 0)
        for index, heading in enumerate(headings)
    ]
    right = [index >= len(headings) - numbers for index in range(len(headings))]
    rule = ["-" * (width - 1) + ":" if to_right else "-" * width for width, to_right in zip(widths, right, strict=True)]
    return "\n".join(_line(row, widths, right) for row in [headings, rule, *rows])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if to_right else cell + space)
    return f"| {' | '.join(padded)} |"


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
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
    return jinja


def _escaped(cells: Sequence[str]) -> list[str]:
    return [escape.markdown(cell) for cell in cells]


def _grid(grid: Grid) -> str:
    whole = _columns(grid, 0, len(grid.headings))
    if 0 < grid.times < len(grid.headings) and _width(whole.partition("\n")[0]) > WIDE:
        return f"{_columns(grid, 0, grid.times)}\n\n{_columns(grid, grid.times, len(grid.headings))}"
    return whole


def _columns(grid: Grid, start: int, stop: int) -> str:
    rows = [_escaped([*labels, *values[start:stop]]) for labels, values in grid.rows]
    return table(_escaped([*grid.labels, *grid.headings[start:stop]]), rows, numbers=stop - start)


def _absences(document: Document, jinja: "Environment") -> str:
    """The table of what gave no number; its sentences are the template's, escaped there."""
    from markupsafe import Markup

    say = jinja.get_template("sentences.j2").module
    rows = [
        [
            escape.markdown(absence.cause.status.value),
            str(say.cells(absence)),  # type: ignore[attr-defined]
            str(say.reason(absence)),  # type: ignore[attr-defined]
            str(say.advice(absence, document.folder)),  # type: ignore[attr-defined]
        ]
        for absence in document.absences
    ]
    return Markup(table(["status", "cells", "why", "what to do"], rows))
