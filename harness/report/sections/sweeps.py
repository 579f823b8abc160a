"""Numeric axes: the speed-up over cores, and sweeps with their curves and crossovers."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.analysis.crossings import Crossing
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate
from harness.analysis.sweeps import MeasuredSweep, ScalingPoint, SizeVerdict, SweepComparison
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.defaults import LEVEL
from harness.model.launch import Clock
from harness.model.scenario import CPUS, DEVICE, ENVIRONMENT
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.blocks import (
    EVERYWHERE,
    Block,
    Column,
    Entry,
    Figure,
    Items,
    Section,
    Text,
    Where,
    join_legends,
    tabulate,
)
from harness.report.charts import sweeps as sweeps_chart
from harness.report.comparisons import NO_VERDICT
from harness.report.phrases import capitalize, format_heading, join_remarks
from harness.report.sections.times import make_label_columns

#: The largest number of sentences about a sweep in report.md.
SENTENCES = 4

_METHOD = (
    "At a crossing, both sides take equally long, by the mean log ratio over the rounds. Between adjacent sizes, times "
    "are interpolated linearly. The interval in brackets contains the sizes at which t tests over the rounds don't "
    f"reject equal times, with a joint level of {format.level(LEVEL)} (Fieller 1954). The margin doesn't apply along a "
    "sweep: every significant difference counts."
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on scaling, and on sweeps: charts of the curves, and a sentence for each comparison."""
    yield from _list_scaling(results)
    blocks: list[Block] = []
    for _, group in groupby(results.sweeps, key=lambda pair: pair[0].scenario.name):
        pairs = list(group)
        figures = [*map(Figure, sweeps_chart.draw(pairs[0][0], [sweep for _, sweep in pairs]))]
        for table, sweep in pairs:
            blocks += format_heading(results, table.scenario, names.name_sweep(table, sweep), EVERYWHERE)
            blocks += [*figures, *_describe_sweep(table, sweep)]
            figures = []
    if blocks:
        yield Section("Sweeps", "sweeps", [*blocks, Text(_METHOD, True)])


def _describe_sweep(table: ScenarioTable, sweep: MeasuredSweep) -> Iterator[Block]:
    """Yield a sentence for each comparison of a sweep. report.md has only the first sentences."""
    if sweep.withheld:
        yield Text(
            "No crossings are shown, because two identical cells differed by more than the margin.", where=EVERYWHERE
        )
    clauses = describe_comparisons(table, sweep)
    omitted_count = sum(count for _, count in clauses[SENTENCES:])
    if omitted_count:
        note = f"{counted(omitted_count, 'more comparison', 'is')} in details.md and report.html."
        yield Items([*(text for text, _ in clauses[:SENTENCES]), note], where=Where.PASTE)
    if clauses:
        where = EVERYWHERE ^ Where.PASTE if omitted_count else EVERYWHERE
        yield Items([text for text, _ in clauses], where=where)


def describe_comparisons(table: ScenarioTable, sweep: MeasuredSweep) -> list[tuple[str, int]]:
    """Return a sentence for each comparison along a sweep, crossovers first."""
    by_text: dict[str, list[str]] = {}
    for comparison in sorted(
        sweep.races, key=lambda comparison: 0 if comparison.crossings else 1 if comparison.ahead else 2
    ):
        by_text.setdefault(_describe_crossings(table, sweep, comparison), []).append(
            names.name_sides(table, comparison.column)[2]
        )
    remarks = {text: join_remarks(places) for text, places in by_text.items()}
    return [
        (f"{text} ({remarks[text]})." if remarks[text] else f"{text}.", len(places)) for text, places in by_text.items()
    ]


