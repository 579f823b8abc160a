"""Tables with one row per cell: the phases of its launches, the distribution of its times, and its resources."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from harness.analysis.distribution import RESOURCES, STATISTICS, Quantity, Shape, Spread, Statistic, Times, order_phases
from harness.analysis.results import Results
from harness.analysis.tables import MeasuredCell, ScenarioTable
from harness.model.launch import Clock, Launch
from harness.report import format, names
from harness.report.blocks import Block, Column, Entry, Heading, Section, Text, join_legends, tabulate
from harness.report.format import Unit, unit_of
from harness.report.phrases import join_remarks
from harness.report.sections.scenarios import REMARKS

#: The legend for values over launches.
SPREADS = "Each value is the median over the cell's launches, with p10 to p90 in brackets."

_TO_FIRST_STEP = (
    "To the first step: all phases before it, from the request for the launch to the end of the first call. The "
    "process is fresh. If a pilot came first, the files are already in the page cache."
)
_INTERLEAVED = (
    "Interleaved launches start at the same time, each on its own core. Their phases before the warm-up are longer "
    "than usual and not comparable. With --interleave launches, each launch starts alone."
)
_WARM_UP = "Warm-up per step: only launches that recorded the number of warm-up steps are included."
_STEADY_STATE = "Steady state: the time per step after the warm-up."


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the sections on phases, distributions and resources of cells, for the values that launches reported."""
    for title, make_columns, note in (
        ("Phases", make_phase_columns, SPREADS),
        ("Distribution", make_distribution_columns, ""),
        ("Resources", make_resource_columns, SPREADS),
    ):
        if blocks := list(_list_blocks(results, title, make_columns, note)):
            yield Section(title, title.lower(), blocks)


def _list_blocks(
    results: Results,
    title: str,
    make_columns: Callable[[ScenarioTable, Sequence[MeasuredCell]], Sequence[Column[MeasuredCell]]],
    note: str,
) -> Iterator[Block]:
    """Yield a table for each scenario, and then the meaning of the columns."""
    cell_tables = []
    for table in results.tables:
        cells = results.measured[table.scenario.name]
        columns = [Column("cell", partial(names.name_measured, table), is_label=True), *make_columns(table, cells)]
        caption = f"{title}, {table.scenario.title}"
        cell_table = tabulate(caption, columns, cells, cell=lambda cell: cell.cell, noun="cell")
        if len(cell_table.heads) > 1:
            if len(results.tables) > 1:
                yield Heading(table.scenario.title)
            yield cell_table
            cell_tables.append(cell_table)
    if cell_tables:
        yield Text(" ".join(filter(None, [note, join_legends(cell_tables)])), True)


def make_phase_columns(table: ScenarioTable, cells: Sequence[MeasuredCell]) -> list[Column[MeasuredCell]]:
    """Return the columns with the phases in order, their sum and the steady state; empty if there are no phases."""
    make_column = partial(_make_spread_column, table, cells)

    def make_phase_column(name: str) -> Column[MeasuredCell]:
        return make_column(Quantity.SECONDS, name, lambda cell: cell.used.phases.get(name))

    is_wall = table.clock is Clock.WALL
    legend = f"{_TO_FIRST_STEP} {_INTERLEAVED}" if any(cell.used.beside for cell in cells) else _TO_FIRST_STEP
    phase_columns = [
        make_phase_column(name) for name in order_phases(name for cell in cells for name in cell.used.phases)
    ]
    return phase_columns and [
        *phase_columns,
        make_column(Quantity.SECONDS, "to the first step", lambda cell: cell.used.cold, legend=legend),
        # the length of a warm-up is wall-clock time
        *(
            [make_column(Quantity.STEP, "warm-up per step", lambda cell: cell.used.warm_up, legend=_WARM_UP)]
            if is_wall
            else []
        ),
        make_column(Quantity.STEP, "steady state per step", lambda cell: cell.step, legend=_STEADY_STATE),
    ]


