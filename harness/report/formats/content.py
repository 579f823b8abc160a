"""What the formats share: every cell and every comparison of a run, with names that are the same in every run."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.comparisons import Compared
from harness.analysis.lookup import Lookup, lookup
from harness.analysis.missing import Missing, missing
from harness.analysis.shape import Shape
from harness.analysis.statistics import Estimate
from harness.analysis.tables import Table, Value, tables
from harness.model.cell import Cell
from harness.model.errors import NothingSelectedError
from harness.model.launch import Launch, Status
from harness.model.run import Run
from harness.model.scenario import Comparison
from harness.report import names


@dataclass(frozen=True, slots=True)
class CellResult:
    """One cell: its seconds per step, or why it has none.

    `status` is `ok` where it has a number. `launches` are those that count and gave one; `cause` tells why the cell,
    or some of its launches, gave none. `shape` and `undone` are those of its table.
    """

    cell: Cell
    status: Status
    estimate: Estimate | None
    launches: Sequence[Launch]
    shape: Shape | None
    undone: str
    cause: Missing | None

    @property
    def name(self) -> str:
        """The cell's name."""
        return names.full_name(self.cell)


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """One comparison: the header's entry that it comes from, its row and what stands against what, in words."""

    entry: Comparison
    place: str
    what: str
    compared: Compared

    @property
    def name(self) -> str:
        """Both in one: `fit: graph against eager, tf1.14`."""
        return f"{self.place}: {self.what}" if self.place else self.what

    @property
    def full_name(self) -> str:
        """After the name of the entry, which a pick's words have in front already."""
        return self.name if self.entry.pick else f"{self.entry.name}: {self.name}"


@dataclass(frozen=True, slots=True)
class Content:
    """A run's results: its cells in the plan's order, its comparisons in the tables' order."""

    found: Lookup
    tables: Sequence[Table]
    cells: Sequence[CellResult]
    comparisons: Sequence[ComparisonResult]
    missing: Sequence[Missing]


def gather(run: Run, launches: Sequence[Launch]) -> Content:
    """The run's results."""
    found = lookup(run, launches)
    made = [table for table in tables(run, found) if table.rows]
    absent = missing(found)
    values = {
        table.cell(row, head.side): value
        for table in made
        for row in table.rows
        for head, value in zip(table.columns, row.values, strict=True)
        if not head.other
    }
    causes = {cell: entry for entry in absent for cell in entry.cells}
    return Content(
        found=found,
        tables=made,
        cells=[_cell(cell, values.get(cell), causes.get(cell), found) for cell in found.cells],
        comparisons=[each for table in made for each in _comparisons(table)],
        missing=absent,
    )


def with_numbers(content: Content, format: str) -> list[CellResult]:
    """The cells that have a number, for a `format` that has nothing else. Raises NothingSelectedError for none."""
    numbered = [result for result in content.cells if result.estimate]
    if not numbered:
        raise NothingSelectedError(
            f"No cell gave a number, and a file of {format} holds nothing else.", "harness report RUN says why."
        )
    return numbered


def _cell(cell: Cell, value: Value | None, cause: Missing | None, found: Lookup) -> CellResult:
    estimate = value.estimate if value else None
    return CellResult(
        cell=cell,
        status=Status.OK if estimate else found.status(cell) or Status.INTERRUPTED,
        estimate=estimate,
        launches=found.numbers.get(cell, ()),
        shape=value.shape if value else None,
        undone=value.undone if value else "",
        cause=cause,
    )


def _comparisons(table: Table) -> list[ComparisonResult]:
    axes = names.varying(table)
    heads = [(index, head, names.what(table, head)) for index, head in enumerate(table.columns) if head.other]
    return [
        ComparisonResult(head.comparison, names.place(table, row, axes), what, compared)
        for row in table.rows
        for index, head, what in heads
        if head.comparison and (compared := row.values[index].compared)
    ]