def _describe_crossings(table: ScenarioTable, sweep: MeasuredSweep, comparison: SweepComparison) -> str:
    subject, base, _ = names.name_sides(table, comparison.column)
    if comparison.different:
        return f"{subject} and {base} did different work ({comparison.different}), so no crossing is computed"
    faster, slower = (subject, base) if comparison.ahead == comparison.column.side else (base, subject)
    if comparison.ahead and not comparison.unclear:
        first_size, last_size = format.size(comparison.sizes[0], sweep), format_amount(comparison.sizes[-1], sweep)
        round_note = ", in one round" if comparison.rounds == 1 else ""
        sizes = f"from {first_size} to {last_size}{round_note}"
        return f"{faster} takes less {table.clock.time} than {slower} at every size {sizes}"
    clauses = [_describe_crossing(crossing, sweep, subject, base, table.clock) for crossing in comparison.crossings]
    if comparison.unclear:
        ranges = " and ".join(
            f"from {format.size(interval.low, sweep)} to {format_amount(interval.high, sweep)}"
            for interval in comparison.unclear
        )
        clauses.append(f"{'no' if clauses else 'No'} clear difference between {subject} and {base} {ranges}")
    if comparison.ahead:
        clauses.append(f"elsewhere {faster} takes less {table.clock.time}")
    return "; ".join(clauses)


def _describe_crossing(crossing: Crossing, sweep: MeasuredSweep, subject: str, base: str, clock: Clock) -> str:
    slower, faster = (base, subject) if crossing.rises else (subject, base)
    interval = format_span(crossing, sweep) or "one round, so no interval"
    size = format_amount(crossing.at, sweep)
    return f"From about {size} ({interval}) on, {faster} takes less {clock.time} than {slower}"


def format_amount(size: float, sweep: MeasuredSweep) -> str:
    """Return a size with its unit, such as `130 calls`, or with its axis, such as `size 130`."""
    text = format.size(size, sweep)
    return f"{text} {sweep.unit}" if sweep.unit else f"{sweep.axis} {text}"


def format_span(crossing: Crossing, sweep: MeasuredSweep) -> str:
    """Return the interval of a crossover. If the interval is open at one end, the text contains only the other end."""
    if crossing.interval is None:
        return ""
    low, high = (format.size(end, sweep) for end in (crossing.interval.low, crossing.interval.high))
    if crossing.opens_low:
        return f"at most {high}"
    return f"at least {low}" if crossing.opens_high else f"{low} to {high}"


def describe_devices(results: Results) -> list[str]:
    """Return a sentence for each comparison of devices along a sweep: the size at and above which a device is faster.

    Unlike crossovers, the sentence contains only measured sizes, and is based on their verdicts.
    """
    has_several_tables = len({id(table) for table, _ in results.sweeps}) > 1
    texts: dict[str, list[str]] = {}
    for table, sweep in results.sweeps:
        for comparison in sweep.races:
            if comparison.column.comparison and comparison.column.comparison.along == DEVICE:
                place_parts = [
                    names.name_table(table) if has_several_tables else "",
                    names.name_sides(table, comparison.column)[2],
                ]
                place_parts += [names.name_sweep(table, sweep)]
                texts.setdefault(_compare_devices(sweep, comparison), []).append(join_remarks(place_parts))
    return [f"{text} ({'; '.join(places)})." if any(places) else f"{text}." for text, places in texts.items() if text]


def _compare_devices(sweep: MeasuredSweep, comparison: SweepComparison) -> str:
    """Return which device is faster at which sizes, without a period at the end; empty if no device is faster."""
    assert comparison.column.other is not None
    subject, base = (f"the {side.axes[DEVICE].upper()}" for side in (comparison.column.side, comparison.column.other))
    runs = [(verdict, list(run)) for verdict, run in groupby(comparison.verdicts, lambda entry: entry.verdict)]
    clear_verdicts = [verdict for verdict, _ in runs if verdict in (Verdict.FASTER, Verdict.SLOWER)]
    last_verdict, last_entries = runs[-1]
    if not clear_verdicts:
        return ""
    if len(runs) == 1:
        first_size, last_size = (format.size(last_entries[index].size, sweep) for index in (0, -1))
        sizes = f"for every {sweep.axis} from {first_size} to {last_size}"
        return f"{capitalize(subject)} is {last_verdict} than {base} {sizes}"
    if clear_verdicts.count(last_verdict) != 1:
        return f"{capitalize(subject)} compared with {base}: {_list_verdicts(runs, sweep)}"
    text = f"From {format_amount(last_entries[0].size, sweep)} on, {subject} is {last_verdict} than {base}"
    if len(clear_verdicts) == 1:
        return f"{text} ({_list_verdicts(runs[:-1], sweep)})"
    index = max(index for index, (verdict, _) in enumerate(runs[:-1]) if verdict in clear_verdicts)
    low, high = (format_amount(size, sweep) for size in (runs[index][1][-1].size, last_entries[0].size))
    middle_text = f"; {_list_verdicts(runs[index + 1 : -1], sweep)}" if runs[index + 1 : -1] else ""
    return f"{text}. The crossover is between {low} ({runs[index][0]}) and {high}{middle_text}"


