"""The report in a terminal: the tables of report.md, in as many blocks as the width asks for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import lines
from harness.report.document import build
from harness.report.escape import plain
from harness.report.grid import Grid
from harness.report.lines import GAP
from harness.report.templates import environment

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: A heading's words are wrapped into this many columns at least.
NARROWEST = 12


def show(run: Run, launches: Sequence[Launch], console: "Console | None" = None, templates: Path | None = None) -> None:
    """Print the answer, the tables and what gave no number, to stdout by default."""
    from rich.console import Console

    # cells are data: neither markup nor colours that a number happens to look like
    console = console or Console(highlight=False)
    document = build(run, launches)
    jinja = environment(plain, templates)
    words: Any = jinja.get_template("terminal.j2").module
    say: Any = jinja.get_template("sentences.j2").module

    def write(text: object) -> None:
        console.print(str(text).strip("\n"), markup=False, highlight=False)

    write(words.head(document))
    for view in document.tables:
        grid, shared = fold(view.grid)
        console.print()
        write(words.above(view, shared, document))
        for block in blocks(grid, console.width):
            console.print(_table(block))
        write(words.below(view))
        if view.comparisons:
            console.print()
            write(say.verdict_counts(view.comparisons))
            remarks = [str(say.remarks(line.compared, document.resolution)) for line in view.comparisons.lines]
            for part in lines.lay_out(view.comparisons, remarks, console.width):
                console.print(part)
            write(words.verdicts(view, document))
    tail = words.tail(document)
    if tail.strip():
        console.print()
        write(tail)


def fold(grid: Grid) -> tuple[Grid, str]:
    """The grid without the labels that are the same in every row, and those in words: `api tf.keras, inputs numpy`."""
    columns = list(zip(*(labels for labels, _ in grid.rows), strict=True))
    varying = [index for index, values in enumerate(columns) if len(set(values)) > 1]
    shared = [f"{grid.labels[i]} {columns[i][0]}" for i in range(len(columns)) if i not in varying]
    rows = [([labels[index] for index in varying], values) for labels, values in grid.rows]
    return Grid([grid.labels[index] for index in varying], grid.headings, rows), ", ".join(shared)


def blocks(grid: Grid, width: int) -> list[Grid]:
    """The grid whole where `width` columns of a terminal hold it; else cut, each block with the labels again.

    One value column is always taken, however narrow it is.
    """
    labels = sum(_label_width(grid, index) + GAP for index in range(len(grid.labels)))
    widths = [_value_width(grid, index) + GAP for index in range(len(grid.headings))]
    cut: list[Grid] = []
    first, used = 0, labels
    for index, wide in enumerate(widths):
        if index > first and used + wide > width:
            cut.append(_part(grid, first, index))
            first, used = index, labels
        used += wide
    return [*cut, _part(grid, first, len(widths))]


def _part(grid: Grid, start: int, stop: int) -> Grid:
    return Grid(grid.labels, grid.headings[start:stop], [(names, values[start:stop]) for names, values in grid.rows])


def _label_width(grid: Grid, index: int) -> int:
    return max(len(plain(text)) for text in [grid.labels[index], *(labels[index] for labels, _ in grid.rows)])


def _value_width(grid: Grid, index: int) -> int:
    """As wide as its widest cell and as the longest word of its heading, which is wrapped."""
    cells = [len(plain(values[index])) for _, values in grid.rows]
    words = [len(word) for word in plain(grid.headings[index]).split()]
    return max([NARROWEST, *cells, *words])


def _table(grid: Grid) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for index, name in enumerate(grid.labels):
        table.add_column(Text(plain(name)), min_width=_label_width(grid, index), vertical="bottom")
    for index, name in enumerate(grid.headings):
        width = _value_width(grid, index)
        table.add_column(Text(plain(name)), justify="right", width=width, vertical="bottom", overflow="fold")
    for labels, values in grid.rows:
        table.add_row(*(Text(plain(text)) for text in [*labels, *values]))
    return table