def make_distribution_columns(table: ScenarioTable, cells: Sequence[MeasuredCell]) -> list[Column[MeasuredCell]]:
    """Return the columns with the statistics of each cell, and remarks on its launches."""
    return [
        *(_make_statistic_column(statistic, _choose_unit(statistic.quantity, table, ())) for statistic in STATISTICS),
        Column(REMARKS, lambda cell: make_remark(cell.shape, table.clock), is_optional=True),
    ]


def _make_statistic_column(statistic: Statistic[Times], unit: Unit) -> Column[MeasuredCell]:
    def make_entry(cell: MeasuredCell) -> Entry:
        number = cell.shape.statistics[statistic.name]
        if number is None:
            return Entry("")
        is_count = statistic.quantity is Quantity.COUNT
        return Entry(f"{number:,.0f}" if is_count else format.number(number * unit.factor), order=number)

    return Column(
        _make_heading(statistic.name, unit), make_entry, legend=statistic.legend, is_number=True, is_optional=True
    )


def make_remark(shape: Shape, clock: Clock) -> str:
    """Return the remark on a cell's launches."""
    uneven, outliers = shape.uneven, shape.outliers
    verb = "is an outlier" if outliers.count == 1 else "are outliers"
    return join_remarks(
        [
            f"uneven samples in {uneven.count} of {uneven.of} launches" if uneven.count else "",
            f"{outliers.count} of {outliers.of} launches {verb}" if outliers.count else "",
            f"{clock.time} per step depends on the number of earlier steps: {format.trend(shape.trend, clock)}"
            if shape.trend
            else "",
        ]
    )


def make_resource_columns(table: ScenarioTable, cells: Sequence[MeasuredCell]) -> list[Column[MeasuredCell]]:
    """Return the columns with the resources that launches used."""

    def make_column(statistic: Statistic[Launch]) -> Column[MeasuredCell]:
        return _make_spread_column(
            table,
            cells,
            statistic.quantity,
            statistic.name,
            lambda cell: cell.used.resources.get(statistic.name),
            legend=statistic.legend,
        )

    return [make_column(statistic) for statistic in RESOURCES]


def _make_spread_column(
    table: ScenarioTable,
    cells: Sequence[MeasuredCell],
    quantity: Quantity,
    name: str,
    spread_of: Callable[[MeasuredCell], Spread | None],
    *,
    legend: str = "",
) -> Column[MeasuredCell]:
    """Return a column with the median and the range over launches, in a suitable unit."""
    unit = _choose_unit(quantity, table, [summary.median for cell in cells if (summary := spread_of(cell))])

    def make_entry(cell: MeasuredCell) -> Entry:
        spread = spread_of(cell)
        return Entry(format.spread(spread, unit.factor), order=spread.median) if spread else Entry("")

    return Column(_make_heading(name, unit), make_entry, legend=legend, is_number=True, is_optional=True)


#: For each quantity, the function that chooses a unit for the values of a column. _FIXED_UNITS contains units that are
#: the same for all values.
_UNIT_CHOOSERS: Mapping[Quantity, Callable[[Sequence[float]], Unit]] = {
    Quantity.SECONDS: format.phase_unit,
    Quantity.BYTES: format.memory_unit,
    Quantity.JOULES: format.energy_unit,
}
_FIXED_UNITS: Mapping[Quantity, Unit] = {Quantity.SHARE: format.PERCENT, Quantity.CLOCK: format.MEGAHERTZ}


def _choose_unit(quantity: Quantity, table: ScenarioTable, values: Sequence[float]) -> Unit:
    """Return the unit of a column of values. Times per step have the unit of their table."""
    if quantity is Quantity.STEP:
        return unit_of(table)
    if values and quantity in _UNIT_CHOOSERS:
        return _UNIT_CHOOSERS[quantity](values)
    return _FIXED_UNITS.get(quantity, format.ONE)


def _make_heading(name: str, unit: Unit) -> str:
    return f"{name}, {unit.symbol}" if unit.symbol else name
