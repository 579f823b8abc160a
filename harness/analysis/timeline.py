"""The launches of one table in the order in which they began, each compared with the mean of its cell."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.disturbance import disturbed
from harness.analysis.lookup import Lookup
from harness.analysis.rounds import gave_number
from harness.analysis.tables import ScenarioTable
from harness.model.launch import Launch, Role


@dataclass(frozen=True, slots=True)
class Moment:
    """One launch that gave a number: the `place`-th of its table, and its centre as a factor of its cell's mean.

    `mean` is that mean in seconds per step. `counts`: it is in the numbers; else its round was done again, or more than
    once. `disturbed`: others disturbed it.
    """

    launch: Launch
    place: int
    mean: float
    factor: float
    counts: bool
    disturbed: bool


def timeline(table: ScenarioTable, launches: Sequence[Launch], found: Lookup) -> list[Moment]:
    """The measured and control launches of the table's cells that have a mean."""
    means = {table.cell(row, head.side): value.estimate.value for row, head, value in table.times() if value.estimate}
    known = [
        launch
        for launch in launches
        if launch.cell.scenario == table.scenario.name
        and launch.role in (Role.MEASURE, Role.CONTROL)
        and launch.cell in means
        and gave_number(launch)
    ]
    counting = {id(launch) for cell in means for launch in found.numbers[cell]}
    return [
        Moment(
            launch=launch,
            place=place,
            mean=means[launch.cell],
            factor=launch.centre / means[launch.cell],
            counts=id(launch) in counting,
            disturbed=bool(disturbed(launch)),
        )
        # all instants are UTC, written in one way; what is not told keeps the order in which launches ended
        for place, launch in enumerate(sorted(known, key=lambda launch: launch.started), 1)
    ]
