"""report.html: the sections as one self-contained page that also shows the launches behind each number."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis.results import Results
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report import blocks, escape
from harness.report.blocks import Block, Bold, Link, Section, Table, Where, Words
from harness.report.comparisons import NO_VERDICT, is_settled
from harness.report.html import data
from harness.report.html.assets import PLAIN_STYLES, load_assets, make_policy, read_files
from harness.report.markdown import LONG
from harness.report.templates import make_environment

if TYPE_CHECKING:
    from jinja2 import Environment

#: A column is wrapped if it contains a text with more characters than this.
WRAPPED = 40

#: The kinds of blocks that templates distinguish, by name.
BLOCKS: Sequence[type[Block]] = (
    blocks.Callout,
    blocks.Code,
    blocks.Drawing,
    blocks.Figure,
    blocks.Folded,
    blocks.Heading,
    blocks.Items,
    blocks.Table,
    blocks.Text,
)


def render(results: Results, sections: Sequence[Section], *, cache: Path | None = None) -> str:
    """Return the page of a run, with the sections that are shown on it.

    `cache` is a folder for files that can be regenerated.
    """
    return "".join(_generate(results, sections, cache))


def encode(results: Results, sections: Sequence[Section], *, cache: Path | None = None) -> bytes:
    """Return the same page in UTF-8. As text, which has at least two bytes a character, a large page needs more."""
    page = BytesIO()
    page.writelines(part.encode() for part in _generate(results, sections, cache))
    return page.getvalue()


def _generate(results: Results, sections: Sequence[Section], cache: Path | None) -> Iterator[str]:
    """Return the parts of the page."""
    page_assets = load_assets(cache=cache)
    shown = [visible for section in sections if (visible := section.shown(Where.PAGE))]
    page = _environment(results.found.cells).get_template("report.html.j2")
    return page.generate(
        run=results.run,
        sections=shown,
        # the table of all cells comes before the first section that isn't in report.md
        details=next((section for section in shown[1:] if not section.shown(Where.PASTE)), None),
        data=data.dump(data.build(results, shown)),
        assets=page_assets,
        policy=make_policy(page_assets.scripts),
    )


def render_plain(run: Run, sections: Sequence[Section]) -> str:
    """Return a page with only these sections, without launches and scripts."""
    shown = [visible for section in sections if (visible := section.shown(Where.PAGE))]
    page = _environment(()).get_template("profile.html.j2")
    return page.render(run=run, sections=shown, style=read_files(PLAIN_STYLES))


def _environment(cells: Iterable[Cell]) -> "Environment":
    from markupsafe import Markup

    def safe(function: Callable[..., str]) -> Callable[..., Markup]:
        return lambda *arguments: Markup(function(*arguments))

    places = {cell: place for place, cell in enumerate(cells)}

    def cells_of(shown: Sequence[Cell]) -> str:
        """Return the attribute with the cells behind a number; empty if the cells aren't in the run."""
        numbers = [str(places[cell]) for cell in shown if cell in places]
        return f' data-cells="{" ".join(numbers)}"' if numbers and len(numbers) == len(shown) else ""

    jinja = make_environment(_text)
    jinja.globals |= {"cells_of": safe(cells_of), "unknown": _unknown}
    filters: Mapping[str, Callable[..., Any]] = {
        "words": safe(_words),
        "lines": safe(_lines),
        # for texts from harness's own files, and for JSON without `<`
        "trusted": Markup,
        "on_page": lambda table: table.shown(Where.PAGE),
        "folded": _summarize_folded,
        "labels": _labels,
        "wrapped": _find_wrapped,
        "ordered": _find_ordered,
        "verdicts": _verdicts,
        "is_settled": is_settled,
    }
    jinja.filters.update(filters)
    jinja.tests |= {kind.__name__.lower(): _is(kind) for kind in BLOCKS}
    return jinja


def _is(kind: type[Block]) -> Callable[[Block], bool]:
    return lambda block: isinstance(block, kind)


def _unknown(block: Block) -> None:
    raise TypeError(f"the page can't show a {type(block).__name__}")


def _text(text: str) -> str:
    """Return one line of text or attribute, with non-breaking spaces after numbers."""
    return escape.html(text, escape.PARAGRAPH_CHARACTERS).replace(" %", "\u00a0%").replace("± ", "±\u00a0")


def _words(words: Words) -> str:
    return _text(words) if isinstance(words, str) else "".join(map(_span, words))


def _span(span: str | Bold | Link) -> str:
    match span:
        case Bold():
            return f"<strong>{_text(span.text)}</strong>"
        case Link():
            target = escape.parse_web_address(span.address)
            return f'<a href="{escape.html(target)}">{_text(span.text)}</a>' if target else _text(span.address)
    return escape.keep_spaces(span, _text(span))


def _lines(text: str) -> str:
    """Return escaped text with its line breaks."""
    return "\n".join(escape.escape_entities(line) for line in escape.clean(text).rstrip().splitlines())


# The values that the template of a table uses.


def _summarize_folded(table: Table) -> str:
    """Return the summary of a folded table; empty if the table isn't folded."""
    return f"{table.caption}: {counted(len(table.lines), table.noun)}" if len(table.lines) > LONG else ""


def _labels(table: Table) -> set[int]:
    """Return the columns that contain the names of lines; by default the first column."""
    return {at for at, head in enumerate(table.heads) if head.is_label} or {0}


def _find_wrapped(table: Table) -> set[int]:
    """Return the columns whose text is wrapped."""
    return {
        at
        for at, head in enumerate(table.heads)
        if not head.is_number and any(len(line.entries[at].text) > WRAPPED for line in table.lines)
    }


def _find_ordered(table: Table) -> set[int]:
    """Return the columns that are sorted by `order` instead of their text."""
    return {at for at in range(len(table.heads)) if any(line.entries[at].order is not None for line in table.lines)}


def _verdicts(table: Table) -> list[str]:
    """Return each line's verdict; empty if the table has no verdicts."""
    return [
        line.entries[at].text or NO_VERDICT
        for line in table.lines
        for at, head in enumerate(table.heads)
        if head.is_verdict
    ]
