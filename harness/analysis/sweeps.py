"""Numeric axes of a table: its times as curves along a sweep with crossover points, and the scaling over cores."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.cell_index import Lookup
from harness.analysis.columns import ScenarioColumn, Side
from harness.analysis.comparisons import Compared
from harness.analysis.crossings import Crossing, SweepOrdering, find_order, interpolate_times, refine_sizes
from harness.analysis.distributions import Floats
from harness.analysis.pairs import select_pair
from harness.analysis.quantities import is_time
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import Row, ScenarioTable, Value
from harness.analysis.verdicts import Verdict, Withheld
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.environment import Device
from harness.model.launch import Clock
from harness.model.scenario import CPUS, Scenario


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One cell of a curve: its size, and its seconds per step."""

    size: float
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one column along a sweep, by increasing size."""

    side: Side
    points: Sequence[SweepPoint]


@dataclass(frozen=True, slots=True)
class SizeVerdict:
    """The verdict on a comparison at one size of a sweep."""

    size: float
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """A comparison along a sweep: log(time(other) / time(side)), above 0 if `side` of the column is faster.

    `sizes` contains the sizes that are compared, and `rounds` is the number of rounds that all of them have. If the two
    sides did different work at some size, `different` describes it, and `lead` is None. `verdicts` are the table's
    verdicts, by increasing size.
    """

    column: ScenarioColumn
    sizes: Sequence[float]
    rounds: int
    lead: SweepOrdering | None
    different: str = ""
    verdicts: Sequence[SizeVerdict] = ()

    @property
    def crossings(self) -> Sequence[Crossing]:
        """The crossover points of the two sides."""
        return self.lead.crossings if self.lead else ()

    @property
    def unclear(self) -> Sequence[Interval]:
        """The ranges of sizes in which neither side certainly takes less time."""
        return self.lead.unclear if self.lead else ()

    @property
    def ahead(self) -> Side | None:
        """The side that takes less time at all sizes; None if there is a crossover, or if neither side is certain."""
        if not self.lead or self.lead.crossings:
            return None
        return self.column.side if self.lead.above else self.column.other if self.lead.below else None


@dataclass(frozen=True, slots=True)
class MeasuredSweep:
    """All curves of a table along `axis`, with sizes in `unit` (may be empty).

    The curves have the device and the values `shared` of the other row axes in common. `races` are the comparisons of
    two curves. `withheld`: the table has comparisons, but `races` is empty because the A/A control is beyond the
    margin.
    """

    scenario: Scenario
    axis: str
    unit: str
    device: Device
    shared: Mapping[str, str]
    curves: Sequence[Curve]
    races: Sequence[SweepComparison]
    withheld: bool = False

    @property
    def sizes(self) -> list[float]:
        """All sizes at which at least one curve has a time."""
        return sorted({point.size for curve in self.curves for point in curve.points})


def sweeps(table: ScenarioTable, lookup: Lookup, margin: float) -> list[MeasuredSweep]:
    """Return the table's sweeps that have times for at least two sizes, in the order of axes and rows.

    `margin` is on the log scale.
    """
    all_sweeps = []
    for axis in (axis for axis in table.scenario.row_axes if axis in table.scenario.sweeps):
        rows_by_values: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in table.rows:
            rows_by_values[row.device.value, *(value for name, value in row.axes.items() if name != axis)].append(row)
        all_sweeps += [
            _make_sweep(table, axis, sorted(rows, key=lambda row: float(row.axes[axis])), lookup, margin)
            for rows in rows_by_values.values()
        ]
    return [sweep for sweep in all_sweeps if len(sweep.sizes) > 1]


def _make_sweep(table: ScenarioTable, axis: str, rows: Sequence[Row], lookup: Lookup, margin: float) -> MeasuredSweep:
    # one machine measured all of these rows, but an unavailable cell doesn't have a machine
    withheld = any(lookup.is_lost(table.cell(row, column.side), margin) for row in rows for column in table.columns)
    by_column = [
        (column, [(float(row.axes[axis]), row.values[index]) for row in rows])
        for index, column in enumerate(table.columns)
    ]
    curves = [
        Curve(column.side, points)
        for column, values in by_column
        if not column.other
        and (points := [SweepPoint(size, value.estimate) for size, value in values if value.estimate])
    ]
    comparisons = [
        comparison
        for column, values in by_column
        if column.other and (comparison := _compare_along(column, values, lookup))
    ]
    return MeasuredSweep(
        scenario=table.scenario,
        axis=axis,
        unit=table.scenario.sweeps[axis].unit,
        device=rows[0].device,
        shared={name: value for name, value in rows[0].axes.items() if name != axis},
        curves=curves,
        races=[] if withheld else comparisons,
        withheld=withheld and bool(comparisons),
    )


def _compare_along(
    column: ScenarioColumn, values: Sequence[tuple[float, Value]], lookup: Lookup
) -> SweepComparison | None:
    """Return the comparison of a column along the sweep; None if fewer than two sizes have a result."""
    comparisons = {size: value.compared for size, value in values if value.compared}
    # without common steps, the times of non-stationary steps can't be compared
    usable_comparisons = {
        size: comparison for size, comparison in comparisons.items() if comparison.withheld is not Withheld.TREND
    }
    difference = next((comparison.work.reason for comparison in comparisons.values() if comparison.work.differs), "")
    sizes, times = _align_times(
        {size: _pair_times(comparison, lookup) for size, comparison in usable_comparisons.items()}
    )
    if len(sizes) < 2:
        return None
    other_times, side_times = (interpolate_times(sizes, times[:, :, side]) for side in (0, 1))
    ordering = None if difference else find_order(refine_sizes(sizes), np.log(other_times) - np.log(side_times), sizes)
    verdicts = [SizeVerdict(size, comparison.verdict) for size, comparison in comparisons.items()]
    return SweepComparison(column, sizes, len(times), ordering, difference, verdicts)


def _pair_times(compared: Compared, lookup: Lookup) -> dict[int, tuple[float, float]]:
    """Return both times of a comparison, the other cell's first, for every round that both cells have."""
    cell_means, other_means = select_pair(compared.cell, compared.other, compared.steps, lookup)
    return {
        number: (other_means[number], cell_means[number]) for number in sorted(other_means.keys() & cell_means.keys())
    }


