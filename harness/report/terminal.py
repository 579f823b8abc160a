"""Prints a report's sections in a terminal. Wide tables are split into tables that fit the terminal's width."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from harness.report.blocks import (
    Block,
    Bold,
    Callout,
    Code,
    Drawing,
    Entry,
    Figure,
    Folded,
    Head,
    Heading,
    Items,
    Link,
    Section,
    Table,
    Text,
    Where,
    Words,
)
from harness.report.escape import PARAGRAPH_CHARACTERS, clean, escape_terminal, keep_spaces, parse_web_address

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as Grid
    from rich.text import Text as Styled

#: The smallest width to which headings of numbers are wrapped, and the smallest width of text in a table.
HEADING, READABLE = 8, 20

#: The colors of verdicts, by a word that the verdict contains.
COLOURS = {"slower": "red", "faster": "green", "more": "red", "less": "green", "unclear": "yellow"}

#: Paths up to this width, such as the folder of a run, aren't wrapped, so that users can copy them.
PATH = 40

#: The width of the gap after a column. One of its characters belongs to the edge of rich's box.
GAP = 2


def show(sections: Sequence[Section], console: "Console | None" = None) -> None:
    """Print the blocks of the sections that are for a terminal, to stdout by default."""
    from rich.console import Console
    from rich.text import Text as Styled

    # without highlighting, because rich would color parts of the data
    console = console or Console(highlight=False)
    for number, section in enumerate(visible for whole in sections if (visible := whole.shown(Where.TERMINAL))):
        if number:
            console.print()
        console.print(Styled(escape_terminal(section.title), "bold"))
        for part in _parts(section.blocks, console.width):
            console.print(part, soft_wrap=isinstance(part, str), markup=False, highlight=False)


def _parts(blocks: Sequence[Block], width: int) -> "Iterator[RenderableType]":
    """Yield the parts to print, in order. Text to copy is a str, which isn't wrapped."""
    from rich.text import Text as Styled

    for block in blocks:
        match block:
            case Figure() | Drawing():
                continue
            case Table():
                # rich's box starts with an empty line
                yield from split_table(block, width)
                continue
            case Heading():
                parts: list[RenderableType] = [Styled(escape_terminal(block.title), "bold")]
            case Text():
                parts = [_words(block.words, "dim" if block.is_small else "")]
            case Items():
                parts = [_item(item) for item in block.items]
            case Code():
                parts = [clean(block.text).rstrip()]
            case Callout():
                yield Styled("")
                yield Styled("Warning", "bold yellow")
                yield from islice(_parts(block.blocks, width), 1, None)
                continue
            case Folded():
                parts = [Styled(escape_terminal(block.summary), "bold"), *_parts(block.blocks, width)]
            case _:
                raise TypeError(f"a terminal can't show a {type(block).__name__}")
        yield Styled("")
        yield from parts


def _words(words: Words, style: str = "") -> "Styled":
    from rich.text import Text as Styled

    return Styled.assemble(*(_span(span) for span in ([words] if isinstance(words, str) else words)), style=style)


def _span(span: str | Bold | Link) -> tuple[str, str]:
    match span:
        case Bold():
            return escape_terminal(span.text), "bold"
        case Link():
            address = parse_web_address(span.address)
            return (f"{escape_terminal(span.text)} ({address})" if address else escape_terminal(span.address)), ""
    return keep_spaces(span, escape_terminal(span, PARAGRAPH_CHARACTERS)), ""


def _item(words: Words) -> "RenderableType":
    from rich.table import Table as Grid

    row = Grid.grid(padding=(0, 1, 0, 0))
    row.add_row("-", _words(words))
    return row


# Tables.


@dataclass(frozen=True, slots=True)
class Widths:
    """The preferred and the smallest width of each column, in characters."""

    whole: Sequence[int]
    least: Sequence[int]


def split_table(block: Table, width: int) -> "Iterator[RenderableType]":
    """Yield the table, in one piece if it fits into `width` characters with its longest texts wrapped.

    Otherwise, the plots are left out. If the table is still too wide, its columns are split into several tables, and
    each table repeats the labels. If labels above the values make fewer tables, they are on a line above each row.
    """
    shown = block.shown(Where.TERMINAL)
    every = range(len(shown.heads))
    labels = [at for at in every if shown.heads[at].is_label]
    widths = Widths(*zip(*(_width(shown, at) for at in every), strict=True)) if shown.heads else Widths((), ())
    plots = {at for at in every if any(line.entries[at].is_code for line in shown.lines)}
    for kept in (list(every), [at for at in every if at not in plots]):
        if _measure_used_width(widths.least, kept) <= width:
            yield _table(shown, kept, widths, width)
            return
    values = [at for at in every if at not in plots and at not in labels]
    beside = split_columns(widths.least, labels, values, width)
    above = split_columns(widths.least, (), values, width - GAP)
    if labels and len(above) < len(beside):
        for part in above:
            yield _table(shown, part, widths, width, labels)
    else:
        for part in beside:
            yield _table(shown, [*labels, *part], widths, width)


