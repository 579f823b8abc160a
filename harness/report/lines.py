"""Comparisons in a terminal: a table where its words have room, else two lines for each."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.report.comparisons import REMARKS, Comparisons
from harness.report.escape import plain
from harness.report.grid import without_empty

if TYPE_CHECKING:
    from rich.console import RenderableType

#: What stands against what, and remarks, are wrapped into this many columns at least.
READABLE = 20

#: What a column takes beside its width: the space to the next one, of which rich's box is one half; after the last
#: column, the box's two sides.
GAP = 2


def lay_out(view: Comparisons, remarks: Sequence[str], width: int) -> "Iterator[RenderableType]":
    """What to print in a terminal of `width` columns; `remarks`, already escaped, are one for each line."""
    lines = [[*map(plain, line.cells), told] for line, told in zip(view.lines, remarks, strict=True)]
    # verdicts and remarks, where any line has one
    headings, rows = without_empty([*map(plain, view.headings), REMARKS], lines, last=2)
    columns = list(zip(headings, *rows, strict=True))
    first = len(view.labels)
    wrapped = (first, *(at for at, heading in enumerate(headings) if heading == REMARKS))
    widths = fit([max(map(len, column)) for column in columns], wrapped=wrapped, width=width)
    if widths:
        yield _table(headings, rows, widths, difference=first + 1)
    else:
        yield from _stacked(rows, first)


def fit(widths: Sequence[int], wrapped: Sequence[int], width: int) -> list[int] | None:
    """The columns' widths, those at the indices `wrapped` narrowed; None where these would get fewer than 20 columns.

    What there is goes to them in equal parts, and what one of them does not need to the other.
    """
    narrowed = [index for index in wrapped if index < len(widths)]
    room = width - GAP * len(widths) - sum(wide for index, wide in enumerate(widths) if index not in narrowed)
    result = list(widths)
    for place, index in enumerate(sorted(narrowed, key=lambda index: widths[index])):
        part = max(0, room) // (len(narrowed) - place)
        if part < min(widths[index], READABLE):
            return None
        result[index] = min(widths[index], part)
        room -= result[index]
    return result if room >= 0 else None


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], difference: int
) -> "RenderableType":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for index, (heading, width) in enumerate(zip(headings, widths, strict=True)):
        justify = "right" if index == difference else "left"
        table.add_column(Text(heading), justify=justify, width=width, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _stacked(rows: Sequence[Sequence[str]], first: int) -> "Iterator[RenderableType]":
    from rich.padding import Padding
    from rich.text import Text

    for row in rows:
        yield Text(": ".join([*([", ".join(row[:first])] if first else []), row[first]]))
        yield Padding(Text("  ".join(filter(None, row[first + 1 :]))), (0, 0, 0, GAP), expand=False)
