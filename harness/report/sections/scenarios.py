"""One section a scenario: its comparisons with their verdicts, and its times."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness.analysis.columns import ScenarioColumn
from harness.analysis.comparisons import Compared
from harness.analysis.moderation import FEWEST
from harness.analysis.results import Results
from harness.analysis.statistics import Interval
from harness.analysis.tables import Row, ScenarioTable
from harness.analysis.verdicts import FEWEST_ROUNDS, Verdict, Withheld
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted
from harness.report import blocks, format, names, plots
from harness.report.blocks import REPORT, Block, Column, Entry, Figure, Section, Text, Where, tabulate
from harness.report.charts import forest
from harness.report.charts import times as times_chart
from harness.report.comparisons import ComparisonLine, lines, tally, too_few_rounds
from harness.report.format import OUTLYING, UNDONE, UNEVEN, Unit, marks, unit_of
from harness.report.sentences import listed, pythons, remarks

#: A table with more columns of times than this has its environments in lines of their own instead.
COLUMNS = 8

#: The heading over what is remarked of a line.
REMARKS = "remarks"


def sections(results: Results) -> Iterator[Section]:
    """A section for each scenario that has a number. What all their tables share is said in the first."""
    explained = False
    for number, table in enumerate(results.tables, 1):
        compared = lines(table)
        found: list[Block] = []
        if compared:
            found += [*comparisons(results, table, compared), *legends(results, compared, first=not explained)]
            explained = True
        yield Section(table.scenario.title, f"scenario-{number}", [*found, *times(results, table)])


# What is compared.


def comparisons(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Block]:
    """The table of comparisons, its chart, and how many of each verdict there are."""
    few = too_few_rounds(line.compared for line in compared)
    drawn = plots.domain([line.compared.takes for line in compared if _is_comparable(line)], _margin(results))
    made, _ = tabulate(
        f"Comparisons, {table.scenario.title}",
        [*labels(table), *columns(results, table, few, drawn)],
        compared,
        where=REPORT,
        noun="comparison",
        is_searchable=True,
    )
    yield from map(Figure, forest.comparisons(results, table, compared))
    yield made
    yield Text(verdict_counts(compared, few), where=REPORT)


def labels(table: ScenarioTable) -> list[Column[ComparisonLine]]:
    """What tells a table's rows apart: the device where there are several, and the axes in which rows differ."""
    device = (
        [Column[ComparisonLine]("device", lambda line: line.row.device.value, is_label=True)]
        if table.several_devices
        else []
    )
    return [*device, *(_axis(axis) for axis in names.varying(table))]


def _axis(axis: str) -> Column[ComparisonLine]:
    return Column(axis, lambda line: line.row.axes[axis], is_label=True)


def columns(results: Results, table: ScenarioTable, few: bool, drawn: Interval) -> list[Column[ComparisonLine]]:
    """What is said of a comparison."""
    rounds = table.rounds
    percent = any(line.entry.percent for line in lines(table))
    source = Column[ComparisonLine]("as the source counts", _percent, is_number=True, is_optional=True)
    return [
        Column("comparison", lambda line: line.what, is_label=True),
        Column("time ratio", lambda line: _ratio(line, rounds), is_number=True),
        Column("below 1 faster, above slower", lambda line: _plot(line, drawn), where=Where.PASTE | Where.TERMINAL),
        *([source] if percent else []),
        Column("verdict", lambda line: line.compared.verdict or "", is_optional=True, is_verdict=True),
        Column(REMARKS, lambda line: remark(results, line.compared, few), is_optional=True),
    ]


def _margin(results: Results) -> float:
    return results.run.plan.margin


def _is_comparable(line: ComparisonLine) -> bool:
    return line.compared.verdict is not Verdict.DIFFERENT_WORK


def _ratio(line: ComparisonLine, rounds: int) -> Entry:
    compared = line.compared
    if not _is_comparable(line):
        return Entry("")
    fewer = format.fewer(compared.estimate, rounds)
    text = " ".join(filter(None, [format.ratio(compared.takes), fewer]))
    return Entry(text, cells=(compared.cell, compared.other), order=compared.takes.value)


