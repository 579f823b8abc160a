"""What accounts for a gap: the cells of a table that are a designed experiment, and the effects of its axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from harness.analysis.effects import Effect, effects
from harness.analysis.factorial import largest
from harness.analysis.lookup import Lookup
from harness.analysis.moderation import FEWEST
from harness.analysis.tables import ScenarioTable
from harness.analysis.verdicts import FEWEST_ROUNDS
from harness.analysis.work import Work
from harness.model.environment import Device
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, Cell, Scenario

#: More interactions than this are not told: those that are, are beyond the margin, or else farthest from 1.
INTERACTIONS = 12


@dataclass(frozen=True, slots=True)
class Attribution:
    """The effects in one scenario on one device: first those of single changes, then the interactions.

    `axes` are those that vary and their levels, the base first; `held` are the others of which the run has several
    values, and the one that was used. `cells` of the `of` cells with a number are the factorial, in `rounds` rounds
    that all of them have. `unchecked`: of some that the table compares it is not known whether they did the same work.
    """

    scenario: Scenario
    device: Device
    axes: Mapping[str, Sequence[str]]
    held: Mapping[str, str]
    cells: int
    of: int
    rounds: int
    effects: Sequence[Effect]
    unchecked: bool

    @property
    def judged(self) -> bool:
        """Whether there were rounds enough for verdicts."""
        return self.rounds >= FEWEST_ROUNDS

    @property
    def leading(self) -> list[Effect]:
        """The single changes beyond the margin, the largest first."""
        return sorted((each for each in self.effects if each.parts is None and each.beyond), key=_prominence)

    @property
    def depending(self) -> Effect | None:
        """The largest interaction beyond the margin."""
        return min((each for each in self.effects if each.parts and each.beyond), key=_prominence, default=None)

    @property
    def told(self) -> list[Effect]:
        """The effects without the interactions that are `left`."""
        left = {id(each) for each in self.left}
        return [each for each in self.effects if id(each) not in left]

    @property
    def left(self) -> list[Effect]:
        """The interactions that are too many to tell."""
        return sorted((each for each in self.effects if each.parts), key=_prominence)[INTERACTIONS:]

    @property
    def moderated(self) -> bool:
        """Whether the effects' variances lent one another degrees of freedom."""
        return self.judged and len(self.effects) >= FEWEST


def _prominence(effect: Effect) -> tuple[bool, float]:
    """What is beyond the margin comes first, then what is farther from 1."""
    return not effect.beyond, -effect.distance


def attributions(run: Run, table: ScenarioTable, found: Lookup) -> list[Attribution]:
    """The attribution of each of the table's devices on which two axes or more vary in a complete factorial.

    Along a sweep there is none: an average over sizes, of curves that cross, describes no size.
    """
    if any(len({row.axes.get(axis) for row in table.rows}) > 1 for axis in table.scenario.sweeps):
        return []
    devices = dict.fromkeys(row.device for row in table.rows)
    return [made for device in devices if (made := _attribution(run, table, found, device))]


def _attribution(run: Run, table: ScenarioTable, found: Lookup, device: Device) -> Attribution | None:
    measured = _measured(table, device)
    usable = _usable(measured, _odd(table), found)
    axes = _axes(run, table.scenario, usable)
    points = {tuple(_facts(cell)[axis] for axis in axes): cell for cell in usable}
    kept = largest(axes, points)
    if kept is None:
        return None
    cells = [points[point] for point in product(*kept.values())]
    rounds = sorted(set.intersection(*(set(found.series[cell]) for cell in cells)))
    if not rounds:
        return None
    varying = {axis: levels for axis, levels in kept.items() if len(levels) > 1}
    logs = np.log([[found.series[cell][number] for cell in cells] for number in rounds])
    shaped = logs.reshape(len(rounds), *(len(levels) for levels in varying.values()))
    return Attribution(
        scenario=table.scenario,
        device=device,
        axes=varying,
        held={axis: kept[axis][0] for axis in kept if axis not in varying and len(axes[axis]) > 1},
        cells=len(cells),
        of=len(measured),
        rounds=len(rounds),
        effects=effects(shaped, varying, run.plan.margin, found.control),
        unchecked=_unchecked(table, cells),
    )


def _measured(table: ScenarioTable, device: Device) -> list[Cell]:
    """The device's cells that have a number."""
    return [
        table.cell(row, head.side)
        for row in table.rows
        if row.device is device
        for head, value in zip(table.columns, row.values, strict=True)
        if head.other is None and value.estimate
    ]


def _usable(cells: Sequence[Cell], odd: set[Cell], found: Lookup) -> list[Cell]:
    """Those that did the work of the others in their row, in four rounds, or in the most that any cell has."""
    enough = min(FEWEST_ROUNDS, max((len(found.series[cell]) for cell in cells), default=0))
    return [cell for cell in cells if cell not in odd and len(found.series[cell]) >= enough]


def _odd(table: ScenarioTable) -> set[Cell]:
    """The cells that did other work than one they are compared with, but for the most in a row that agree."""
    odd: set[Cell] = set()
    for row in table.rows:
        compared = [value.compared for value in row.values if value.compared]
        apart = {cell for each in compared if each.work.work is Work.DIFFERENT for cell in (each.cell, each.other)}
        if apart:
            agreeing = _joined([{each.cell, each.other} for each in compared if each.work.work is not Work.DIFFERENT])
            odd |= apart - max(agreeing, key=len, default=set())
    return odd


def _joined(pairs: Sequence[set[Cell]]) -> list[set[Cell]]:
    """The sets of cells that pairs connect."""
    joined: list[set[Cell]] = []
    for pair in pairs:
        touching = [each for each in joined if each & pair]
        joined = [*(each for each in joined if each not in touching), pair.union(*touching)]
    return joined


def _unchecked(table: ScenarioTable, cells: Sequence[Cell]) -> bool:
    within = set(cells)
    compared = [value.compared for row in table.rows for value in row.values if value.compared]
    between = [each for each in compared if each.cell in within and each.other in within]
    return any(each.work.work is Work.NOT_CHECKED for each in between)


def _axes(run: Run, scenario: Scenario, cells: Sequence[Cell]) -> dict[str, list[str]]:
    """The levels that occur, the base first: of the environment (the reference), the compared axes, and the others."""
    known = {
        ENVIRONMENT: [run.reference, *(each.name for each in run.environments)],
        **{axis: scenario.axes[axis] for axis in (*scenario.compared_axes, *scenario.row_axes)},
    }
    facts = [_facts(cell) for cell in cells]
    occurring = {axis: sorted({each[axis] for each in facts}) for axis in known}
    return {
        axis: [value for value in dict.fromkeys([*names, *occurring[axis]]) if value in occurring[axis]]
        for axis, names in known.items()
    }


def _facts(cell: Cell) -> dict[str, str]:
    return {ENVIRONMENT: cell.environment, **cell.axes}
