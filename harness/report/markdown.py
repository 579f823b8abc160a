"""Rendering of report.md, which people paste, and details.md. Both work on GitHub and are readable as text.

The layout is in `templates/`: report.md.j2, full.md.j2 and markdown/blocks.j2. This module escapes, aligns tables, and
selects the blocks that fit into report.md.
"""

import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.texts import counted, joined
from harness.report import escape, templates
from harness.report.blocks import Block, Bold, Entry, Folded, Link, Section, Table, Text, Where, Words
from harness.report.templates import make_environment, mark_safe

if TYPE_CHECKING:
    from jinja2 import Environment

#: The largest number of characters in report.md. GitHub refuses a comment of more than 65,536 characters, and somebody
#: who pastes a report adds some words.
LIMIT = 60_000

#: A table with more lines than this is folded.
LONG = 40

#: The largest number of omitted blocks that are listed by name, and the length of a name. Other blocks are counted.
NAMED, NAME_CHARACTERS = 20, 100

#: Characters reserved for the sentences about omitted blocks.
ROOM = 4_000

#: The largest width to which table cells are padded, because otherwise one long text would make all lines wide.
MAX_PADDED_WIDTH = 64


def split_report(sections: Sequence[Section], folder: str) -> dict[str, str]:
    """Return report.md with at most LIMIT characters, and details.md: other parts, and parts that didn't fit.

    The texts are by file name. If the report contains everything, details.md is omitted. A sentence in the report names
    `folder`, the run's folder, as the place of the details. The first section is at the top of both files.
    """
    pasted_sections = [visible_section for section in sections if (visible_section := section.shown(Where.PASTE))]
    rendered = [(block, render_blocks([block])) for section in pasted_sections for block in section.blocks]
    total = sum(len(text) + 2 for _, text in rendered) + sum(len(section.title) + 6 for section in pasted_sections)
    omitted_ids: set[int] = set()
    # omit the longest blocks first, and sentences last
    for block, text in sorted(rendered, key=lambda pair: (not isinstance(pair[0], Table | Folded), -len(pair[1]))):
        if total < LIMIT - ROOM:
            break
        total -= len(text) + 2
        omitted_ids.add(id(block))
    details = _make_details(sections, omitted_ids)
    *first_sections, last_section = (
        _select_blocks(section, Where.PASTE, lambda block: id(block) not in omitted_ids) for section in pasted_sections
    )
    more_section = _describe_more(pasted_sections, omitted_ids, details[1:], folder) if details else None
    report_sections = [section for section in (*first_sections, more_section, last_section) if section]
    report = render_template("report.md.j2", sections=report_sections)
    return {"report.md": report, **({"details.md": render_full(details)} if details else {})}


def shorten(text: str, limit: int, command: str) -> str:
    """Return Markdown, cut at the end of a line if it has more than `limit` characters. `command` shows all of it."""
    if len(text) <= limit:
        return text
    ending = f"\n\n… The rest exceeds the size limit. To see everything: `{command}`\n"
    return text[: limit - len(ending)].rpartition("\n")[0] + ending


def render_full(sections: Sequence[Section], template: str = "full.md.j2") -> str:
    """Return the whole report as one text, in the layout of a file in `templates/`; empty if nothing is shown."""
    visible_sections = [visible for section in sections if (visible := section.shown(Where.PASTE | Where.DETAILS))]
    return render_template(template, sections=visible_sections) if visible_sections else ""


def _make_details(sections: Sequence[Section], omitted_ids: Collection[int]) -> list[Section]:
    """Return the sections of the details, with a title."""

    def is_in_details(block: Block) -> bool:
        return bool(block.where & Where.DETAILS) or id(block) in omitted_ids

    selected = (_select_blocks(section, Where.PASTE | Where.DETAILS, is_in_details) for section in sections)
    details = [section for section in selected if section]
    if details and details[0].title != sections[0].title:
        details.insert(
            0, Section(f"{sections[0].title}: details", "details", [Text("These parts are not in report.md.")])
        )
    return details


def _select_blocks(section: Section, where: Where, is_selected: Callable[[Block], bool]) -> Section | None:
    return replace(section, blocks=[block for block in section.blocks if is_selected(block)]).shown(where)


