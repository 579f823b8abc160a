"""One section per table of a scenario: its comparisons with verdicts, and its times."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from harness.analysis.comparisons import Compared
from harness.analysis.quantities import PIECE, is_near_jump, is_time
from harness.analysis.results import Results
from harness.analysis.statistics import FEWEST_FOR_INTERVAL, Difference, Estimate, Interval
from harness.analysis.tables import Row, ScenarioTable, Value
from harness.analysis.verdicts import Judgement, Verdict, Withheld, describe_too_few
from harness.model.defaults import ALPHA, FEWEST_ROUNDS, LEVEL
from harness.model.scenario import ENVIRONMENT, GROWTH, PERCENTILES, STEP
from harness.model.texts import counted, joined
from harness.report import format, names, plots
from harness.report.blocks import FILES, Block, Column, Entry, Figure, Section, Table, Text, Where, tabulate
from harness.report.charts import forest, releases
from harness.report.charts import times as times_chart
from harness.report.charts.axes import choose_ratio_domain
from harness.report.comparisons import (
    HOLM,
    ComparisonLine,
    describe_deciding,
    describe_rounds_needed,
    has_too_few_rounds,
    list_lines,
    sort_by_size,
    summarize_verdicts,
)
from harness.report.format import CHANGING, OUTLYING, UNDONE, UNEVEN, Unit, marks, unit_of
from harness.report.phrases import capitalize, describe_pythons, join_remarks, list_names
from harness.report.sections import interleaving, on_device
from harness.report.sections.timeline import describe_after

#: If a table would have more columns of times than this, each environment has a separate line.
COLUMNS = 8

#: The heading of the column with remarks.
REMARKS = "remarks"

#: The heading of percent differences, if the scenario's source reports them. They are calculated as in the source.
AS_THE_SOURCE = "as the source counts"

#: The explanation of verdicts with few rounds.
ALIKE = "With fewer than {} rounds, intervals assume that launches vary equally, and verdicts need a ratio beyond 1.5×."

#: The reasons why the interval of a cell's time can be wider than the intervals of its ratios, and has another level.
BETWEEN_ROUNDS = (
    "These intervals include variation between rounds, which cancels out in the ratios. No verdict depends on them, so "
    "each one has this confidence by itself; the intervals of ratios have it all together."
)

#: The explanation of how the variances of a table's comparisons are estimated.
_MODERATED = (
    "With few rounds, the variance of one comparison is uncertain. So each variance is adjusted towards the variance "
    "of its group (Smyth 2004), unless a remark says otherwise."
)

#: The remark on a step time that changes during the measurement, if cells can't be compared at equal numbers of steps.
NOT_COMPARABLE = "the time per step changes during the measurement, and too few steps can be compared"

Labelled = TypeVar("Labelled")


def make_sections(results: Results) -> Iterator[Section]:
    """Yield a section for each table: for each scenario with a result, and for each of its other quantities.

    The first section of a quantity explains ratios and verdicts for all tables of the quantity.
    """
    explained: set[str] = set()
    for number, table in enumerate(results.all_tables, 1):
        compared = sort_by_size(list_lines(table))
        blocks: list[Block] = []
        if compared:
            first = names.measure(table) not in explained
            blocks += [
                *make_comparisons(results, table, compared),
                *make_legends(results, table, compared, first=first),
            ]
            explained.add(names.measure(table))
        yield Section(names.name_table(table), f"scenario-{number}", [*blocks, *make_times(results, table)])


# Comparisons.


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
    yield from (Figure(picture, where=FILES) for picture in releases.draw(results, table, compared))
    yield from map(Figure, forest.draw_comparisons(results, table, other_lines))
    caption = f"Comparisons, {names.name_table(table)}"
    yield tabulate(caption, table_columns, compared, where=FILES, noun="comparison", is_searchable=True)
    yield Text(describe_verdicts(compared, has_few_rounds), where=FILES)
    percent_lines = [line for line in compared if _format_percent(line)]
    if percent_lines:
        table_columns = [
            *make_label_columns(table, lambda line: line.row),
            Column("comparison", lambda line: line.what, is_label=True),
            Column(AS_THE_SOURCE, _format_percent, is_number=True),
        ]
        yield tabulate(
            f"{capitalize(AS_THE_SOURCE)}, {names.name_table(table)}", table_columns, percent_lines, where=Where.DETAILS
        )


def make_label_columns(table: ScenarioTable, row: Callable[[Labelled], Row]) -> list[Column[Labelled]]:
    """Return the columns that distinguish rows: the device, if there are several, and the axes in which rows differ."""

    def make_label_column(name: str) -> Column[Labelled]:
        return Column(name, lambda line: {"device": row(line).device.value, **row(line).axes}[name], is_label=True)

    return [
        make_label_column(name)
        for name in [*(["device"] if table.several_devices else []), *names.find_varying_axes(table)]
    ]


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
            lambda line: _make_ratio_entry(line, format.ratio, table.rounds),
            is_number=True,
        ),
        Column(sides, lambda line: _make_plot_entry(line, domain), where=Where.PASTE | Where.TERMINAL),
        Column(AS_THE_SOURCE, _format_percent, is_number=True, is_optional=True, where=Where.PAGE),
    ]


def _list_difference_columns(table: ScenarioTable) -> list[Column[ComparisonLine]]:
    unit = unit_of(table)

    def format_difference(difference: Estimate) -> str:
        assert isinstance(difference, Difference), "memory growth is a difference, not a ratio"
        return format.difference(difference, unit)

    heading = f"difference, {unit.symbol} per call"
    return [Column(heading, lambda line: _make_ratio_entry(line, format_difference, table.rounds), is_number=True)]


def _is_comparable(line: ComparisonLine) -> bool:
    return line.compared.verdict is not Verdict.DIFFERENT_WORK


def _make_ratio_entry(line: ComparisonLine, text_of: Callable[[Estimate], str], rounds: int) -> Entry:
    compared = line.compared
    if not _is_comparable(line):
        return Entry("")
    rounds_note = format.format_fewer_rounds(compared.ratio, rounds)
    text = " ".join(filter(None, [text_of(compared.ratio), rounds_note]))
    return Entry(text, cells=(compared.cell, compared.other), order=compared.ratio.value)


def _make_plot_entry(line: ComparisonLine, domain: Interval) -> Entry:
    return Entry(plots.plot_ratio(line.compared.ratio, domain) if _is_comparable(line) else "", is_code=True)


def _format_percent(line: ComparisonLine) -> str:
    return format.format_gain(line.compared.ratio.inverse) if line.entry.percent and _is_comparable(line) else ""


def make_remark(results: Results, compared: Compared, has_few_rounds: bool = False, *, of: str = STEP) -> str:
    """Return the remarks on one comparison.

    With `has_few_rounds`, all comparisons have too few rounds, and another sentence reports this.

    `of` is the compared quantity. Only the time per step has remarks on the work of a GPU.
    """
    return join_remarks(
        [
            describe_deciding(compared.deciding, of=of),
            describe_excess(compared),
            describe_pythons(compared.pythons),
            "work not checked" if compared.work.work == "not checked" else compared.work.reason,
            describe_too_few(compared.ratio.rounds)
            if compared.withheld is Withheld.FEW_ROUNDS and not has_few_rounds
            else "",
            interleaving.make_remark(compared.bias),
            describe_contention(compared, results.margin),
            describe_equal_steps(compared.steps, compared.withheld),
            describe_jump(results, compared, of),
            on_device.make_remark(results, compared) if of == STEP else "",
            describe_rounds_needed(results.found_of(of), compared.cell, compared.settling),
        ]
    )


def describe_contention(compared: Compared, margin: float) -> str:
    """Return a remark if the correction for CPU contention may change a ratio by at least `margin` (log scale)."""
    if compared.contention < margin:
        return ""
    share = format.share(float(f"{math.expm1(compared.contention):.2g}"))
    remark = f"the correction for CPU contention may be off by {share}"
    advice = "use a machine with less interference, or --clock cpu"
    return f"{remark}: {advice}" if compared.withheld is Withheld.CONTENTION else remark


def describe_excess(compared: Compared) -> str:
    """Return a remark if the variance of other launches isn't used for the interval of a comparison."""
    if not compared.excess:
        return ""
    factor = format.factor(compared.excess)
    return f"wider interval: between rounds, this ratio varies {factor} as much as the other launches of its group"


