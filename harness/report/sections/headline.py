"""The table on the first screen: the first comparison in each scenario's header, largest difference first.

The table has at most LINES lines. If there are more comparisons, it shows those with a difference, and a sentence
counts all others. Releases are in their order, and a long table shows those in which something changed. A run of
several scenarios has one line per scenario.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harness.analysis.answers import Answer, Finding, describes_cell
from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Estimate
from harness.analysis.verdicts import Verdict
from harness.model.scenario import ENVIRONMENT, OWN, STEP, Cell
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import EVERYWHERE, FILES, Block, Column, Entry, Figure, Text, Where, tabulate
from harness.report.charts import forest, releases
from harness.report.charts.axes import choose_ratio_domain
from harness.report.charts.vega import Picture
from harness.report.comparisons import NO_VERDICT, count_verdicts, list_all_lines, list_lines
from harness.report.format import unit_of
from harness.report.sections import no_results, release_changes

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
        pair = (compared.cell, compared.other)
        return pair if describes_cell(self.answer.comparison) else (pair[1], pair[0])


def find_leading(results: Results) -> list[Answer]:
    """Return the results of the first comparison of each table, in the order of the run's results."""
    first_answers: dict[int, Answer] = {}
    for answer in results.answers:
        first_answers.setdefault(id(answer.table), answer)
    return [answer for answer in results.answers if answer.comparison == first_answers[id(answer.table)].comparison]


def find_shared(results: Results) -> dict[str, str]:
    """Return the axis values that all lines share; empty if the lines come from several tables."""
    answers = find_leading(results)
    if len({id(answer.table) for answer in answers}) != 1:
        return {}
    first, *others = [{**answer.context, **answer.common} for answer in answers]
    return {axis: value for axis, value in first.items() if all(context.get(axis) == value for context in others)}


def make_blocks(results: Results) -> Iterator[Block]:
    """Yield the table, and a sentence that counts the other comparisons; nothing if there are no comparisons."""
    all_lines = [_HeadlineLine(answer, finding) for answer in find_leading(results) for finding in answer.findings]
    if not all_lines:
        return
    shown_lines = _select_lines(results, all_lines)
    table = tabulate(
        "Comparisons" if len(all_lines) == len(shown_lines) else "Main comparisons",
        list(_list_columns(results, shown_lines)),
        shown_lines,
        where=EVERYWHERE,
        noun="comparison",
    )
    pictures = _draw(results, shown_lines, [line.entries[0].text for line in table.lines])
    yield from (Figure(picture, where=FILES) for picture in pictures)
    yield table
    shown = {id(line.finding.compared) for line in shown_lines}
    verdicts = [line.compared.verdict for line in list_all_lines(results) if id(line.compared) not in shown]
    counts = [
        f"{counted(len(verdicts), 'other')}: {count_verdicts(verdicts)}." if verdicts else "",
        f"{no_results.count_cells(results)}." if results.missing else "",
    ]
    if any(counts):
        yield Text(" ".join(filter(None, counts)), where=EVERYWHERE ^ Where.DETAILS)


def _select_lines(results: Results, all_lines: Sequence[_HeadlineLine]) -> list[_HeadlineLine]:
    """Return the lines of the table, in their order."""
    lines = sorted(all_lines, key=lambda line: (not _is_comparable(line), -line.finding.ratio.distance))
    if results.has_several_scenarios:
        first_lines: dict[str, _HeadlineLine] = {}
        for line in lines:
            first_lines.setdefault(line.answer.table.scenario.name, line)
        return list(first_lines.values())
    if all(scenario.script for scenario in results.run.scenarios):
        # the own work is more interesting than the whole script, which includes the import of TensorFlow
        order = {OWN: 0, STEP: 1}
        return sorted(lines, key=lambda line: order.get(line.answer.table.quantity, 2))
    points = [point for line in release_changes.find_lines(results).values() for point in line if point.line]
    changes = release_changes.find_changes(results) if len(points) > LINES else points
    if changes:
        by_compared = {id(line.finding.compared): line for line in lines}
        return [by_compared[id(point.line.compared)] for point in changes if point.line]
    if len(lines) <= LINES:
        return lines
    return [line for line in lines if line.finding.verdict in DIFFERENT][:LINES] or lines[:LINES]


