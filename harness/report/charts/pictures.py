"""The charts of a report, by what they show; each is drawn from the results and has its words."""

from collections.abc import Iterator, Sequence

from harness.analysis.attribution import Attribution
from harness.analysis.results import Results
from harness.analysis.sweeps import MeasuredSweep
from harness.analysis.tables import ScenarioTable
from harness.report.charts import course as course_chart
from harness.report.charts import forest
from harness.report.charts import phases as phases_chart
from harness.report.charts import sweeps as sweeps_chart
from harness.report.charts import times as times_chart
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Kind, Picture, Words, file_names
from harness.report.comparisons import ComparisonLine
from harness.report.escape import plain


def ratios(results: Results, table: ScenarioTable, compared: Sequence[ComparisonLine]) -> Iterator[Picture]:
    """The comparisons of a table; nothing where none did the same work."""
    control = results.found.control
    chart = forest.comparisons(compared, control.estimate if control else None, results.run.plan.margin)
    if chart:
        words = _plain(forest.comparisons_words(chart, table.scenario, compared))
        yield _picture(results, table, Kind.RATIOS, words, forest.specification(chart, words))


def times(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """The times of a table."""
    chart = times_chart.times(table)
    if chart:
        words = _plain(times_chart.words(chart, table.scenario))
        yield _picture(results, table, Kind.TIMES, words, times_chart.specification(chart, words))


def sweeps(results: Results, table: ScenarioTable, swept: Sequence[MeasuredSweep]) -> Iterator[Picture]:
    """The curves of one table along each numeric axis, with their crossings."""
    for number, axis in enumerate(dict.fromkeys(each.axis for each in swept), 1):
        chart = sweeps_chart.curves(table, [each for each in swept if each.axis == axis])
        words = _plain(sweeps_chart.words(chart, table.scenario))
        drawn = sweeps_chart.specification(chart, words)
        yield _picture(results, table, Kind.SWEEPS, words, drawn, suffix=str(number) if number > 1 else "")


def effects(results: Results, made: Attribution) -> Iterator[Picture]:
    """What accounts for the differences in one scenario, on one device."""
    table = next(table for table in results.tables if table.scenario.name == made.scenario.name)
    device = made.device.value if table.several_devices else ""
    chart = forest.effects(made, results.run.plan.margin)
    words = _plain(forest.effects_words(chart, made, device))
    drawn = forest.specification(chart, words)
    yield _picture(results, table, Kind.EFFECTS, words, drawn, device=device, suffix=device)


def phases(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """What comes before the steady state, cell by cell."""
    chart = phases_chart.stacks(table, results.measured[table.scenario.name])
    if chart:
        words = _plain(phases_chart.words(chart, table.scenario))
        yield _picture(results, table, Kind.PHASES, words, phases_chart.specification(chart, words))


def course(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """A table's launches in order of time, each compared with the mean of its cell."""
    chart = course_chart.course(results.timeline(table), results.run.plan.margin)
    if chart:
        words = _plain(course_chart.words(chart, table.scenario))
        yield _picture(results, table, Kind.COURSE, words, course_chart.specification(chart, words))


def _plain(words: Words) -> Words:
    """Words without what would do harm in a picture; a note that says nothing is none."""
    notes = [plain(note) for note in words.notes if note]
    return Words(plain(words.title), notes, plain(words.axis), plain(words.alt))


def _picture(
    results: Results,
    table: ScenarioTable,
    kind: Kind,
    words: Words,
    specification: Specification,
    *,
    device: str = "",
    suffix: str = "",
) -> Picture:
    stems = file_names(each.scenario.name for each in results.tables)
    name = "-".join(filter(None, [kind.value, stems[table.scenario.name], suffix]))
    return Picture(kind, table.scenario.name, name, words, specification, device)