def describe_jump(results: Results, compared: Compared, of: str) -> str:
    """Return a remark if `of` is a percentile that is near a jump between fast and slow steps on one side."""
    sides = (compared.cell, compared.other)
    if of not in PERCENTILES or not any(is_near_jump(of, results.found.numbers.get(cell, ())) for cell in sides):
        return ""
    return f"{of} is near a jump between fast and slow steps, so its interval is too narrow"


def describe_equal_steps(steps: Interval | None, withheld: Withheld | None) -> str:
    """Return a remark on step times that change: the range of steps that are compared, or why none are compared."""
    if steps:
        return f"compared at the same number of steps: {format.steps(steps)}"
    return NOT_COMPARABLE if withheld is Withheld.TREND else ""


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


def make_legends(
    results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine], *, first: bool
) -> Iterator[Text]:
    """Yield the explanation of intervals and verdicts in a table. For the `first` table, also explain ratios."""
    if first:
        yield Text(_explain_verdicts(results, table), True, where=FILES)
        if table.quantity != GROWTH:
            yield Text("In a plot, ● is the ratio, ─ is its interval, and │ is 1.", True, where=Where.PASTE)
        yield from _describe_looks(results, compared)
    with_interval = [line.compared for line in compared if _is_comparable(line) and line.compared.ratio.interval]
    if with_interval:
        yield Text(describe_levels(with_interval), True, where=FILES)
    if len(with_interval) > 1:
        joint_level = _compute_joint_level(with_interval)
        verdicts = f"All of these verdicts are correct with {joint_level} confidence too. {HOLM} "
        text = (
            verdicts
            if any(comparison.verdict not in (None, Verdict.DIFFERENT_WORK) for comparison in with_interval)
            else ""
        )
        text += "" if table.quantity == GROWTH else _MODERATED
        if text:
            yield Text(text.rstrip(), True, where=FILES)
    if table.quantity == STEP and any(on_device.make_remark(results, line.compared) for line in compared):
        yield Text(on_device.LEGEND, True, where=FILES)


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