def _describe_more(
    pasted_sections: Sequence[Section], omitted_ids: Collection[int], details: Sequence[Section], folder: str
) -> Section:
    """Return a section that names the place of the other parts, and the omitted parts."""
    names = [
        f"{escape.shorten(block.caption, NAME_CHARACTERS)} ({counted(len(block.lines), block.noun)})"
        for section in pasted_sections
        for block in section.blocks
        if id(block) in omitted_ids and isinstance(block, Table)
    ]
    unnamed_count = len(omitted_ids) - len(names) + len(names[NAMED:])
    pasted_titles = {section.title for section in pasted_sections}
    titles = [section.title for section in details if section.title not in pasted_titles]
    named_titles = ", ".join(escape.shorten(title, NAME_CHARACTERS) for title in titles[:NAMED])
    sentences = [f"{folder}/details.md and report.html have {named_titles or 'more of these sections'}."]
    if omitted_ids:
        omitted_names = joined([*names[:NAMED], *([f"{unnamed_count} more"] if unnamed_count else [])])
        sentences.append(f"Omitted here, because comments on GitHub have a size limit: {omitted_names}.")
    return Section("Not in this file", "more", [Text(sentence, where=Where.PASTE) for sentence in sentences])


@lru_cache(maxsize=1)
def _load_templates(folder: Path) -> "Environment":
    """Return the environment of the templates for Markdown."""
    jinja = make_environment(escape.markdown, folder)
    jinja.filters |= {
        "words": mark_safe(_render_words),
        "fenced": mark_safe(lambda block: escape.make_fenced_block(block.text, block.language)),
        "aligned": mark_safe(_render_grid),
        "html": mark_safe(escape.html),
        "short": lambda text: escape.shorten(text, NAME_CHARACTERS),
        "summary": summarize_folded,
    }
    return jinja


def render_template(name: str, **values: object) -> str:
    """Return the Markdown that a template in `templates/` makes of `values`, such as `sections`."""
    return _load_templates(templates.FOLDER).get_template(name).render(values)


def render_blocks(blocks: Sequence[Block]) -> str:
    """Return the blocks as Markdown, without a line feed at the end."""
    macros: Any = _load_templates(templates.FOLDER).get_template("markdown/blocks.j2").module
    return str(macros.blocks(blocks)).strip("\n")


def _render_words(words: Words) -> str:
    if isinstance(words, str):
        return escape.markdown(words, escape.PARAGRAPH_CHARACTERS)
    return "".join(_render_span(span) for span in words)


def _render_span(span: str | Bold | Link) -> str:
    match span:
        case Bold():
            return f"**{escape.markdown(span.text)}**"
        case Link():
            return escape.link(span.text, span.address)
    return escape.keep_spaces(span, escape.markdown(span, escape.PARAGRAPH_CHARACTERS))


def summarize_folded(table: Table) -> str:
    """Return the summary of a folded table; empty if the table isn't folded."""
    return f"{table.caption}: {counted(len(table.lines), table.noun)}" if len(table.lines) > LONG else ""


def _render_grid(block: Table) -> str:
    table = block.shown(Where.PASTE | Where.DETAILS)
    right_columns = [index for index, head in enumerate(table.heads) if head.is_number]
    # keep a number on one line, even if the column is narrow
    rows = [
        [
            _render_entry(entry).replace(" ", "\u00a0") if index in right_columns else _render_entry(entry)
            for index, entry in enumerate(line.entries)
        ]
        for line in table.lines
    ]
    return format_table([escape.markdown(head.text) for head in table.heads], rows, right_columns)


def _render_entry(entry: Entry) -> str:
    if entry.is_code and entry.text:
        return f"`{escape.escape_terminal(entry.text).replace('`', ' ').replace('|', '¦')}`"
    text = escape.markdown(entry.text)
    return f"**{text}**" if entry.stands_out and text else text


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return a Markdown table of escaped cells with aligned columns. Columns in `right` are aligned to the right."""
    widths = [
        max(
            3,
            _measure_width(heading),
            *(width for row in rows if (width := _measure_width(row[index])) <= MAX_PADDED_WIDTH),
        )
        for index, heading in enumerate(headings)
    ]
    rule = ["-" * (width - 1) + ":" if index in right else "-" * width for index, width in enumerate(widths)]

    def pad(cell: str, index: int) -> str:
        space = " " * (widths[index] - _measure_width(cell))
        return space + cell if index in right else cell + space

    return "\n".join(f"| {' | '.join(map(pad, row, count()))} |" for row in [headings, rule, *rows])


def _measure_width(text: str) -> int:
    """Return the width of the text in terminal columns."""
    if text.isascii():
        return len(text)
    wide_count = sum(unicodedata.east_asian_width(character) in {"W", "F"} for character in text)
    return len(text) + wide_count - sum(unicodedata.combining(character) > 0 for character in text)
