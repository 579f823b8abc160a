"""Agreement of machines that measured the same comparisons.

The results of different machines are never pooled, and there are no ratios between machines.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
        """Whether all verdicts are clear and equal. False if clear verdicts differ; None if it isn't certain."""
        verdicts = self.verdicts.values()
        clear = {verdict for verdict in verdicts if verdict not in (None, Verdict.UNCLEAR)}
        if len(clear) > 1:
            return False
        return True if clear and all(verdict in clear for verdict in verdicts) else None


def agreements(table: ScenarioTable) -> list[Agreement]:
    """Return the comparisons of a table that several machines measured, in the table's order."""
    comparisons: list[Agreement] = []
    for index, head in enumerate(table.columns):
        alike: dict[tuple[object, ...], list[Row]] = defaultdict(list)
        for row in table.rows:
            if row.machine and row.values[index].compared:
                shared = tuple(value for axis, value in row.axes.items() if axis != MACHINE)
                alike[row.device, *shared].append(row)
        comparisons += [_compare_machines(table, head, index, rows) for rows in alike.values() if len(rows) > 1]
    return comparisons


def _compare_machines(table: ScenarioTable, head: ScenarioColumn, index: int, rows: Sequence[Row]) -> Agreement:
    compared = {row.machine: comparison for row in rows if (comparison := row.values[index].compared)}
    return Agreement(table, head, rows[0], compared)