def _align_times(times: Mapping[float, Mapping[int, tuple[float, float]]]) -> tuple[list[float], Floats]:
    """Return the sizes to compare, and their times in the rounds that all of them have, of shape (rounds, sizes, 2).

    A size with fewer than three rounds is omitted if other sizes have more rounds, because it would reduce the number
    of common rounds. If there are fewer than two common rounds, the means of each size are used as one round.
    """
    most_rounds = max(map(len, times.values()), default=0)
    sizes = [size for size, pairs in times.items() if len(pairs) >= min(most_rounds, FEWEST_ROUNDS)]
    rounds = sorted(set.intersection(*(set(times[size]) for size in sizes))) if sizes else []
    if len(rounds) < 2:
        means = [np.exp(np.log(list(times[size].values())).mean(axis=0)) for size in sizes]
        return sizes, np.array([means], np.float64)
    return sizes, np.array([[times[size][number] for size in sizes] for number in rounds], np.float64)


# Scaling over cores: the speed-up and the efficiency on each number of cores.


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """A cell on a number of `cores`, compared with the same cell on the `fewest` cores in the run.

    `compared` is this comparison; it is None for the cell on the fewest cores.
    """

    row: Row
    side: Side
    cores: int
    fewest: int
    time: Estimate
    compared: Compared | None

    @property
    def speed_up(self) -> Estimate | None:
        """Return time(fewest cores) / time(these cores), with the interval of the ratio; None for different work."""
        if self.compared is None or self.compared.verdict is Verdict.DIFFERENT_WORK:
            return None
        return self.compared.ratio.inverse

    @property
    def efficiency(self) -> Estimate | None:
        """Return the speed-up divided by the factor by which the number of cores is larger. 1 is perfect scaling."""
        ratio = self.speed_up
        if ratio is None:
            return None
        share, interval = self.fewest / self.cores, ratio.interval
        return Estimate(
            ratio.value * share,
            ratio.rounds,
            None if interval is None else Interval(interval.low * share, interval.high * share),
        )


def scaling(table: ScenarioTable) -> list[ScalingPoint]:
    """Return the points of a table if it has wall-clock times for several numbers of cores.

    The points have the order of the table's rows and columns. CPU time is the work of all cores, so it has no speed-up.
    """
    if CPUS not in table.column_axes or CPUS not in table.scenario.settings:
        return []
    if table.clock is Clock.CPU or not is_time(table.quantity):
        return []
    return [point for row in table.rows for point in _list_row_points(table, row)]


def _list_row_points(table: ScenarioTable, row: Row) -> Iterator[ScalingPoint]:
    fewest_cores = min(int(count) for count in table.scenario.axes[CPUS])
    compared = {
        table.cell(row, column.side): value.compared
        for column, value in table.values(row)
        if column.comparison and column.comparison.along == CPUS
    }
    for column, value in table.values(row):
        cell, cores = table.cell(row, column.side), int(column.side.axes[CPUS])
        if column.other is None and value.estimate and (cores == fewest_cores or compared.get(cell)):
            yield ScalingPoint(row, column.side, cores, fewest_cores, value.estimate, compared.get(cell))
