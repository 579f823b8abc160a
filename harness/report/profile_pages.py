"""profile.md and profile.html: the report of profiles."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.run import Run
from harness.report import escape, flames, markdown, templates
from harness.report.grid import Grid
from harness.report.profiles import CellView, PartView, Profiled, build

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Pages:
    """The reports by the endings of their names, and the table of shares for a terminal."""

    files: Mapping[str, str]
    summary: str


def render(run: Run, profiled: Profiled, folder: Path | None = None) -> Pages:
    """Both reports. `folder` holds the templates, the project's own by default."""
    document = build(run, profiled)
    return Pages(
        files={
            "md": _tidy(_markdown(folder).get_template("profile.md.j2").render(document=document)),
            "html": _tidy(_html(folder).get_template("profile.html.j2").render(document=document)),
        },
        summary=_table(document.summary, escape.plain),
    )


def _markdown(folder: Path | None) -> "Environment":
    from markupsafe import Markup

    jinja = templates.environment(escape.markdown, folder)
    jinja.filters["fenced"] = lambda *arguments: Markup(escape.fenced(*arguments))
    jinja.filters["folded"] = lambda text: Markup(escape.html(text))
    jinja.globals["table"] = lambda grid: Markup(_table(grid, escape.markdown))
    return jinja


def _html(folder: Path | None) -> "Environment":
    from markupsafe import Markup

    jinja = templates.environment(escape.html, folder)
    jinja.globals["flame"] = lambda cell, part: Markup(_flame(cell, part))
    return jinja


def _table(grid: Grid, text: Callable[[str], str]) -> str:
    rows = [[text(value) for value in (*labels, *values)] for labels, values in grid.rows]
    first = len(grid.labels)
    headings = [text(heading) for heading in (*grid.labels, *grid.headings)]
    return markdown.table(headings, rows, right=range(first, first + len(grid.headings)))


def _flame(cell: CellView, part: PartView) -> str:
    title = f"{cell.name}, {part.part.value}: which function called which, and how long each took"
    return flames.draw(part.frames, title, lambda name: _matches(name, cell.patterns), escape.plain)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
