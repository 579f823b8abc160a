"""report.html: the sections as one self-contained page that also shows the launches behind each number."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.results import Results
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.report import escape
from harness.report.blocks import Block, Bold, Link, Section, Table, Where, Words
from harness.report.comparisons import NO_VERDICT, is_settled
from harness.report.html import assets, data
from harness.report.markdown import summarize_folded
from harness.report.templates import make_environment, mark_safe

if TYPE_CHECKING:
    from jinja2 import Environment

#: A column is wrapped if it contains a text with more characters than this.
WRAP_CHARACTERS = 40


def render(results: Results, sections: Sequence[Section], *, cache: Path | None = None) -> bytes:
    """Return the page of a run in UTF-8, with the sections that the page shows.

    `cache` is a folder for files that can be regenerated.
    """
    first, vega, last = scripts = assets.load_scripts(cache)
    visible_sections = [visible_section for section in sections if (visible_section := section.shown(Where.PAGE))]
    template = _make_environment(results.found.cells).get_template("report.html.j2")
    parts = template.generate(
        run=results.run,
        sections=visible_sections,
        # the table of all cells comes before the first section that isn't in report.md
        details=next((section for section in visible_sections[1:] if not section.shown(Where.PASTE)), None),
        data=data.dump(data.build(results, visible_sections)),
        style=assets.read_files(assets.STYLES),
        first=first,
        vega=vega,
        last=last,
        policy=assets.make_policy(scripts),
    )
    # a large page needs less memory as bytes than as text
    page = BytesIO()
    page.writelines(part.encode() for part in parts)
    return page.getvalue()


def render_plain(run: Run, sections: Sequence[Section]) -> str:
    """Return a page with only these sections, without launches. Its scripts zoom and search flame graphs."""
    visible_sections = [visible_section for section in sections if (visible_section := section.shown(Where.PAGE))]
    theme, flames = assets.make_script(assets.FIRST), assets.make_script(assets.FLAMES)
    template = _make_environment(()).get_template("profile.html.j2")
    return template.render(
        run=run,
        sections=visible_sections,
        style=assets.read_files(assets.FLAME_STYLES),
        theme=theme,
        flames=flames,
        policy=assets.make_policy([theme, flames]),
    )


def make_block_renderer() -> Callable[[Block], str]:
    """Return a function that renders a block for a page without scripts: a chart is an image in charts/."""
    macros: Any = _make_environment(()).get_template("html/blocks.j2").module
    return lambda block: str(macros.block(block))


def _make_environment(cells: Iterable[Cell]) -> "Environment":
    from markupsafe import Markup

    numbers_by_cell = {cell: number for number, cell in enumerate(cells)}

    def make_cells_attribute(shown_cells: Sequence[Cell]) -> str:
        """Return the attribute with the cells behind a number; empty if the cells aren't in the run."""
        numbers = [str(numbers_by_cell[cell]) for cell in shown_cells if cell in numbers_by_cell]
        return f' data-cells="{" ".join(numbers)}"' if numbers and len(numbers) == len(shown_cells) else ""

    jinja = make_environment(_escape_text)
    # only the page of a run, which has cells, has the scripts that draw charts
    jinja.globals |= {"cells_of": mark_safe(make_cells_attribute), "draws_charts": bool(numbers_by_cell)}
    filters: Mapping[str, Callable[..., Any]] = {
        "words": mark_safe(_render_words),
        "lines": mark_safe(_render_lines),
        # for texts from harness's own files, and for JSON without `<`
        "trusted": Markup,
        "on_page": lambda table: table.shown(Where.PAGE),
        "folded": summarize_folded,
        "labels": _find_labels,
        "wrapped": _find_wrapped,
        "ordered": _find_ordered,
        "verdicts": _list_verdicts,
        "is_settled": is_settled,
    }
    jinja.filters.update(filters)
    return jinja


def _escape_text(text: str) -> str:
    """Return one line of text or attribute, with non-breaking spaces after numbers."""
    return escape.html(text, escape.PARAGRAPH_CHARACTERS).replace(" %", "\u00a0%").replace("± ", "±\u00a0")


def _render_words(words: Words) -> str:
    return _escape_text(words) if isinstance(words, str) else "".join(map(_render_span, words))


def _render_span(span: str | Bold | Link) -> str:
    match span:
        case Bold():
            return f"<strong>{_escape_text(span.text)}</strong>"
        case Link():
            target = escape.parse_web_address(span.address)
            return (
                f'<a href="{escape.escape_entities(target)}">{_escape_text(span.text)}</a>'
                if target
                else _escape_text(span.address)
            )
    return escape.keep_spaces(span, _escape_text(span))


def _render_lines(text: str) -> str:
    """Return escaped text with its line breaks."""
    return "\n".join(escape.escape_entities(line) for line in escape.clean(text).rstrip().splitlines())


# The values that the template of a table uses.


def _find_labels(table: Table) -> set[int]:
    """Return the columns that contain the names of lines; by default the first column."""
    return {index for index, head in enumerate(table.heads) if head.is_label} or {0}


def _find_wrapped(table: Table) -> set[int]:
    """Return the columns whose text is wrapped."""
    return {
        index
        for index, head in enumerate(table.heads)
        if not head.is_number and any(len(line.entries[index].text) > WRAP_CHARACTERS for line in table.lines)
    }


def _find_ordered(table: Table) -> set[int]:
    """Return the columns that are sorted by `order` instead of their text."""
    return {
        index for index in range(len(table.heads)) if any(line.entries[index].order is not None for line in table.lines)
    }


def _list_verdicts(table: Table) -> list[str]:
    """Return each line's verdict; empty if the table has no verdicts."""
    return [
        line.entries[index].text or NO_VERDICT
        for line in table.lines
        for index, head in enumerate(table.heads)
        if head.is_verdict
    ]