def _plot(line: ComparisonLine, drawn: Interval) -> Entry:
    return Entry(plots.drawn(line.compared.takes, drawn) if _is_comparable(line) else "", is_code=True)


def _percent(line: ComparisonLine) -> str:
    return format.gain(line.compared.estimate) if line.entry.percent and _is_comparable(line) else ""


def remark(results: Results, compared: Compared, few: bool = False) -> str:
    """What is to be said of one comparison; `few`: that there were too few rounds is said of all of them."""
    control, margin = results.found.control, results.margin
    settling, told = compared.settling, ""
    # what is within the noise is settled by no number of rounds
    lost = control is not None and control.reach > margin and control.hides(compared.takes.value)
    if compared.verdict is Verdict.UNCLEAR and not lost:
        told = "the difference is at the margin: more rounds will not settle it"
        if settling:
            took = f" ({format.duration(settling.seconds)})" if settling.seconds else ""
            told = f"about {counted(settling.rounds, 'more round')}{took} would settle it"
    return remarks(
        [
            pythons(compared.pythons),
            "work not checked" if compared.work.work == "not checked" else compared.work.reason,
            "too few rounds" if compared.withheld is Withheld.FEW_ROUNDS and not few else "",
            "within this run's noise" if compared.withheld is Withheld.CONTROL else "",
            told,
        ]
    )


def verdict_counts(compared: Sequence[ComparisonLine], few: bool) -> str:
    """`Of 5 comparisons: 3 slower, 2 unclear.`"""
    found = tally(line.compared.verdict for line in compared)
    if few:
        rounds = max(line.compared.estimate.rounds for line in compared)
        return f"{counted(found.total, 'comparison')}: too few rounds ({rounds} of {FEWEST_ROUNDS}) for a verdict."
    if not found.verdicts:
        return f"{counted(found.total, 'comparison')}, none with a verdict."
    return f"Of {counted(found.total, 'comparison')}: {found}."


def legends(results: Results, compared: Sequence[ComparisonLine], *, first: bool) -> Iterator[Text]:
    """What ratios and verdicts mean, in the `first` of the report's tables; in each, what its verdicts share."""
    margin = format.share(_margin(results))
    if first:
        yield Text(
            "Ratios are the time of the first over the time of the second: above 1 the first takes longer. Verdicts "
            f"describe the first: faster or slower by more than {margin}, the same within {margin}, unclear where "
            "neither is shown.",
            True,
            where=REPORT,
        )
    judged = sum(line.compared.judged for line in compared)
    if judged > 1:
        smyth = " Variances are moderated over the table (Smyth 2004)." if judged >= FEWEST else ""
        yield Text(
            f"The {judged} verdicts hold together at 95 % (Holm), so most intervals here are wider than 95 %.{smyth}",
            True,
            where=blocks.FILES,
        )


# What a step takes.


def times(results: Results, table: ScenarioTable) -> Iterator[Block]:
    """The table of times, its chart, and what its marks mean."""
    unit = unit_of(table)
    made, shared = _by_environment(table, unit) if _is_wide(table) else _side_by_side(table, unit)
    if shared:
        yield Text(f"In every row: {shared}.", True, where=REPORT)
    yield made
    yield Text(intervals(table, unit), True, where=REPORT)
    yield from map(Figure, times_chart.pictures(results, table))
    for told in marked(table):
        yield Text(told, True, where=REPORT)


def _is_wide(table: ScenarioTable) -> bool:
    heads = [head for head in table.columns if head.other is None]
    return len(heads) > COLUMNS and len({head.side.environment for head in heads}) > 1


def _side_by_side(table: ScenarioTable, unit: Unit) -> tuple[blocks.Table, str]:
    """A column for each environment and each value of the compared axes, a line a row."""
    axes, shared = _folded(table)
    times = [
        Column[Row](
            f"{names.side_name(table, head.side)}, {unit.symbol}",
            partial(_time, table, at, unit),
            is_number=True,
        )
        for at, head in _times(table)
    ]
    columns = [*_row_labels(table, axes), *times]
    return tabulate(_caption(table), columns, table.rows, where=REPORT, noun="row")[0], shared


