"""Scaling over cores: the speed-up and the efficiency on each number of cores, from the comparisons of a table."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analysis.columns import Side
from harness.analysis.comparisons import Compared
from harness.analysis.quantities import is_time
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.tables import Row, ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.launch import Clock
from harness.model.scenario import CPUS


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