def draws_releases(results: Results) -> bool:
    """Return whether the first picture is the line over releases, which then isn't drawn again below."""
    return len(results.all_tables) == 1 and any(_draw_releases(results))


def _draw(results: Results, lines: Sequence[_HeadlineLine], labels: Sequence[str]) -> Iterator[Picture]:
    """Yield the picture of the lines: the line over releases or, if there is none, the ratios."""
    if draws_releases(results):
        yield from _draw_releases(results)
        return
    pairs = {_name_sides(line.answer) for line in lines}
    subject, base = next(iter(pairs)) if len(pairs) == 1 else ("the first", "the second")
    quantities = {names.measure(line.answer.table) for line in lines}
    are_times = all(is_time(line.answer.table.quantity) for line in lines)
    measure = next(iter(quantities)) if len(quantities) == 1 else "time" if are_times else "value"
    rows = [
        forest.Ratio(label, line.finding.ratio, line.finding.verdict or NO_VERDICT)
        for label, line in zip(labels, lines, strict=True)
        if _is_comparable(line) and not isinstance(line.finding.ratio, Difference)
    ]
    yield from forest.draw_answer(results, rows, f"{measure} of {subject} / {measure} of {base}")


def _draw_releases(results: Results) -> Iterator[Picture]:
    table = results.all_tables[0]
    return releases.draw(results, table, list_lines(table), titled=False)


def _list_columns(results: Results, lines: Sequence[_HeadlineLine]) -> Iterator[Column[_HeadlineLine]]:
    tables = {id(line.answer.table): line.answer.table for line in lines}
    pairs, common = {_name_sides(line.answer) for line in lines}, find_shared(results)
    bases = {base for _, base in pairs}
    (table, *other_tables) = tables.values()
    has_one_scenario = len({shown_table.scenario.name for shown_table in tables.values()}) == 1

    def find_words(line: _HeadlineLine) -> list[str]:
        line_table, scenario = line.answer.table, ""
        if other_tables:
            scenario = names.name_values(line_table) if has_one_scenario else line_table.scenario.name
        place = names.place(line_table, line.finding.row, names.find_varying_axes(line_table))
        context = {axis: value for axis, value in line.answer.context.items() if axis not in common}
        return [word for word in (scenario, *names.list_labels(line_table.scenario, context), place) if word]

    def make_label(line: _HeadlineLine) -> str:
        words, (subject, base) = find_words(line), _name_sides(line.answer)
        if not has_one_scenario:
            scenario, *words = words
            return f"{scenario}: {', '.join([f'{subject} vs {base}', *words])}"
        if len(pairs) > 1 or not words:
            words = [subject if is_base_named else f"{subject} vs {base}", *words]
        return ", ".join([*([line.finding.row.machine] if results.machines else []), *words])

    has_words = any(map(find_words, lines))
    if other_tables:
        heading = " vs ".join(*pairs) if len(pairs) == 1 else ""
    else:
        heading = _name_comparison(lines[0].answer, pairs, has_words=has_words)
    is_base_named = not other_tables and len(bases) == 1 and heading != _COMPARISON
    yield Column(heading, make_label, is_label=True)
    subject = next(iter(pairs))[0] if len(pairs) == 1 else "compared"
    base = next(iter(bases)) if len(bases) == 1 else "baseline"
    yield from _list_time_columns(lines, subject, base, has_unit=not other_tables)
    yield from _list_ratio_columns(results, lines, "ratio" if other_tables else f"{names.measure(table)} ratio")
    yield Column(
        "verdict", lambda line: Entry(line.finding.verdict or NO_VERDICT, _stands_out(results, line)), is_verdict=True
    )
    if not has_one_scenario:
        yield Column("others", partial(_count_others, results), is_optional=True, where=EVERYWHERE ^ Where.TERMINAL)


