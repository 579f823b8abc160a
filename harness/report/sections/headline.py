"""The table on the first screen: the first comparison in each scenario's header, largest difference first.

The table has at most LINES lines. If there are more comparisons, it shows those with a difference, and a sentence
counts the others.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.answers import Answer, Finding, describes_cell
from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Estimate
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import ENVIRONMENT, Cell
from harness.report import format, names, plots
from harness.report.blocks import EVERYWHERE, Block, Column, Entry, Text, Where, tabulate
from harness.report.charts.axes import choose_ratio_domain
from harness.report.comparisons import NO_VERDICT, count_verdicts
from harness.report.format import unit_of

#: The largest number of lines in the table.
LINES = 10

#: The heading of rows that contain the names of both sides.
_COMPARISON = "comparison"

#: The verdicts that report a difference.
DIFFERENT = (Verdict.SLOWER, Verdict.MORE, Verdict.FASTER, Verdict.LESS)


@dataclass(frozen=True, slots=True)
class _HeadlineLine:
    answer: Answer
    finding: Finding

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The cells of the compared side and of the base."""
        compared = self.finding.compared
        both = (compared.cell, compared.other)
        return both if describes_cell(self.answer.comparison) else (both[1], both[0])


def find_leading(results: Results) -> list[Answer]:
    """Return the results of the first comparison of each table, in the order of the run's results."""
    first: dict[int, Answer] = {}
    for answer in results.answers:
        first.setdefault(id(answer.table), answer)
    return [answer for answer in results.answers if answer.comparison == first[id(answer.table)].comparison]


def find_shared(results: Results) -> dict[str, str]:
    """Return the axis values that all lines share; empty if the lines come from several tables."""
    answers = find_leading(results)
    if len({id(answer.table) for answer in answers}) != 1:
        return {}
    first, *rest = [{**answer.context, **answer.common} for answer in answers]
    return {axis: value for axis, value in first.items() if all(context.get(axis) == value for context in rest)}


def make_blocks(results: Results) -> Iterator[Block]:
    """Yield the table, and a sentence that counts the other comparisons; nothing if there are no comparisons."""
    every = [_HeadlineLine(answer, finding) for answer in find_leading(results) for finding in answer.findings]
    if not every:
        return
    every.sort(key=lambda line: (line.finding.verdict is Verdict.DIFFERENT_WORK, -line.finding.distance))
    shown = every
    if len(every) > LINES:
        shown = [line for line in every if line.finding.verdict in DIFFERENT][:LINES] or every[:LINES]
    table = tabulate(
        "Largest differences" if len(every) > len(shown) else "Comparisons",
        list(_columns(results, shown)),
        shown,
        where=EVERYWHERE,
        noun="comparison",
    )
    yield table
    decided = [
        f"{row.entries[0].text}: {format.format_interval(deciding.interval)}"
        for row, line in zip(table.lines, shown, strict=True)
        if (deciding := line.finding.deciding)
    ]
    if decided:
        yield Text(
            f"Verdicts that a narrower interval than the shown one decides: {'; '.join(decided)}.",
            where=EVERYWHERE ^ Where.DETAILS,
        )
    verdicts = [line.finding.verdict for line in every if line not in shown]
    if verdicts:
        yield Text(
            f"Comparisons that are not in this table: {count_verdicts(verdicts)}.", where=EVERYWHERE ^ Where.DETAILS
        )