def _by_environment(table: ScenarioTable, unit: Unit) -> tuple[blocks.Table, str]:
    """A line for each environment of a row; the columns are what else is compared."""
    axes, shared = _folded(table)
    places = {(head.side.environment, names.values(table, head.side)): at for at, head in _times(table)}
    environments = dict.fromkeys(environment for environment, _ in places)
    lines_ = [(row, environment) for row in table.rows for environment in environments]

    def time(column: str, line: tuple[Row, str]) -> Entry:
        at = places.get((line[1], column))
        return Entry("") if at is None else _time(table, at, unit, line[0])

    columns = [
        *(
            Column[tuple[Row, str]](each.heading, partial(_of_row, each), is_label=True)
            for each in _row_labels(table, axes)
        ),
        Column[tuple[Row, str]](ENVIRONMENT, lambda line: line[1], is_label=True),
        *(
            Column[tuple[Row, str]](f"{column or 'time'}, {unit.symbol}", partial(time, column), is_number=True)
            for column in dict.fromkeys(column for _, column in places)
        ),
    ]
    return tabulate(_caption(table), columns, lines_, where=REPORT, noun="row")[0], shared


def _of_row(column: Column[Row], line: tuple[Row, str]) -> str | Entry:
    return column.value(line[0])


def _times(table: ScenarioTable) -> list[tuple[int, ScenarioColumn]]:
    return [(at, head) for at, head in enumerate(table.columns) if head.other is None]


def _caption(table: ScenarioTable) -> str:
    return f"Time per step, {table.scenario.title}"


def _row_labels(table: ScenarioTable, axes: Sequence[str]) -> list[Column[Row]]:
    device = [Column[Row]("device", lambda row: row.device.value, is_label=True)] if table.several_devices else []
    return [*device, *(Column[Row](axis, partial(_value, axis), is_label=True) for axis in axes)]


def _value(axis: str, row: Row) -> str:
    return row.axes[axis]


def _folded(table: ScenarioTable) -> tuple[list[str], str]:
    """The axes in which rows differ, and in words those in which they do not: `api tf.keras, inputs numpy`."""
    varying = names.varying(table)
    same = [f"{axis} {table.rows[0].axes[axis]}" for axis in table.row_axes if axis not in varying]
    return varying, ", ".join(same)


def _time(table: ScenarioTable, at: int, unit: Unit, row: Row) -> Entry:
    value = row.values[at]
    if value.estimate is None:
        return Entry(value.status.value if value.status else "")
    told = [format.time(value.estimate, unit), format.fewer(value.estimate, table.rounds), *marks(value)]
    return Entry(
        " ".join(filter(None, told)), cells=[table.cell(row, table.columns[at].side)], order=value.estimate.value
    )


def intervals(table: ScenarioTable, unit: Unit) -> str:
    """What stands beside the times."""
    rounds = table.rounds
    if rounds == 1:
        return f"Time per step in {unit.symbol}, from one round: no intervals, no verdict."
    fewer = any(value.estimate and value.estimate.rounds < rounds for *_, value in table.times())
    counts = " (fewer where n= says so)" if fewer else ""
    return (
        f"Time per step in {unit.symbol}; ± or the range in brackets is a 95 % confidence interval over "
        f"{counted(rounds, 'round')}{counts}."
    )


def marked(table: ScenarioTable) -> list[str]:
    """What the marks mean, a sentence each, with the numbers that have them."""
    axes = names.varying(table)
    found: dict[str, list[str]] = {UNEVEN: [], OUTLYING: [], UNDONE: []}
    for row, head, value in table.times():
        name, shape = names.cell_name(table, row, head.side, axes), value.shape
        for mark in marks(value) if shape else ():
            share = {UNEVEN: shape.uneven, OUTLYING: shape.outliers}.get(mark) if shape else None
            found[mark].append(f"{name}: {f'{share.count} of {share.of}' if share else value.undone}")
    sentences = {
        UNEVEN: "Uneven samples: the mean and the median of a launch's samples differ by more than 10 %. Launches:",
        OUTLYING: "Outliers: some launches of this cell lie far from the others; all are in the mean. Launches:",
        UNDONE: "The framework counted other steps than the launch took, so this is not the time of one step:",
    }
    return [f"{mark} {sentences[mark]} {listed(members)}." for mark, members in found.items() if members]
