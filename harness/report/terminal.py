"""Output of a report's sections in a terminal. Wide tables are split into tables that fit the terminal's width."""

from collections.abc import Iterator, Sequence
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
HEADING, READABLE = 9, 20

#: The colors of verdicts, by a word that the verdict contains.
COLOURS = {"slower": "red", "faster": "green", "more": "red", "less": "green", "unclear": "yellow"}

#: Paths up to this width, such as the folder of a run, aren't wrapped, so that users can copy them.
PATH = 40

#: The width of the gap after a column.
GAP = 2


def show(sections: Sequence[Section], console: "Console | None" = None) -> None:
    """Print the blocks that a terminal shows, to stdout by default."""
    from rich.console import Console
    from rich.text import Text as Styled

    # without highlighting, because rich would color parts of the data
    console = console or Console(highlight=False)
    visible_sections = [visible for section in sections if (visible := section.shown(Where.TERMINAL))]
    for number, section in enumerate(visible_sections):
        if number:
            console.print()
        console.print(Styled(escape_terminal(section.title), "bold"))
        for part in _list_parts(section.blocks, console.width):
            console.print(part, soft_wrap=isinstance(part, str), markup=False, highlight=False)


def _list_parts(blocks: Sequence[Block], width: int) -> "Iterator[RenderableType]":
    """Yield the parts to print, in order. Text to copy is a str, which isn't wrapped."""
    from rich.text import Text as Styled

    for block in blocks:
        match block:
            case Figure() | Drawing():
                continue
            case Table():
                yield from split_table(block, width)
                continue
            case Heading():
                parts: list[RenderableType] = [Styled(escape_terminal(block.title), "bold")]
            case Text():
                parts = [_style_words(block.words, "dim" if block.is_small else "")]
            case Items():
                parts = [_make_item(item) for item in block.items]
            case Code():
                parts = [clean(block.text).rstrip()]
            case Callout():
                parts = [Styled("Warning", "bold yellow"), *_list_parts(block.blocks, width)]
            case Folded():
                parts = [Styled(escape_terminal(block.summary), "bold"), *_list_parts(block.blocks, width)]
            case _:
                raise TypeError(f"a terminal can't show a {type(block).__name__}")
        # sentences and commands follow each other without empty lines, so that a short report fits on the screen
        if not isinstance(block, Text | Code):
            yield Styled("")
        yield from parts


def _style_words(words: Words, style: str = "") -> "Styled":
    from rich.text import Text as Styled

    return Styled.assemble(*(_style_span(span) for span in ([words] if isinstance(words, str) else words)), style=style)


def _style_span(span: str | Bold | Link) -> tuple[str, str]:
    match span:
        case Bold():
            return escape_terminal(span.text), "bold"
        case Link():
            address = parse_web_address(span.address)
            return (f"{escape_terminal(span.text)} ({address})" if address else escape_terminal(span.address)), ""
    return keep_spaces(span, escape_terminal(span, PARAGRAPH_CHARACTERS)), ""


def _make_item(words: Words) -> "RenderableType":
    from rich.table import Table as Grid

    row = Grid.grid(padding=(0, 1, 0, 0))
    row.add_row("-", _style_words(words))
    return row


# Tables.


def split_table(block: Table, width: int) -> "Iterator[RenderableType]":
    """Yield the table, in one piece if it fits into `width` characters with its longest texts wrapped.

    Otherwise, the plots are omitted. If the table is still too wide, its columns are split into several tables, and
    each table repeats the labels. If labels above the values make fewer tables, they are on a line above each row.
    """
    visible_table = block.shown(Where.TERMINAL)
    all_columns = range(len(visible_table.heads))
    labels = [index for index in all_columns if visible_table.heads[index].is_label]
    widths = [_measure_width(visible_table, index) for index in all_columns]
    smallest = [width for _, width in widths]
    plots = {index for index in all_columns if any(line.entries[index].is_code for line in visible_table.lines)}
    for columns in (list(all_columns), [index for index in all_columns if index not in plots]):
        if _measure_used_width(smallest, columns) <= width:
            yield _render_table(visible_table, columns, widths, width)
            return
    values = [index for index in all_columns if index not in plots and index not in labels]
    parts_with_labels = split_columns(smallest, labels, values, width)
    parts_without_labels = split_columns(smallest, (), values, width - GAP)
    if labels and len(parts_without_labels) < len(parts_with_labels):
        for part in parts_without_labels:
            yield _render_table(visible_table, part, widths, width, labels)
    else:
        for part in parts_with_labels:
            yield _render_table(visible_table, [*labels, *part], widths, width)


