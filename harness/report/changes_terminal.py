"""Two runs side by side, in a terminal: `harness compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.report.changes import Line, View
from harness.report.comparisons import REMARKS
from harness.report.escape import plain
from harness.report.templates import environment
from harness.report.terminal import GAP

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show(view: View, console: "Console | None" = None, templates: Path | None = None) -> None:
    """Print what changed, a line a cell, and what differs between the runs; to stdout by default."""
    from rich.console import Console

    # cells are data: neither markup nor colours that a number happens to look like
    console = console or Console(highlight=False)
    words: Any = environment(plain, templates).get_template("compare.j2").module
    with console.capture() as printed:
        console.print(str(words.head(view)).strip("\n"), markup=False, highlight=False)
        console.print(_table(view, [str(words.remarks(line, view)) for line in view.lines]))
        console.print(str(words.below(view)).strip("\n"), markup=False, highlight=False)
    # rich fills every line of a table with spaces up to the terminal's width
    for line in printed.get().splitlines():
        console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


def _table(view: View, remarks: list[str]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shifted = view.changes.shift is not None
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    table.add_column("cell", overflow="fold")
    numbers = [f"A, {view.unit}", f"B, {view.unit}", "difference", *(["less the shift"] if shifted else [])]
    for heading in numbers:
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    if any(remarks):
        table.add_column(REMARKS, overflow="fold")
    for line, told in zip(view.lines, remarks, strict=True):
        cells = [*_cells(line, shifted=shifted), *([told] if any(remarks) else [])]
        table.add_row(*(Text(plain(cell)) for cell in cells))
    return table


def _cells(line: Line, *, shifted: bool) -> list[str]:
    beside = [line.beside] if shifted else []
    return [line.name, line.first, line.second, line.gain, *beside, line.change.change.verdict or ""]