def split_columns(least: Sequence[int], labels: Sequence[int], values: Sequence[int], width: int) -> list[list[int]]:
    """Split the columns into as few parts as possible that fit next to the labels, with at least one column each."""
    parts: list[list[int]] = []
    for at in values:
        if parts and _measure_used_width(least, [*labels, *parts[-1], at]) <= width:
            parts[-1].append(at)
        else:
            parts.append([at])
    return parts or [[]]


def fit_widths(whole: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: the preferred widths, or an equal share of the available width."""
    room = width - GAP * len(whole) - sum(least)
    result = list(least)
    wanting = sorted(range(len(whole)), key=lambda at: whole[at] - least[at])
    # the narrowest columns first, because they leave width for the others
    for place, at in enumerate(wanting):
        part = min(whole[at] - least[at], max(0, room) // (len(wanting) - place))
        result[at] += part
        room -= part
    return result


def _measure_used_width(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[at] + GAP for at in columns)


def _width(table: Table, at: int) -> tuple[int, int]:
    """Return the preferred and the smallest width of a column. Headings can wrap, but numbers and plots can't."""
    from rich.cells import cell_len

    head, entries = table.heads[at], [line.entries[at] for line in table.lines]
    longest = max((cell_len(escape_terminal(entry.text)) for entry in entries), default=0)
    words = [cell_len(word) for word in escape_terminal(head.text).split()]
    whole = max(longest, cell_len(escape_terminal(head.text)))
    if head.is_number or any(entry.is_code for entry in entries):
        return whole, max([longest, min(HEADING, whole), *words])
    paths = (cell_len(word) for entry in entries for word in escape_terminal(entry.text).split() if "/" in word)
    return whole, min(whole, max([READABLE, *(wide for wide in paths if wide <= PATH)]))


def _table(
    table: Table, columns: Sequence[int], widths: Widths, width: int, above: Sequence[int] = ()
) -> "RenderableType":
    """Return a table of some columns. Entries of columns in `above` are on a separate line above each row."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text as Styled

    indent = GAP if above else 0
    fitted = fit_widths([widths.whole[at] for at in columns], [widths.least[at] for at in columns], width - indent)
    heads = [(table.heads[at], wide) for at, wide in zip(columns, fitted, strict=True)]
    lines = [[line.entries[at] for at in columns] for line in table.lines]
    if not above:
        return _grid(heads, lines)
    # the side of the box adds one character
    parts: list[RenderableType] = [Padding(_grid(heads, []), (0, 0, 0, indent - 1), expand=False)]
    for line, entries in zip(table.lines, lines, strict=True):
        parts.append(Styled((" " * GAP).join(filter(None, (escape_terminal(line.entries[at].text) for at in above)))))
        parts.append(Padding(_grid(heads, [entries], headed=False), (0, 0, 0, indent), expand=False))
    return Group(*parts)


def _grid(heads: Sequence[tuple[Head, int]], lines: Sequence[Sequence[Entry]], *, headed: bool = True) -> "Grid":
    """Return a grid with headings and rows. `heads` contains the width of each column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Grid
    from rich.text import Text as Styled

    table = Grid(box=SIMPLE_HEAD, show_header=headed, show_edge=headed, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for head, width in heads:
        table.add_column(
            Styled(escape_terminal(head.text)),
            justify="right" if head.is_number else "left",
            width=width,
            vertical="top",
            overflow="fold",
        )
    for entries in lines:
        table.add_row(
            *(
                Styled(escape_terminal(entry.text), _style(head, entry))
                for (head, _), entry in zip(heads, entries, strict=True)
            )
        )
    return table


def _style(head: Head, entry: Entry) -> str:
    """Return the style of an entry: bold for a highlighted entry or a verdict, with the verdict's color."""
    colour = next((COLOURS[word] for word in COLOURS if head.is_verdict and word in entry.text), "")
    return " ".join(filter(None, ["bold" if entry.stands_out or colour else "", colour]))