def _columns(results: Results, shown: Sequence[_HeadlineLine]) -> Iterator[Column[_HeadlineLine]]:
    tables = {id(line.answer.table): line.answer.table for line in shown}
    pairs, common = {_sides(line.answer) for line in shown}, find_shared(results)
    bases = {base for _, base in pairs}
    (table, *other_tables) = tables.values()
    one_scenario = len({shown_table.scenario.name for shown_table in tables.values()}) == 1

    def find_words(line: _HeadlineLine) -> list[str]:
        own_table, row = line.answer.table, line.finding.row
        scenario, place = (
            (names.name_values(own_table) if one_scenario else own_table.scenario.name) if other_tables else "",
            names.place(own_table, row, names.find_varying_axes(own_table)),
        )
        context = {axis: value for axis, value in line.answer.context.items() if axis not in common}
        return [word for word in (scenario, *names.list_labels(own_table.scenario, context), place) if word]

    def label(line: _HeadlineLine) -> str:
        words = find_words(line)
        subject, base = _sides(line.answer)
        if len(pairs) > 1 or not words:
            words = [subject if is_base_named else f"{subject} vs {base}", *words]
        return ", ".join([*([line.finding.row.machine] if results.machines else []), *words])

    has_words = any(map(find_words, shown))
    if other_tables:
        heading = " vs ".join(*pairs) if len(pairs) == 1 else ""
    else:
        heading = _name_comparison(shown[0].answer, pairs, has_words=has_words)
    is_base_named = not other_tables and len(bases) == 1 and heading != _COMPARISON
    yield Column(heading, label, is_label=True)
    differ = any(isinstance(line.finding.ratio, Difference) for line in shown)
    if not other_tables:
        subject = next(iter(pairs))[0] if len(pairs) == 1 else "compared"
        yield from _times(table, subject, next(iter(bases)) if len(bases) == 1 else "baseline")
    measure = "difference" if differ else f"{names.measure(table)} ratio" if not other_tables else "ratio"
    yield Column(measure, _ratio, is_number=True)
    comparable = [line.finding.ratio for line in shown if _is_comparable(line)]
    if comparable and not differ:
        drawn = choose_ratio_domain(comparable, results.run.plan.margin)
        # the plot has the same bar, at a ratio of 1
        below, above = ("faster", "slower") if is_time(table.quantity) else ("less", "more")
        yield Column(
            f"{below} │ {above}",
            lambda line: Entry(
                plots.plot_ratio(line.finding.ratio, drawn) if _is_comparable(line) else "", is_code=True
            ),
            where=EVERYWHERE ^ Where.PAGE,
        )
    yield Column("verdict", _verdict, is_verdict=True)


def _times(table: ScenarioTable, subject: str, base: str) -> Iterator[Column[_HeadlineLine]]:
    """Yield the columns with the times of the base and of the compared side."""
    unit, cells = unit_of(table), table.cells()
    symbol = f", {unit.symbol}" if unit.symbol else ""

    def time(cell: Cell) -> Entry:
        estimate = cells[cell].estimate if cell in cells else None
        text = format.number(estimate.value * unit.factor) if estimate else ""
        return Entry(text, cells=[cell], order=estimate.value if estimate else None)

    yield Column(f"{base}{symbol}", lambda line: time(line.cells[1]), is_number=True)
    yield Column(f"{subject}{symbol}", lambda line: time(line.cells[0]), is_number=True)


def _name_comparison(answer: Answer, pairs: Collection[tuple[str, str]], *, has_words: bool) -> str:
    """Return the heading of the rows: the name of the comparison.

    Environments are compared under their own names, because the name in a header can't know the environments of a run.
    If the rows have no other words, they contain these names.
    """
    entry, (subject, base) = answer.comparison, next(iter(pairs))
    if entry.along != ENVIRONMENT or entry.pick:
        return entry.name
    if len(pairs) > 1:
        return f"environment vs {base}"
    return f"{subject} vs {base}" if has_words else _COMPARISON


def _sides(answer: Answer) -> tuple[str, str]:
    """Return the names of the compared side and the base: `tf2.0 eager`, `tf1.14 graph`."""
    scenario, along = answer.table.scenario, answer.comparison.along
    subject, base = (names.label(scenario, along, level) for level in (answer.subject, answer.base))
    return " ".join([subject, *answer.subject_has]), " ".join([base, *answer.base_has])


def _ratio(line: _HeadlineLine) -> Entry:
    if not _is_comparable(line):
        return Entry("")
    ratio: Estimate = line.finding.ratio
    return Entry(format.ratio(ratio), cells=line.cells, order=ratio.value, stands_out=line.finding.verdict in DIFFERENT)


def _is_comparable(line: _HeadlineLine) -> bool:
    return line.finding.verdict is not Verdict.DIFFERENT_WORK


def _verdict(line: _HeadlineLine) -> Entry:
    verdict = line.finding.verdict
    return Entry(verdict or NO_VERDICT, verdict in DIFFERENT)
