"""One section per table of a scenario: its comparisons with verdicts, and its times."""

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import GROWTH
from harness.report import format, names
from harness.report.blocks import FILES, Block, Column, Entry, Figure, Section, Text, Where, tabulate
from harness.report.charts import forest, releases
from harness.report.charts.axes import choose_ratio_domain
from harness.report.comparisons import ComparisonLine, count_verdicts, list_lines, sort_by_size
from harness.report.format import unit_of
from harness.report.sections import headline
from harness.report.sections.remarks import make_remark
from harness.report.sections.times import make_label_columns, make_times

#: The heading of the column with remarks.
REMARKS = "remarks"


def make_sections(results: Results) -> Iterator[Section]:
    """Yield a section for each table: for each scenario with a result, and for each of its other quantities.

    Sections of printed numbers that have several settings come last.
    """
    yield from _make_sections(results, "scenario")
    for number, split in enumerate(results.by_setting, 1):
        yield from _make_sections(split, f"printed-{number}")


def _make_sections(results: Results, name: str) -> Iterator[Section]:
    for number, table in enumerate(results.all_tables, 1):
        compared = sort_by_size(list_lines(table))
        blocks = [*(make_comparisons(results, table, compared) if compared else ()), *make_times(results, table)]
        yield Section(names.name_table(table), f"{name}-{number}", blocks)


def make_comparisons(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Block]:
    """Yield the table of comparisons, its charts and the counts of verdicts."""
    table_columns = [*make_label_columns(table, lambda line: line.row), *make_columns(results, table, compared)]
    # a line chart over releases replaces the chart of ratios
    drawn_pairs = releases.select_drawn_pairs(results, table, compared)
    other_lines = [line for line in compared if (line.compared.cell, line.compared.other) not in drawn_pairs]
    if not headline.draws_releases(results):
        yield from (Figure(picture, where=FILES) for picture in releases.draw(results, table, compared))
    yield from map(Figure, forest.draw_comparisons(results, table, other_lines))
    caption = f"Comparisons, {names.name_table(table)}"
    yield tabulate(caption, table_columns, compared, where=FILES, noun="comparison", is_searchable=True)
    if len(compared) > 1:
        counts = count_verdicts(line.compared.verdict for line in compared)
        yield Text(f"Of {len(compared)} comparisons: {counts}.", where=FILES)


def make_columns(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]
) -> list[Column[ComparisonLine]]:
    """Return the columns of the table of comparisons."""
    return [
        Column("comparison", lambda line: line.what, is_label=True),
        *(
            _list_difference_columns(table)
            if table.quantity == GROWTH
            else _list_ratio_columns(results, table, compared)
        ),
        Column("verdict", lambda line: line.compared.verdict or "", is_optional=True, is_verdict=True),
        Column(REMARKS, lambda line: make_remark(results, line.compared, of=line.table.quantity), is_optional=True),
    ]


def _list_ratio_columns(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]
) -> list[Column[ComparisonLine]]:
    comparable = [line.compared.ratio for line in compared if _is_comparable(line)]
    domain = choose_ratio_domain(comparable, results.run.plan.margin)
    sides = "below 1 faster, above slower" if is_time(table.quantity) else "below 1 less, above more"
    return [
        Column(
            f"{names.measure(table)} ratio",
            lambda line: _make_ratio_entry(line, lambda ratio: format.ratio_and_inverse(ratio, line.compared.verdict)),
            is_number=True,
        ),
        Column(sides, lambda line: _make_plot_entry(line, domain), where=Where.PASTE | Where.TERMINAL),
    ]


def _list_difference_columns(table: ScenarioTable) -> list[Column[ComparisonLine]]:
    unit = unit_of(table)

    def format_difference(difference: Estimate) -> str:
        assert isinstance(difference, Difference), "memory growth is a difference, not a ratio"
        return format.difference(difference, unit)

    heading = f"difference, {unit.symbol} per call"
    return [Column(heading, lambda line: _make_ratio_entry(line, format_difference), is_number=True)]


def _is_comparable(line: ComparisonLine) -> bool:
    return line.compared.verdict is not Verdict.DIFFERENT_WORK


def _make_ratio_entry(line: ComparisonLine, text_of: Callable[[Estimate], str]) -> Entry:
    compared = line.compared
    if not _is_comparable(line):
        return Entry("")
    rounds_note = format.format_fewer_rounds(compared.ratio, line.table.rounds)
    text = " ".join(filter(None, [text_of(compared.ratio), rounds_note]))
    return Entry(text, cells=(compared.cell, compared.other), order=compared.ratio.value)


def _make_plot_entry(line: ComparisonLine, domain: Interval) -> Entry:
    return Entry(format.plot_ratio(line.compared.ratio, domain) if _is_comparable(line) else "", is_code=True)
