"""Work done: the exact numbers of calls in a step, and the functions in which they differ."""

from collections.abc import Iterator, Mapping
from functools import partial

from harness.analysis.results import Results
from harness.analysis.tables import MeasuredCell, ScenarioTable
from harness.analysis.work_counts import COUNTS, StepWork
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.report import names
from harness.report.blocks import FILES, Block, Bold, Column, Items, Section, Text, tabulate
from harness.report.comparisons import list_lines
from harness.report.phrases import describe_change, format_count, format_heading

#: The largest number of comparisons with a sentence. The table has the counts of all cells.
LINES = 10

_METHOD = (
    "The first launch of each cell counts the calls of a step exactly, after everything that is timed. Counts aren't "
    "times: they don't show whether a kernel became slower. Another version of Python can make other calls."
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on the counted calls; nothing if no cell has counts."""
    blocks = [block for table in results.tables for block in _list_blocks(results, table)]
    if blocks:
        yield Section("Work done", "work", [*blocks, Text(_METHOD, True, where=FILES)])


def _list_blocks(results: Results, table: ScenarioTable) -> Iterator[Block]:
    work = results.work
    cells = [cell for cell in results.measured[table.scenario.name] if cell.cell in work]
    if not cells:
        return
    yield from format_heading(results, table.scenario, where=FILES)
    sizes: list[tuple[float, str, str]] = []
    compared = [line for line in list_lines(table) if {line.compared.cell, line.compared.other} <= work.keys()]
    for line in compared:
        one, other = work[line.compared.cell], work[line.compared.other]
        if text := describe_change(one, other):
            sizes.append((-abs(one.calls - other.calls), line.name, f": {text}"))
    if sizes:
        yield Items([[Bold(name), text] for _, name, text in sorted(sizes)[:LINES]], where=FILES)
    if equal_count := len(compared) - len(sizes):
        yield Text(f"The counts are identical in {counted(equal_count, 'comparison')}.", where=FILES)
    columns: list[Column[MeasuredCell]] = [Column("cell", partial(names.name_measured, table), is_label=True)]
    columns += [
        Column(heading, partial(_format_count, work, name), is_number=True, is_optional=True)
        for name, heading in COUNTS.items()
    ]
    yield tabulate(f"Work per step, {table.scenario.title}", columns, cells, cell=lambda cell: cell.cell, noun="cell")


def _format_count(work: Mapping[Cell, StepWork], name: str, cell: MeasuredCell) -> str:
    count = work[cell.cell].counts[name]
    return format_count(count) if count else ""