def _list_time_columns(
    lines: Sequence[_HeadlineLine], subject: str, base: str, *, has_unit: bool
) -> Iterator[Column[_HeadlineLine]]:
    """Yield the columns with the values of the base and of the compared side. Without `has_unit`, values have units."""
    tables = {id(line.answer.table): line.answer.table for line in lines}
    values = {key: table.cells() for key, table in tables.items()}
    units = {key: unit_of(table) for key, table in tables.items()}
    symbol = next(iter(units.values())).symbol if has_unit else ""

    def make_entry(at: int, line: _HeadlineLine) -> Entry:
        cell = line.cells[at]
        value, unit = values[id(line.answer.table)].get(cell), units[id(line.answer.table)]
        if value is None or value.estimate is None:
            return Entry("", cells=[cell])
        text = format.number(value.estimate.value * unit.factor)
        return Entry(text if has_unit else f"{text} {unit.symbol}".rstrip(), cells=[cell], order=value.estimate.value)

    for name, at in ((base, 1), (subject, 0)):
        yield Column(f"{name}, {symbol}" if symbol else name, partial(make_entry, at), is_number=True)


def _list_ratio_columns(
    results: Results, lines: Sequence[_HeadlineLine], measure: str
) -> Iterator[Column[_HeadlineLine]]:
    """Yield the columns with the ratios, and a column with their plot. The heading is `measure` or `difference`."""
    has_differences = any(isinstance(line.finding.ratio, Difference) for line in lines)

    def make_entry(format_ratio: Callable[[Estimate, Verdict | None], str], line: _HeadlineLine) -> Entry:
        ratio, verdict = line.finding.ratio, line.finding.verdict
        if not _is_comparable(line):
            return Entry("")
        stands_out = _stands_out(results, line)
        return Entry(format_ratio(ratio, verdict), cells=line.cells, order=ratio.value, stands_out=stands_out)

    # on a terminal, the ratio turned round would hide the plot
    for where, format_ratio in (
        (Where.TERMINAL, lambda ratio, _: format.ratio(ratio)),
        (EVERYWHERE ^ Where.TERMINAL, format.ratio_and_inverse),
    ):
        heading = "difference" if has_differences else measure
        yield Column(heading, partial(make_entry, format_ratio), is_number=True, where=where)
    comparable = [line.finding.ratio for line in lines if _is_comparable(line)]
    if not comparable or has_differences:
        return
    domain = choose_ratio_domain(comparable, results.run.plan.margin)
    # the plot has the same bar, at a ratio of 1
    smaller, larger = ("faster", "slower") if is_time(lines[0].answer.table.quantity) else ("less", "more")
    yield Column(
        f"{smaller} │ {larger}",
        lambda line: Entry(format.plot_ratio(line.finding.ratio, domain) if _is_comparable(line) else "", is_code=True),
        where=EVERYWHERE ^ Where.PAGE,
    )


def _name_comparison(answer: Answer, pairs: Collection[tuple[str, str]], *, has_words: bool) -> str:
    """Return the heading of the rows: the name of the comparison.

    Environments are compared under their own names, because the author of a header doesn't know a run's environments.
    If the rows have no other words, they contain the names of the environments.
    """
    entry, (subject, base) = answer.comparison, next(iter(pairs))
    if entry.along != ENVIRONMENT or entry.pick:
        return entry.name
    if len(pairs) > 1:
        return f"environment vs {base}"
    return f"{subject} vs {base}" if has_words else _COMPARISON


def _name_sides(answer: Answer) -> tuple[str, str]:
    """Return the names of the compared side and the base: `tf2.0 eager`, `tf1.14 graph`."""
    scenario, along = answer.table.scenario, answer.comparison.along
    subject, base = (names.label(scenario, along, level) for level in (answer.subject, answer.base))
    return " ".join([subject, *answer.subject_has]), " ".join([base, *answer.base_has])


def _is_comparable(line: _HeadlineLine) -> bool:
    return line.finding.verdict is not Verdict.DIFFERENT_WORK


def _count_others(results: Results, line: _HeadlineLine) -> str:
    """Return the verdicts of the other comparisons of a scenario."""
    scenario, compared = line.answer.table.scenario, line.finding.compared
    return count_verdicts(
        other.compared.verdict
        for other in list_all_lines(results)
        if other.table.scenario is scenario and other.compared is not compared
    )


def _stands_out(results: Results, line: _HeadlineLine) -> bool:
    """Return whether a line is emphasized: it reports a difference, and the measurement isn't poor."""
    return line.finding.verdict in DIFFERENT and not results.is_poor