def describe_levels(judgements: Sequence[Compared | Judgement], min_rounds: int = FEWEST_ROUNDS) -> str:
    """Describe the confidence of intervals that are shown together, and the assumption for few rounds."""
    levels = sorted(judgement.level for judgement in judgements)
    level = " to ".join(dict.fromkeys(map(format.level, (levels[0], levels[-1]))))
    text = f"Each of these {len(judgements)} intervals has {level} confidence, so that all of them together have "
    text = (
        f"{text}{_compute_joint_level(judgements)}."
        if len(judgements) > 1
        else f"The interval of the ratio has {level} confidence."
    )
    rounds = [judgement.ratio.rounds for judgement in judgements]
    return f"{text} {ALIKE.format(min_rounds)}" if min(rounds) < min_rounds else text


def _compute_joint_level(judgements: Sequence[Compared | Judgement]) -> str:
    """Return the joint confidence level of all intervals (Bonferroni)."""
    return format.level(1.0 - sum(1.0 - judgement.level for judgement in judgements))


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


# the time per step


def make_times(results: Results, table: ScenarioTable) -> Iterator[Block]:
    """Yield the table of times, its chart and the meaning of its marks."""
    unit = unit_of(table)
    varying_axes = names.find_varying_axes(table)
    constants = [f"{axis} = {table.rows[0].axes[axis]}" for axis in table.row_axes if axis not in varying_axes]
    if constants:
        yield Text(f"The same in all rows: {', '.join(constants)}.", True, where=FILES)
    yield make_times_table(table)
    yield Text(explain_intervals(table, unit), True, where=FILES)
    yield from map(Figure, times_chart.draw(results, table))
    yield from (
        Text(sentence, True, where=FILES)
        for sentence in [*explain_marks(table), *_explain_no_percentiles(results, table)]
    )


def _explain_no_percentiles(results: Results, table: ScenarioTable) -> Iterator[str]:
    """Yield why cells with a time per step have no percentile, for the table of times per step."""
    varying_axes = names.find_varying_axes(table)
    for quantity in (name for name in table.scenario.quantities if name in PERCENTILES and table.quantity == STEP):
        index, cells, reason = results.found_of(quantity), list[str](), ""
        for row, column, value in table.times():
            cell = table.cell(row, column.side)
            launch = index.culprit(cell)
            if value.estimate and cell not in index.series and launch:
                cells.append(names.name_cell(table, row, column.side, varying_axes))
                reason = reason or " ".join(filter(None, [launch.error, launch.advice]))
        if cells:
            yield f"No {quantity} for {list_names(cells)}: {reason}"


