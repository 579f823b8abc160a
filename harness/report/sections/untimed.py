"""Results of the untimed calls in each cell's first launch: calls per step, and the time in which a GPU ran kernels.

The numbers of calls are exact. Kernels show what ratios mean.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from harness.analysis.comparisons import Compared
from harness.analysis.on_device import LAUNCH_BOUND, OnDevice
from harness.analysis.results import Results
from harness.analysis.tables import MeasuredCell, ScenarioTable
from harness.analysis.work_counts import COUNTS, MOST_ERROR, StepWork, fit_seconds_per_call
from harness.model.scenario import Cell
from harness.model.texts import counted, joined
from harness.report import format, names
from harness.report.blocks import FILES, Block, Bold, Column, Entry, Items, Section, Text, join_legends, tabulate
from harness.report.comparisons import list_lines
from harness.report.phrases import describe_change, format_count, format_heading, list_names

#: The largest number of comparisons with a sentence. The table has the counts of all cells.
LINES = 10

_COUNTING = (
    "The first launch of each cell counts the calls of a step exactly, after everything that is timed. Counts aren't "
    "times: they don't show whether a kernel became slower. Another version of Python can make other calls."
)

#: The meaning of a ratio of launch-bound cells.
_CONSEQUENCE = "the ratios of such cells show how fast the CPU launches kernels, not how fast the GPU is"

#: The explanation of the remark that a ratio is launch-bound.
LEGEND = f"Launch-bound: kernels ran in less than {format.share(LAUNCH_BOUND)} of a step; {_CONSEQUENCE}."

_METHOD = (
    "The numbers come from untimed calls under TensorFlow's profiler, in each cell's first launch. The profiler adds "
    "time between kernels, so the shares apply to profiled steps."
)

#: For each column of numbers: its heading, its number, and its legend.
_NUMBERS: Sequence[tuple[str, Callable[[OnDevice], float | None], str]] = (
    (
        "kernels, %",
        lambda profile: 100.0 * profile.kernels,
        "Kernels: the share of a step in which at least one kernel ran.",
    ),
    (
        "copies alone, %",
        lambda profile: 100.0 * profile.copies,
        "Copies alone: the share in which memory was copied or filled and no kernel ran.",
    ),
    (
        "nothing, %",
        lambda profile: 100.0 * profile.nothing,
        "Nothing: the remaining share, in which the GPU waited for the CPU.",
    ),
    (
        "launching, %",
        lambda profile: None if profile.launching is None else 100.0 * profile.launching,
        "Launching: the share in which a CPU thread submitted kernels or copies, while the GPU was busy or idle.",
    ),
    ("kernels per step", lambda profile: profile.kernel_count, ""),
)


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on what ran on the GPU in a step of each cell, and on cells for which this is unknown."""
    blocks = [block for table in results.tables for block in _list_blocks(results, table)]
    if legend := join_legends(blocks):
        blocks.append(Text(f"{_METHOD} {legend}", True, where=FILES))
    if blocks:
        yield Section("Time on the device", "on-device", blocks)


def _list_blocks(results: Results, table: ScenarioTable) -> Iterator[Block]:
    cells = [cell for cell in results.measured[table.scenario.name] if cell.cell in results.on_device]
    yield from format_heading(results, table.scenario, where=FILES)
    if cells:
        columns: list[Column[MeasuredCell]] = [Column("cell", partial(names.name_measured, table), is_label=True)]
        columns += [_make_column(results, *number) for number in _NUMBERS]
        caption = f"Time on the device, {table.scenario.title}"
        yield tabulate(caption, columns, cells, cell=lambda cell: cell.cell, where=FILES, noun="cell")
    yield from (Text(sentence, where=FILES) for sentence in _explain_missing(results, table))


def _make_column(
    results: Results, heading: str, number_of: Callable[[OnDevice], float | None], legend: str
) -> Column[MeasuredCell]:
    def make_entry(cell: MeasuredCell) -> Entry:
        number = number_of(results.on_device[cell.cell])
        return Entry("") if number is None else Entry(format.number(number), order=number)

    return Column(heading, make_entry, legend=legend, is_number=True, is_optional=True)