def split_columns(
    min_widths: Sequence[int], labels: Sequence[int], values: Sequence[int], width: int
) -> list[list[int]]:
    """Split the columns into as few parts as possible that fit next to the labels, with at least one column each."""
    parts: list[list[int]] = []
    for index in values:
        if parts and _measure_used_width(min_widths, [*labels, *parts[-1], index]) <= width:
            parts[-1].append(index)
        else:
            parts.append([index])
    return parts or [[]]


def fit_widths(preferred: Sequence[int], smallest: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: the preferred widths, or an equal share of the available width."""
    available = width - GAP * len(preferred) - sum(smallest)
    result = list(smallest)
    by_need = sorted(range(len(preferred)), key=lambda index: preferred[index] - smallest[index])
    # the narrowest columns first, because they leave width for the others
    for position, index in enumerate(by_need):
        extra = min(preferred[index] - smallest[index], max(0, available) // (len(by_need) - position))
        result[index] += extra
        available -= extra
    return result


def _measure_used_width(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[index] + GAP for index in columns)


def _measure_width(table: Table, index: int) -> tuple[int, int]:
    """Return the preferred and the smallest width of a column. Headings can wrap, but numbers and plots can't."""
    from rich.cells import cell_len

    head, entries = table.heads[index], [line.entries[index] for line in table.lines]
    longest_text = max((cell_len(escape_terminal(entry.text)) for entry in entries), default=0)
    words = [cell_len(word) for word in escape_terminal(head.text).split()]
    preferred = max(longest_text, cell_len(escape_terminal(head.text)))
    if head.is_number or any(entry.is_code for entry in entries):
        return preferred, max([longest_text, min(HEADING, preferred), *words])
    paths = (cell_len(word) for entry in entries for word in escape_terminal(entry.text).split() if "/" in word)
    return preferred, min(preferred, max([READABLE, *(path_width for path_width in paths if path_width <= PATH)]))


def _render_table(
    table: Table, columns: Sequence[int], widths: Sequence[tuple[int, int]], width: int, labels: Sequence[int] = ()
) -> "RenderableType":
    """Return a table of some columns. Entries of columns in `labels` are on a separate line above each row.

    `widths` has the preferred and the smallest width of every column.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text as Styled

    indent = GAP if labels else 0
    heads, smallest = [table.heads[index] for index in columns], [widths[index][1] for index in columns]
    preferred = [widths[index][0] for index in columns]
    if sum(preferred) + GAP * len(columns) > width - indent:
        # in a tight table, the headings of numbers wrap, so that names have more space
        pairs = zip(heads, preferred, smallest, strict=True)
        preferred = [least if head.is_number else whole for head, whole, least in pairs]
    sized_heads = list(zip(heads, fit_widths(preferred, smallest, width - indent), strict=True))
    lines = [[line.entries[index] for index in columns] for line in table.lines]
    if not labels:
        return _make_grid(sized_heads, lines)
    parts: list[RenderableType] = [Padding(_make_grid(sized_heads, []), (0, 0, 0, indent), expand=False)]
    for line, entries in zip(table.lines, lines, strict=True):
        parts.append(
            Styled((" " * GAP).join(filter(None, (escape_terminal(line.entries[index].text) for index in labels))))
        )
        parts.append(Padding(_make_grid(sized_heads, [entries], has_heading=False), (0, 0, 0, indent), expand=False))
    return Group(*parts)


def _make_grid(
    heads: Sequence[tuple[Head, int]], lines: Sequence[Sequence[Entry]], *, has_heading: bool = True
) -> "Grid":
    """Return a grid with headings and rows. `heads` contains the width of each column."""
    from rich.table import Table as Grid
    from rich.text import Text as Styled

    table = Grid(box=None, show_header=has_heading, pad_edge=False, padding=(0, GAP, 0, 0))
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
                Styled(escape_terminal(entry.text), _choose_style(head, entry))
                for (head, _), entry in zip(heads, entries, strict=True)
            )
        )
    return table


def _choose_style(head: Head, entry: Entry) -> str:
    """Return the style of an entry: bold if it is emphasized, and the verdict's color."""
    colour = next((COLOURS[word] for word in COLOURS if head.is_verdict and word in entry.text), "")
    return " ".join(filter(None, ["bold" if entry.stands_out else "", colour]))
