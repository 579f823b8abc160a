"""A run's tables: one per scenario, with a row per group and columns of times and ratios.

The report formats these tables.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.analysis.cell_index import Lookup
from harness.analysis.columns import ScenarioColumn, Side, columns
from harness.analysis.comparisons import Compared, compare, compare_growth
from harness.analysis.distribution import (
    Shape,
    Spread,
    Used,
    describe_distribution,
    summarize_resources,
    summarize_spread,
)
from harness.analysis.printed import SECONDS, unit_of
from harness.analysis.quantities import growth_estimate, is_time
from harness.analysis.rounds import compute_mean
from harness.analysis.statistics import Estimate, combine
from harness.analysis.verdicts import Verdict
from harness.analysis.work_equivalence import steps
from harness.model.environment import Device
from harness.model.launch import Clock, Status
from harness.model.run import Plan, Run
from harness.model.scenario import DEVICE, GROWTH, MACHINE, STEP, Cell, Scenario


@dataclass(frozen=True, slots=True)
class Value:
    """A number in a table: seconds per step (or the table's quantity), or a ratio.

    If there is no number, `status` is the reason; it is None if the cell doesn't exist. If the number is a time per
    step, `shape` describes the distribution of its samples. If a launch and the framework counted different numbers of
    steps, `undone` describes the difference. If the number is a ratio, `compared` has its verdict.
    """

    estimate: Estimate | None
    status: Status | None = None
    shape: Shape | None = None
    undone: str = ""
    compared: Compared | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the axis values that its cells have in common, and a value for each column.

    If devices are compared, `device` is the baseline device.
    """

    device: Device
    axes: Mapping[str, str]
    values: Sequence[Value]

    @property
    def machine(self) -> str:
        """The name of the machine that measured the row; empty in a run that wasn't merged from several."""
        return self.axes.get(MACHINE, "")


@dataclass(frozen=True)
class ScenarioTable:
    """The numbers of one scenario, at least one in every row and every column.

    Rows show the values of `row_axes`, and column headings show the values of `column_axes`. `several_devices`: the
    rows' devices differ. `clock` is the clock of the times. `quantity` is the measured quantity, by its name in
    scenario headers; `in_seconds`: a printed number with a unit of time. For memory growth, comparisons are differences
    in bytes per call instead of ratios.
    """

    scenario: Scenario
    row_axes: Sequence[str]
    column_axes: Sequence[str]
    several_devices: bool
    columns: Sequence[ScenarioColumn]
    rows: Sequence[Row]
    clock: Clock
    quantity: str = STEP
    in_seconds: bool = False

    def cell(self, row: Row, side: Side) -> Cell:
        """Return the cell of a row on one side of a column."""
        return Cell(self.scenario.name, side.environment, row.device, {**row.axes, **side.axes})

    def values(self, row: Row) -> list[tuple[ScenarioColumn, Value]]:
        """Return a row's values, each with its column."""
        return list(zip(self.columns, row.values, strict=True))

    def times(self) -> list[tuple[Row, ScenarioColumn, Value]]:
        """Return every time of the table, row by row."""
        return [(row, column, value) for row in self.rows for column, value in self.values(row) if column.other is None]

    def cells(self) -> dict[Cell, Value]:
        """Return every time of the table by its cell, row by row."""
        return {self.cell(row, column.side): value for row, column, value in self.times()}

    @property
    def compared(self) -> list[Compared]:
        """Every comparison of the table, row by row."""
        return [value.compared for row in self.rows for value in row.values if value.compared]

    @cached_property
    def rounds(self) -> int:
        """The largest number of rounds behind a number in the table; 0 for an empty table."""
        return max((value.estimate.rounds for row in self.rows for value in row.values if value.estimate), default=0)


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A cell of a table that has a result, and its position in the table.

    `step` summarizes the means of its launches, in seconds per step. `used` has the phases and resources of the
    launches.
    """

    cell: Cell
    row: Row
    side: Side
    step: Spread | None
    shape: Shape
    used: Used


# the properties that the cells of a row share: the device, and the values of the row axes
_Key = tuple[Device, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a scenario's table before anything is computed: its columns, and the keys of its rows."""

    scenario: Scenario
    cells: Sequence[Cell]
    heads: Sequence[ScenarioColumn]
    keys: Sequence[_Key]
    quantity: str = STEP

    def axes(self, key: _Key) -> dict[str, str]:
        """Return the axis values of a row."""
        return dict(zip(self.scenario.row_axes, key[1], strict=True))

    def cell(self, key: _Key, side: Side) -> Cell:
        """Return the cell of a row on one side of a column."""
        return Cell(self.scenario.name, side.environment, key[0], {**self.axes(key), **side.axes})

    def pairs(self) -> list[tuple[Cell, Cell]]:
        """Return all comparisons of the table that are judged together, row by row."""
        sides = [(column.side, column.other) for column in self.heads if column.other]
        return [(self.cell(key, side), self.cell(key, other)) for key in self.keys for side, other in sides]


def layouts(run: Run, lookup: Lookup, quantity: str = STEP) -> list[Layout]:
    """Return the layouts of the run's tables for a quantity, in the run's order.

    Every scenario has a table of times per step. Other quantities have a table if the scenario's header compares them.
    """
    all_layouts = []
    for scenario in run.scenarios:
        if quantity not in (STEP, *scenario.quantities):
            continue
        cells = lookup.cells_of(scenario.name)
        devices = scenario.axes[DEVICE] if DEVICE in scenario.compared_axes else ()
        keys = dict.fromkeys(
            (Device(next(iter(devices), cell.device)), tuple(cell.axes[axis] for axis in scenario.row_axes))
            for cell in cells
        )
        all_layouts.append(Layout(scenario, cells, columns(run, scenario, cells, quantity), list(keys), quantity))
    return all_layouts


def tables(run: Run, lookup: Lookup, quantity: str = STEP) -> list[ScenarioTable]:
    """Return the run's tables in the run's order. A table without numbers has no rows.

    `lookup` is an index of launches whose samples are values of the quantity. For memory growth, it is an index of the
    original launches.
    """
    return [_make_table(layout, lookup, run.plan) for layout in layouts(run, lookup, quantity)]


def find_measured(table: ScenarioTable, lookup: Lookup) -> list[MeasuredCell]:
    """Return the table's cells that have a result, row by row."""
    cells = []
    for row, column, value in table.times():
        if value.shape:
            cell = table.cell(row, column.side)
            launches = lookup.numbers[cell]
            step = summarize_spread([compute_mean(launch) for launch in launches])
            cells.append(MeasuredCell(cell, row, column.side, step, value.shape, summarize_resources(launches)))
    return cells


def _make_table(layout: Layout, lookup: Lookup, plan: Plan) -> ScenarioTable:
    pairs, scenario, heads, quantity = layout.pairs(), layout.scenario, layout.heads, layout.quantity
    comparisons = compare_growth(pairs, lookup) if quantity == GROWTH else compare(pairs, lookup, plan.margin)
    compared = dict(zip(pairs, comparisons if is_time(quantity) else map(_adapt_verdict, comparisons), strict=True))

    def value(key: _Key, column: ScenarioColumn) -> Value:
        cell = layout.cell(key, column.side)
        if column.other is None:
            return _find_value(cell, lookup, quantity)
        comparison = compared[cell, layout.cell(key, column.other)]
        return Value(comparison.ratio if comparison else None, compared=comparison)

    def is_shown(axis: str) -> bool:
        """Return whether a table shows the axis. An axis with a default is shown only if a cell has another value."""
        default = scenario.default.get(axis)
        return default is None or any(cell.axes[axis] != default for cell in layout.cells)

    rows = [Row(key[0], layout.axes(key), [value(key, column) for column in heads]) for key in layout.keys]
    rows = [row for row in rows if any(value.estimate for value in row.values)]
    filled_columns = [index for index in range(len(heads)) if any(row.values[index].estimate for row in rows)]
    return ScenarioTable(
        scenario=scenario,
        row_axes=[axis for axis in scenario.row_axes if is_shown(axis)],
        column_axes=[axis for axis in scenario.compared_axes if is_shown(axis)],
        several_devices=len({row.device for row in rows}) > 1,
        columns=[heads[index] for index in filled_columns],
        rows=[replace(row, values=[row.values[index] for index in filled_columns]) for row in rows],
        clock=plan.clock,
        quantity=quantity,
        in_seconds=unit_of(quantity, (entry for cell in layout.cells for entry in lookup.numbers.get(cell, ())))
        == SECONDS,
    )


def _adapt_verdict(compared: Compared | None) -> Compared | None:
    return compared and replace(compared, verdict=compared.verdict and compared.verdict.of_amounts)


def _find_value(cell: Cell, lookup: Lookup, quantity: str) -> Value:
    """Return a cell's value of a quantity. A time per step also has its distribution."""
    means = lookup.series.get(cell)
    if not means:
        status = lookup.status(cell)
        return Value(None, Status.NOT_AVAILABLE if quantity == GROWTH and status is Status.OK else status)
    if quantity == GROWTH:
        growth = growth_estimate(lookup.numbers[cell])
        return Value(growth, None if growth else Status.NOT_AVAILABLE)
    estimate = combine(list(means.values()))
    if quantity != STEP:
        return Value(estimate)
    launches = lookup.numbers[cell]
    undone = next(filter(None, map(steps, launches)), "")
    return Value(estimate, shape=describe_distribution(launches, lookup.trends.get(cell)), undone=undone)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A comparison that several machines measured, with the result of each machine by name.

    `row` is the row of the first machine.
    """

    table: ScenarioTable
    column: ScenarioColumn
    row: Row
    compared: Mapping[str, Compared]

    @property
    def verdicts(self) -> dict[str, Verdict | None]:
        """The verdict of each machine."""
        return {machine: compared.verdict for machine, compared in self.compared.items()}

    @property
    def agrees(self) -> bool | None:
        """Whether all verdicts are clear and equal. False if clear verdicts differ, otherwise None."""
        verdicts = self.verdicts.values()
        clear = {verdict for verdict in verdicts if verdict not in (None, Verdict.UNCLEAR)}
        if len(clear) > 1:
            return False
        return True if clear and all(verdict in clear for verdict in verdicts) else None


def agreements(table: ScenarioTable) -> list[Agreement]:
    """Return the comparisons of a table that several machines measured, in the table's order.

    The results of different machines are never pooled, and there are no ratios between machines.
    """
    comparisons: list[Agreement] = []
    for index, column in enumerate(table.columns):
        rows_by_axes: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in table.rows:
            if row.machine and row.values[index].compared:
                shared_values = tuple(value for axis, value in row.axes.items() if axis != MACHINE)
                rows_by_axes[row.device, *shared_values].append(row)
        for rows in rows_by_axes.values():
            if len(rows) > 1:
                compared = {row.machine: comparison for row in rows if (comparison := row.values[index].compared)}
                comparisons.append(Agreement(table, column, rows[0], compared))
    return comparisons