def _explain_missing(results: Results, table: ScenarioTable) -> Iterator[str]:
    """Yield a sentence on the cells without profiler data, for each reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for cell in results.measured[table.scenario.name]:
        if cell.cell in results.untold_on_device and cell.cell not in results.on_device:
            reasons[results.untold_on_device[cell.cell]].append(names.name_measured(table, cell))
    for reason, cells in reasons.items():
        yield f"Unknown for {list_names(cells)}: {reason.rstrip('.')}."


def make_remark(results: Results, compared: Compared) -> str:
    """Return a remark if cells of a comparison are launch-bound, otherwise an empty text."""
    sides = (("first", compared.cell), ("second", compared.other))
    bound_sides = [(side, results.on_device[cell]) for side, cell in sides if _is_bound(results, cell)]
    shares = [
        f"{format.rough_share(profile.kernels)}{' of a step' if index == 0 else ''} of the {side}"
        for index, (side, profile) in enumerate(bound_sides)
    ]
    return f"launch-bound: kernels ran in {joined(shares)}" if shares else ""


def list_warnings(results: Results) -> Iterator[str]:
    """Yield a warning if compared cells are launch-bound."""
    compared = {
        cell
        for table in results.tables
        for line in list_lines(table)
        for cell in (line.compared.cell, line.compared.other)
    }
    bound_cells = [cell for cell in compared if _is_bound(results, cell)]
    if not bound_cells:
        return
    shares = sorted(results.on_device[cell].kernels for cell in bound_cells)
    share_range = " to ".join(dict.fromkeys(map(format.rough_share, (shares[0], shares[-1]))))
    count_text = f"{len(bound_cells)} of {counted(len(compared), 'compared cell')}"
    limit = format.share(LAUNCH_BOUND)
    yield f"In {count_text}, kernels ran in less than {limit} of a step ({share_range}): {_CONSEQUENCE}."


def _is_bound(results: Results, cell: Cell) -> bool:
    return cell in results.on_device and results.on_device[cell].is_launch_bound


# The calls of a step.


def make_work_sections(results: Results) -> Iterator[Section]:
    """Yield the section on the counted calls; nothing if no cell has counts."""
    blocks = [block for table in results.tables for block in _list_work_blocks(results, table)]
    if blocks:
        yield Section("Work done", "work", [*blocks, Text(_COUNTING, True, where=FILES)])


def _list_work_blocks(results: Results, table: ScenarioTable) -> Iterator[Block]:
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
    if sentence := _explain_time(results, table, cells):
        yield Text(sentence, where=FILES)
    columns: list[Column[MeasuredCell]] = [Column("cell", partial(names.name_measured, table), is_label=True)]
    columns += [
        Column(heading, partial(_format_count, work, name), is_number=True, is_optional=True)
        for name, heading in COUNTS.items()
    ]
    yield tabulate(f"Work per step, {table.scenario.title}", columns, cells, cell=lambda cell: cell.cell, noun="cell")


def _explain_time(results: Results, table: ScenarioTable, cells: Sequence[MeasuredCell]) -> str:
    """Return how much of the cells' times their calls explain, if a line through all of them holds; or nothing."""
    points = [(results.work[cell.cell].calls, cell.step.median, cell) for cell in cells if cell.step]
    slope = fit_seconds_per_call([(calls, seconds) for calls, seconds, _ in points])
    if slope is None:
        return ""
    fewest, most = (chosen(points, key=lambda point: point[0]) for chosen in (min, max))
    difference = most[1] - fewest[1]
    unit, per_call = (format.unit([seconds], table.clock) for seconds in (difference, slope))
    explained, whole = (format.number(value * unit.factor) for value in (slope * (most[0] - fewest[0]), difference))
    one, other = (names.name_measured(table, point[2]) for point in (most, fewest))
    return (
        f"A step takes {format.number(slope * per_call.factor)} {per_call.symbol} longer for each call, which predicts "
        f"each cell within {format.share(MOST_ERROR)}. So the calls explain {explained} of the {whole} "
        f"{unit.symbol} between {one} and {other}."
    )


def _format_count(work: Mapping[Cell, StepWork], name: str, cell: MeasuredCell) -> str:
    count = work[cell.cell].counts[name]
    return format_count(count) if count else ""
