"""Scaling over cores: speed-up and efficiency."""

from collections.abc import Iterator, Sequence

from harness.analysis.results import Results
from harness.analysis.scaling import ScalingPoint
from harness.analysis.statistics import Estimate
from harness.analysis.tables import ScenarioTable
from harness.model.scenario import CPUS, ENVIRONMENT
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import EVERYWHERE, Block, Column, Entry, Section, Text, tabulate
from harness.report.format import unit_of
from harness.report.phrases import format_heading
from harness.report.sections.times import make_label_columns


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on scaling, if launches ran on different numbers of cores."""
    blocks: list[Block] = []
    legend = ""
    for table, points in results.scaling:
        caption = f"Speed-up over cores, {names.name_table(table)}"
        points_table = tabulate(caption, make_columns(table, points), points, where=EVERYWHERE)
        blocks += [*format_heading(results, table.scenario, "", EVERYWHERE), points_table]
        legend = points_table.legend
    if blocks:
        yield Section("Scaling over cores", "scaling", [*blocks, Text(legend, True)])


def make_columns(table: ScenarioTable, points: Sequence[ScalingPoint]) -> list[Column[ScalingPoint]]:
    """Return the columns: the cell, its cores, its time, the speed-up and the efficiency."""
    unit, cores = unit_of(table), counted(points[0].fewest, "core")
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