def make_times_table(table: ScenarioTable) -> Table:
    """Return a table with a row per combination of axes and a column per environment and compared value.

    If there would be too many columns, each environment gets a separate row.
    """
    unit = unit_of(table)
    heads = [(at, head.side) for at, head in enumerate(table.columns) if head.other is None]
    environments = list(dict.fromkeys(side.environment for _, side in heads))
    if len(heads) > COLUMNS and len(environments) > 1:
        sides = [
            (names.name_side_values(table, side) or names.measure(table), side.environment, at) for at, side in heads
        ]
    else:
        sides, environments = [(names.name_side(table, side), "", at) for at, side in heads], [""]
    places: dict[str, dict[str, int]] = {}
    for heading, environment, at in sides:
        places.setdefault(heading, {})[environment] = at

    def column(heading: str, at: Mapping[str, int]) -> Column[tuple[Row, str]]:
        def time(line: tuple[Row, str]) -> Entry:
            row, environment = line
            return _make_time_entry(table, at[environment], unit, row) if environment in at else Entry("")

        return Column(", ".join(filter(None, [heading, _name_unit(table, unit)])), time, is_number=True)

    columns: list[Column[tuple[Row, str]]] = [
        *make_label_columns(table, lambda line: line[0]),
        Column(ENVIRONMENT, lambda line: line[1], is_label=True, is_optional=True),
        *(column(*place) for place in places.items()),
    ]
    rows = [(row, environment) for row in table.rows for environment in environments]
    return tabulate(
        f"{capitalize(names.name_values(table))}, {table.scenario.title}", columns, rows, where=FILES, noun="row"
    )


def _make_time_entry(table: ScenarioTable, index: int, unit: Unit, row: Row) -> Entry:
    value = row.values[index]
    if value.estimate is None:
        return Entry(value.status.value if value.status else "")
    parts = [
        format.time(value.estimate, unit),
        format.format_fewer_rounds(value.estimate, table.rounds),
        *marks(value, table.clock),
    ]
    return Entry(
        " ".join(filter(None, parts)), cells=[table.cell(row, table.columns[index].side)], order=value.estimate.value
    )


def explain_intervals(table: ScenarioTable, unit: Unit) -> str:
    """Explain the intervals next to the times."""
    rounds, step = table.rounds, capitalize(names.name_values(table))
    step += f" in {unit.symbol}" if unit.symbol else ""
    if rounds == 1:
        return f"{step}, from one round: no intervals, no verdict."
    if rounds < FEWEST_FOR_INTERVAL:
        return f"{step}: means of {counted(rounds, 'round')}, too few for intervals."
    has_fewer = any(value.estimate and value.estimate.rounds < rounds for *_, value in table.times())
    counts = " (fewer if n= is shown)" if has_fewer else ""
    level = format.level(LEVEL)
    text = (
        f"{step}; ± or the range in brackets is a {level} confidence interval over {counted(rounds, 'round')}{counts}."
    )
    compares = any(column.other for column in table.columns) and table.quantity != GROWTH
    return f"{text} {BETWEEN_ROUNDS}" if compares else text


def _name_unit(table: ScenarioTable, unit: Unit) -> str:
    return f"{unit.symbol} per call" if table.quantity == GROWTH else unit.symbol


def explain_marks(table: ScenarioTable) -> list[str]:
    """Explain the marks next to numbers, with one sentence per mark, which lists the marked numbers."""
    axes = names.find_varying_axes(table)
    by_mark: dict[str, list[str]] = {UNEVEN: [], OUTLYING: [], UNDONE: [], CHANGING: []}
    for row, column, value in table.times():
        for mark, extent in marks(value, table.clock).items():
            by_mark[mark].append(
                f"{names.name_cell(table, row, column.side, axes)}: {extent}{_plot_trend(value, mark)}"
            )
    sentences = {
        UNEVEN: "Uneven samples: the mean and the median of a launch's samples differ by more than 10 %. "
        "Affected launches:",
        OUTLYING: "Outliers: some launches of a cell are far from its other launches. The mean includes these "
        "outliers. Affected launches:",
        UNDONE: "The framework counted a different number of steps from the launch, or its count can't be read, so "
        "this may not be the time of one step:",
        CHANGING: f"{capitalize(table.clock.time)} per step depends on the number of steps before it. The mean is over "
        "the measured steps, and cells are compared at equal numbers of steps only:",
    }
    return [f"{mark} {sentences[mark]} {list_names(members)}." for mark, members in by_mark.items() if members]


def _plot_trend(value: Value, mark: str) -> str:
    """For the mark of a changing step time, plot the time per step over the steps of a launch; otherwise empty."""
    trend = value.shape and value.shape.trend
    return f" {plots.plot_curve([stage.seconds for stage in trend.stages])}" if trend and mark == CHANGING else ""