def _list_verdicts(runs: Sequence[tuple[Verdict | None, Sequence[SizeVerdict]]], sweep: MeasuredSweep) -> str:
    """Return verdicts with the sizes for which they hold: `slower at batch 16, unclear at batch 32 and 64`."""
    clauses = []
    for verdict, entries in runs:
        texts = joined([format.size(entry.size, sweep) for entry in entries])
        clauses.append(
            f"{verdict or NO_VERDICT} at {f'{texts} {sweep.unit}' if sweep.unit else f'{sweep.axis} {texts}'}"
        )
    return ", ".join(clauses)


def _list_scaling(results: Results) -> Iterator[Section]:
    """Yield the section on scaling, if launches ran on different numbers of cores."""
    blocks: list[Block] = []
    for table, points in results.scaling:
        caption = f"Speed-up over cores, {names.name_table(table)}"
        points_table = tabulate(caption, make_scaling_columns(table, points), points, where=EVERYWHERE)
        blocks += [*format_heading(results, table.scenario, "", EVERYWHERE), points_table]
    if blocks:
        yield Section("Scaling over cores", "scaling", [*blocks, Text(join_legends(blocks), True)])


def make_scaling_columns(table: ScenarioTable, points: Sequence[ScalingPoint]) -> list[Column[ScalingPoint]]:
    """Return the columns: the cell, its cores, its time, the speed-up and the efficiency."""
    unit, cores = format.unit_of(table), counted(points[0].fewest, "core")
    axes = [axis for axis in (ENVIRONMENT, *table.column_axes) if axis != CPUS]
    return [
        *make_label_columns(table, lambda point: point.row),
        Column(
            "configuration",
            lambda point: " ".join(names.list_labels(table.scenario, {axis: point.side.values[axis] for axis in axes})),
            is_label=True,
        ),
        Column("cores", lambda point: Entry(str(point.cores), order=point.cores), is_number=True, is_label=True),
        Column(
            f"{names.name_values(table)}, {unit.symbol}", lambda point: format.time(point.time, unit), is_number=True
        ),
        Column(
            "speed-up",
            lambda point: _make_ratio_entry(point.speed_up),
            legend=f"The speed-up is the time on {cores} divided by the time on these cores, with the interval of "
            "this ratio.",
            is_number=True,
        ),
        Column(
            "efficiency",
            lambda point: _make_ratio_entry(point.efficiency, is_share=True),
            legend="The efficiency is the speed-up divided by the factor by which the number of cores grows: with "
            "100 %, twice as many cores take half the time.",
            is_number=True,
        ),
    ]


def _make_ratio_entry(ratio: Estimate | None, *, is_share: bool = False) -> Entry:
    """Return a ratio with its interval, as a factor or in percent.

    The entry is empty for the fewest cores, and for different work.
    """
    if ratio is None:
        return Entry("")
    if not is_share:
        return Entry(format.ratio(ratio), order=ratio.value)
    interval_text = f" ({format.format_interval(ratio.interval, 100.0)} %)" if ratio.interval else ""
    return Entry(f"{format.number(100.0 * ratio.value)} %{interval_text}", order=ratio.value)
