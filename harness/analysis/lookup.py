"""What is known of every cell of a run, gathered once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.rounds import Series, counted, gave_number, pilots, series
from harness.model.cell import Cell
from harness.model.launch import Launch, Status
from harness.model.run import Run, Unavailable


@dataclass(frozen=True, slots=True)
class Lookup:
    """Every cell that the run names, and what there is of each.

    `cells` is an ordered set: the plan's cells, then those known to be unavailable. `series` holds centres by round,
    `numbers` the counted launches that gave one, `lost` those that gave none; `pilots` each cell's pilot;
    `unavailable` what was known before any launch.
    """

    cells: Mapping[Cell, None]
    series: Mapping[Cell, Series]
    numbers: Mapping[Cell, Sequence[Launch]]
    lost: Mapping[Cell, Sequence[Launch]]
    pilots: Mapping[Cell, Launch]
    unavailable: Mapping[Cell, Unavailable]

    def culprit(self, cell: Cell) -> Launch | None:
        """The launch that tells why the cell has no number: its last counted one, else its pilot if that broke."""
        if self.lost.get(cell):
            return self.lost[cell][-1]
        pilot = self.pilots.get(cell)
        return pilot if pilot and pilot.status is not Status.OK else None

    def status(self, cell: Cell) -> Status | None:
        """Why the cell has no number; None for a cell that the run does not name.

        A cell that was to be measured and of which there is nothing was interrupted; an `ok` without a single timed
        step is a failure.
        """
        if cell in self.unavailable:
            return Status.NOT_AVAILABLE
        culprit = self.culprit(cell)
        if culprit:
            return Status.FAILED if culprit.status is Status.OK else culprit.status
        return Status.INTERRUPTED if cell in self.cells else None


def lookup(run: Run, launches: Sequence[Launch]) -> Lookup:
    """Gather what the stored launches and the plan say of each cell."""
    unavailable = {entry.cell: entry for entry in run.plan.unavailable}
    numbers: dict[Cell, list[Launch]] = defaultdict(list)
    lost: dict[Cell, list[Launch]] = defaultdict(list)
    counting = counted(run.plan, launches)
    for launch in counting:
        (numbers if gave_number(launch) else lost)[launch.cell].append(launch)
    return Lookup(
        cells=dict.fromkeys([*run.plan.cells, *unavailable]),
        series=series(counting),
        numbers=dict(numbers),
        lost=dict(lost),
        pilots=pilots(launches),
        unavailable=unavailable,
    )
