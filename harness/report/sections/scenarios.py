"""One section per table of a scenario: its comparisons with verdicts, and its times."""

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.quantities import PIECE, is_time
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Estimate, Interval
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict, Withheld, describe_too_few
from harness.model.defaults import ALPHA, FEWEST_ROUNDS
from harness.model.scenario import GROWTH, PERCENTILES
from harness.model.texts import counted, joined
from harness.report import format, names, plots
from harness.report.blocks import FILES, Block, Column, Entry, Figure, Section, Text, Where, tabulate
from harness.report.charts import forest, releases
from harness.report.charts.axes import choose_ratio_domain
from harness.report.comparisons import (
    HOLM,
    ComparisonLine,
    has_too_few_rounds,
    list_all_lines,
    list_lines,
    sort_by_size,
    summarize_verdicts,
)
from harness.report.format import unit_of
from harness.report.sections import headline, on_device
from harness.report.sections.remarks import make_remark
from harness.report.sections.timeline import describe_after
from harness.report.sections.times import make_label_columns, make_times

#: The heading of the column with remarks.
REMARKS = "remarks"

#: The explanation of verdicts with few rounds.
ALIKE = "With fewer than {} rounds, intervals assume that launches vary equally, and verdicts need a ratio beyond 1.5×."

#: The explanation of how the variances of ratios are estimated.
_MODERATED = (
    "With few rounds, the variance of a single ratio is uncertain. So it is adjusted towards the variance of its group "
    "(Smyth 2004), unless a remark says otherwise."
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield a section for each table: for each scenario with a result, and for each of its other quantities.

    Sections of printed numbers that have several settings come last.
    """
    yield from _make_sections(results, "scenario")
    for number, split in enumerate(results.by_setting, 1):
        yield from _make_sections(split, f"printed-{number}")


def _make_sections(results: Results, name: str) -> Iterator[Section]:
    """Yield a section for each table. The first section of a quantity explains its ratios and verdicts.

    The first section of all explains intervals.
    """
    explained: set[str] = set()
    for number, table in enumerate(results.all_tables, 1):
        compared = sort_by_size(list_lines(table))
        blocks: list[Block] = []
        if compared:
            blocks += make_comparisons(results, table, compared)
            if names.measure(table) not in explained:
                blocks.append(Text(_explain_verdicts(results, table), True, where=FILES))
            if not explained:
                blocks += _explain_intervals(results)
            explained.add(names.measure(table))
        times = make_times(results, table, is_first=number == 1)
        yield Section(names.name_table(table), f"{name}-{number}", [*blocks, *times])


def make_comparisons(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Block]:
    """Yield the table of comparisons, its chart and the counts of verdicts."""
    has_few_rounds = has_too_few_rounds(line.compared for line in compared)
    table_columns = [
        *make_label_columns(table, lambda line: line.row),
        *make_columns(results, table, compared, has_few_rounds),
    ]
    # a line chart over releases replaces the chart of ratios
    drawn_pairs = releases.select_drawn_pairs(results, table, compared)
    other_lines = [line for line in compared if (line.compared.cell, line.compared.other) not in drawn_pairs]
    if not headline.draws_releases(results):
        yield from (Figure(picture, where=FILES) for picture in releases.draw(results, table, compared))
    yield from map(Figure, forest.draw_comparisons(results, table, other_lines))
    caption = f"Comparisons, {names.name_table(table)}"
    yield tabulate(caption, table_columns, compared, where=FILES, noun="comparison", is_searchable=True)
    yield Text(describe_verdicts(compared, has_few_rounds), where=FILES)


def make_columns(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine], has_few_rounds: bool
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
        Column(
            REMARKS,
            lambda line: make_remark(results, line.compared, has_few_rounds, of=line.table.quantity),
            is_optional=True,
        ),
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
            lambda line: _make_ratio_entry(line, format.ratio),
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
    return Entry(plots.plot_ratio(line.compared.ratio, domain) if _is_comparable(line) else "", is_code=True)


def describe_verdicts(compared: Sequence[ComparisonLine], has_few_rounds: bool) -> str:
    """Return the count of each verdict, and how many verdicts an A/A control withholds.

    For example, `Of 5 comparisons: 3 slower, 2 unclear.` Each machine and each quantity has its own
    control, so a control may withhold only some verdicts.
    """
    total = counted(len(compared), "comparison")
    if has_few_rounds:
        return f"{total}: {describe_too_few(max(line.compared.ratio.rounds for line in compared))}."
    verdicts = [line.compared.verdict for line in compared]
    withheld = sum(line.compared.withheld is Withheld.CONTROL for line in compared)
    if withheld and withheld == len(verdicts) - verdicts.count(Verdict.DIFFERENT_WORK):
        return f"{total}: no verdicts, because two identical cells differed by more than the margin."
    counts = summarize_verdicts(verdicts) if any(verdicts) else f"{total}, none with a verdict."
    if not withheld:
        return counts
    withheld_count = counted(withheld, "verdict", "is")
    return f"{counts} {withheld_count} withheld, because two identical cells differed by more than the margin."


def _explain_intervals(results: Results) -> Iterator[Text]:
    """Yield explanations of the intervals and verdicts of all tables."""
    lines = list_all_lines(results)
    with_interval = [line for line in lines if _is_comparable(line) and line.compared.ratio.interval]
    if any(line.table.quantity != GROWTH for line in lines):
        yield Text("In a plot, ● is the ratio, ─ is its interval, and │ is 1.", True, where=Where.PASTE)
    yield from _describe_looks(results, lines)
    sentences = [
        ALIKE.format(FEWEST_ROUNDS)
        if any(line.compared.ratio.rounds < FEWEST_ROUNDS for line in with_interval)
        else "",
        # Holm's procedure judges the comparisons of a table together
        f"{HOLM} {_MODERATED}" if len(with_interval) > len({id(line.table) for line in with_interval}) else "",
        on_device.LEGEND if any(on_device.make_remark(results, line.compared) for line in lines) else "",
    ]
    yield from (Text(sentence, True, where=FILES) for sentence in sentences if sentence)


def _describe_looks(results: Results, compared: Sequence[ComparisonLine]) -> Iterator[Text]:
    """Yield explanations if verdicts were computed more than once during the run, because this changes their level."""
    run, looks = results.run, [results.found.look(line.compared.cell) for line in compared]
    previous = [describe_after(sorted(set(look.values()))) for look in run.looks]
    shares = sorted({look.share for look in looks})
    reduced = [format.share(ALPHA * share) for share in shares if share < 1.0]
    if previous and reduced:
        levels = " to ".join(dict.fromkeys((reduced[0], format.share(ALPHA * shares[-1]))))
        yield Text(
            f"This run was reported {joined(previous)}, and then continued. Its verdicts now use a level of {levels} "
            f"instead of {format.share(ALPHA)}, so that all of its reports together have a wrong verdict in at most "
            f"{format.share(ALPHA)} of runs.",
            True,
            where=FILES,
        )
    elif reduced:
        levels = " to ".join(dict.fromkeys((reduced[0], reduced[-1])))
        yield Text(
            "A group ended when the outcomes of its claims were clear. After the first check of a group, its verdicts "
            f"use a level of {levels} instead of {format.share(ALPHA)}, so that all checks together show a wrong "
            f"outcome in at most {format.share(ALPHA)} of runs.",
            True,
            where=FILES,
        )
    if run.plan.precision and any(look.settled for look in looks):
        yield Text(
            f"A group ended when the interval of each comparison was within ±{format.share(run.plan.precision)} or its "
            "verdict was clear. If a verdict became clear with a wider interval, this interval has the level at which "
            "the verdict became clear.",
            True,
            where=FILES,
        )


def _explain_verdicts(results: Results, table: ScenarioTable) -> str:
    """Explain the table's ratios or differences, and its verdicts."""
    margin, measure = format.share(results.run.plan.margin), names.measure(table)
    if table.quantity == GROWTH:
        return (
            "A difference is the memory that each call of the first cell keeps, minus the memory that each call of "
            f"the second cell keeps. A verdict describes the first cell: more or less (by more than "
            f"{format.bytes_(PIECE)} over "
            "the later half of the calls), same (within this amount), or unclear (the interval allows more than one of "
            "these)."
        )
    comparative, verdicts = ("longer", "faster or slower") if is_time(table.quantity) else ("more", "less or more")
    text = (
        "A cell is the combination of one environment and one value of each axis. A ratio is the "
        f"{measure} of the first cell divided by the {measure} of the second cell. If it is above 1, the first "
        f"takes {comparative}. "
        f"A verdict describes the first cell: {verdicts} (by more than {margin}), same (within "
        f"{margin}), or unclear (the interval allows more than one of these)."
    )
    if table.quantity in PERCENTILES:
        share = format.share(PERCENTILES[table.quantity])
        return (
            f"{text} {table.quantity}: {share} of the single steps of a launch took at most this long. Each launch has "
            "one value, and intervals are over launches, because steps of one launch aren't independent. CPU "
            "contention isn't subtracted."
        )
    return text
