"""The report in a terminal: the tables of report.md, in as many blocks as the width asks for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model.launch import Launch
from harness.model.run import Run
from harness.report import lines
from harness.report.differences import Text
from harness.report.document import Document, build
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
    lay_out(build(run, launches), console, templates)


def lay_out(document: Document, console: "Console | None" = None, templates: Path | None = None) -> None:
    """Print a report's content."""
    from rich.console import Console

    # cells are data: neither markup nor colours that a number happens to look like
    console = console or Console(highlight=False)
    jinja = environment(plain, templates)
    words: Any = jinja.get_template("terminal.j2").module
    say: Any = jinja.get_template("sentences.j2").module

    def write(text: object) -> None:
        console.print(str(text).strip("\n"), markup=False, highlight=False)

    write(words.head(document))
    for view in document.tables:
        console.print()
        write(words.above(view, document))
        for block in blocks(view.grid, console.width):
            console.print(_table(block))
        write(words.below(view))
        if view.comparisons:
            console.print()
            write(say.verdict_counts(view.comparisons))
            remarks = [
                str(say.remarks(line.compared, document.resolution, view.comparisons.too_few_rounds))
                for line in view.comparisons.lines
            ]
            for part in lines.lay_out(view.comparisons, remarks, console.width):
                console.print(part)
            write(words.verdicts(view, document))
        for each in document.attributions:
            if each.scenario.name == view.scenario.name:
                console.print()
                write(words.accounts(each, document))
        for sweep in document.sweeps:
            if sweep.scenario.name == view.scenario.name:
                console.print()
                write(words.sweep(sweep))
    _show_observed(document, console, words, say)
    tail = words.tail(document)
    if tail.strip():
        console.print()
        write(tail)


def _show_observed(document: Document, console: "Console", words: Any, say: Any) -> None:
    """Print how the sources' statements stand, those that do not stand as stated, and experiments that time nothing."""

    def write(text: object) -> None:
        console.print(str(text).strip("\n"), markup=False, highlight=False)

    if document.expectations:
        console.print()
        # without any time it is the answer, and stands at the head
        if document.tables:
            write(say.expectations(document.expectations))
        for stated in document.expectations.views:
            otherwise = [row for row in stated.told.rows if any(cell.stands_out for cell in row)]
            if otherwise:
                write(stated.scenario.title)
                console.print(_texts(stated.told.headings, otherwise))
    for experiment in document.behaviours:
        if not experiment.timed:
            console.print()
            write(words.experiment(experiment))
            console.print(_texts(experiment.told.headings, experiment.told.rows))


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


def _texts(headings: Sequence[str], rows: Sequence[Sequence[Text]]) -> "Table":
    """A table whose columns are wrapped to the terminal's width; what stands out is bold."""
    from rich import text
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for heading in headings:
        table.add_column(text.Text(plain(heading)), vertical="bottom", overflow="fold")
    for row in rows:
        table.add_row(*(text.Text(plain(cell.text), "bold" if cell.stands_out else "") for cell in row))
    return table


def _table(grid: Grid) -> "Table":
    from rich import text
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for index, name in enumerate(grid.labels):
        table.add_column(text.Text(plain(name)), min_width=_label_width(grid, index), vertical="bottom")
    for index, name in enumerate(grid.headings):
        width = _value_width(grid, index)
        table.add_column(text.Text(plain(name)), justify="right", width=width, vertical="bottom", overflow="fold")
    for labels, values in grid.rows:
        table.add_row(*(text.Text(plain(each)) for each in [*labels, *values]))
    return table
