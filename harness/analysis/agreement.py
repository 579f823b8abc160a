"""Agreement of machines that measured the same comparisons.

The results of different machines are never pooled, and there are no ratios between machines.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from harness.analysis.columns import ScenarioColumn
from harness.analysis.comparisons import Compared
from harness.analysis.tables import Row, ScenarioTable
from harness.analysis.verdicts import Verdict
from harness.model.scenario import MACHINE


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
    """Return the comparisons of a table that several machines measured, in the table's order."""
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
