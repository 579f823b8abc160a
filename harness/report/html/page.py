"""report.html: the content of report.md as a page that needs nothing but itself, and tells each number's launches."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.lookup import lookup
from harness.model.cell import Cell
from harness.model.launch import Launch
from harness.model.run import AskByHand, Run, nothing_by_hand
from harness.report import escape
from harness.report.charts.picture import Picture
from harness.report.charts.pictures import pictures
from harness.report.document import Document, build
from harness.report.html import data
from harness.report.html.assets import Assets, assets
from harness.report.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment


def render(
    run: Run,
    launches: Sequence[Launch],
    templates: Path | None = None,
    *,
    cache: Path | None = None,
    by_hand: AskByHand = nothing_by_hand,
) -> str:
    """The page of a run.

    `templates` is the folder of the templates, the project's own by default; `cache` is one for what can be made again.
    """
    document = build(run, launches, by_hand)
    return lay_out(document, pictures(document, templates), launches, templates, cache=cache)


def lay_out(
    document: Document,
    drawn: Sequence[Picture],
    launches: Sequence[Launch],
    templates: Path | None = None,
    *,
    cache: Path | None = None,
) -> str:
    """The page of a document, with its pictures and its launches; the folders are those of `render`."""
    found = lookup(document.run, launches)
    made = assets(templates, cache)
    page = _environment(found.cells, templates).get_template("report.html.j2")
    return page.render(
        document=document,
        pictures=drawn,
        numbered={view.scenario.name: data.numbered(view) for view in document.tables},
        data=data.dumps(data.build(document, drawn, launches, found)),
        assets=made,
        policy=_policy(made),
        report_command=shlex.join(["harness", "report", document.folder]),
    )


def _policy(made: Assets) -> str:
    """The page's content security policy: its own scripts run and no others, and nothing is fetched from anywhere."""
    scripts = " ".join(script.source for script in made.scripts)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _environment(cells: Iterable[Cell], folder: Path | None) -> "Environment":
    from markupsafe import Markup

    def safe(function: Callable[..., str]) -> Callable[..., Markup]:
        return lambda *arguments: Markup(function(*arguments))

    places = {cell: place for place, cell in enumerate(cells)}

    def cells_of(shown: Sequence[Cell | None]) -> str:
        """The attribute that says which of the page's cells a number is of; empty where the run has none of them."""
        known = [str(places[cell]) for cell in shown if cell in places]
        return f' data-cells="{" ".join(known)}"' if len(known) == len(shown) else ""

    jinja = environment(_text, folder)
    jinja.globals["cells_of"] = safe(cells_of)
    jinja.filters["anchor"] = safe(_anchor)
    jinja.filters["lines"] = safe(_lines)
    # of our own files, and of JSON without a <
    jinja.filters["trusted"] = Markup
    return jinja


def _text(text: str) -> str:
    """One line of text or attribute, in which what belongs to a number stays on its line."""
    return escape.html(text).replace(" %", "\u00a0%").replace("± ", "±\u00a0")


def _anchor(address: str, title: str) -> str:
    """A link to an http(s) address; the address as text where it is none."""
    target = escape.web_address(address)
    return f'<a href="{escape.html(target)}">{escape.html(title)}</a>' if target else escape.html(address)


def _lines(text: str) -> str:
    """Text of several lines as it is."""
    return "\n".join(escape.entities(line) for line in escape.clean(text).rstrip().splitlines())
