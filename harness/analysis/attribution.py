"""Attribution: the effects of axes, computed from the cells of a table that form a complete factorial design."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from harness.analysis.cell_index import Lookup
from harness.analysis.distributions import Floats
from harness.analysis.effects import Effect, effects
from harness.analysis.tables import ScenarioTable
from harness.analysis.work_equivalence import Work
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.environment import Device
from harness.model.run import Run
from harness.model.scenario import DEVICE, ENVIRONMENT, Cell, Scenario

#: The largest number of interactions in a report. Interactions beyond the margin come first, then those farther from 1.
INTERACTIONS = 12

#: The largest number of boxes in the search for a complete factorial. If some levels have no cells, the search needs a
#: few dozen boxes.
MOST_BOXES = 1000

# for each axis, the ascending indices of the levels that a box contains
_Box = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The effects in one scenario on one device: main effects, then interactions.

    `axes` contains the axes that vary, with their levels, base first. `held` contains the other axes with several
    values in the run, each with the one value that was used. Of the `of` cells with a result, `cells` cells form the
    complete factorial. The effects are from the `rounds` rounds that all these cells have. `unchecked`: it is unknown
    whether some compared cells did the same work. All results come from one `machine`, if the run has several.
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
    machine: str = ""

    @property
    def judged(self) -> bool:
        """Whether there are enough rounds for verdicts."""
        return self.rounds >= FEWEST_ROUNDS

    @property
    def leading(self) -> list[Effect]:
        """The main effects beyond the margin, largest first."""
        return sorted((effect for effect in self.effects if effect.parts is None and effect.beyond), key=_rank_effect)

    @property
    def depending(self) -> Effect | None:
        """The largest interaction beyond the margin."""
        return min(
            (effect for effect in self.effects if effect.parts and effect.beyond), key=_rank_effect, default=None
        )

    @property
    def displayed_effects(self) -> list[Effect]:
        """The effects that reports show: all except the interactions in `omitted_ids`."""
        omitted_ids = {id(effect) for effect in self.left}
        return [effect for effect in self.effects if id(effect) not in omitted_ids]

    @property
    def left(self) -> list[Effect]:
        """The interactions that reports omit because there are too many."""
        return sorted((effect for effect in self.effects if effect.parts), key=_rank_effect)[INTERACTIONS:]


def _rank_effect(effect: Effect) -> tuple[bool, float]:
    """Return the sort key of an effect: effects beyond the margin come first, then those farther from 1."""
    return not effect.beyond, -effect.estimate.distance


def attributions(run: Run, table: ScenarioTable, lookup: Lookup) -> list[Attribution]:
    """Return the attribution for each device and machine of the table with a complete factorial of two or more axes.

    A table with a sweep has no attribution, because an average over sizes doesn't describe any size if curves cross.
    """
    if any(len({row.axes.get(axis) for row in table.rows}) > 1 for axis in table.scenario.sweeps):
        return []
    places = dict.fromkeys((row.device, row.machine) for row in table.rows)
    return [attribution for place in places if (attribution := _attribute_effects(run, table, lookup, *place))]


def _attribute_effects(
    run: Run, table: ScenarioTable, lookup: Lookup, device: Device, machine: str
) -> Attribution | None:
    values = [(table.cell(row, column.side), value) for row, column, value in table.times() if row.machine == machine]
    devices = {device, *map(Device, table.scenario.axes.get(DEVICE, ()))}
    measured = [cell for cell, value in values if cell.device in devices and value.estimate]
    needed_rounds = min(FEWEST_ROUNDS, max((len(lookup.series[cell]) for cell in measured), default=0))
    excluded_cells = _find_different_work(table)
    usable = {
        cell: {ENVIRONMENT: cell.environment, **cell.axes}
        for cell in measured
        if cell not in excluded_cells and cell not in lookup.trends and len(lookup.series[cell]) >= needed_rounds
    }
    axes = _find_levels(run, table.scenario, list(usable.values()))
    points = {tuple(facts[axis] for axis in axes): cell for cell, facts in usable.items()}
    factorial = find_largest(axes, points)
    if factorial is None:
        return None
    cells = [points[point] for point in product(*factorial.values())]
    rounds = sorted(set.intersection(*(set(lookup.series[cell]) for cell in cells)))
    if not rounds or not _were_measured_together(cells, rounds, lookup):
        return None
    varying_levels = {axis: levels for axis, levels in factorial.items() if len(levels) > 1}
    logs = np.log([[lookup.series[cell][number] for cell in cells] for number in rounds])
    log_array = logs.reshape(len(rounds), *(len(levels) for levels in varying_levels.values()))
    contention = _find_contention(lookup, cells, rounds, log_array.shape)
    return Attribution(
        scenario=table.scenario,
        device=device,
        axes=varying_levels,
        held={axis: factorial[axis][0] for axis in factorial if axis not in varying_levels and len(axes[axis]) > 1},
        cells=len(cells),
        of=len(measured),
        rounds=len(rounds),
        effects=effects(
            log_array,
            varying_levels,
            run.plan.margin,
            lookup.control_of(cells[0]),
            share=_find_share(table, cells, lookup),
            contention=contention,
        ),
        unchecked=_has_unchecked_work(table, cells),
        machine=machine,
    )


def _find_share(table: ScenarioTable, cells: Sequence[Cell], lookup: Lookup) -> float:
    """Return the share of the level that the effects may use.

    A clear verdict can end a group with `--precision` before the intervals are narrow. That end depends on the data, so
    the effects get the share of such a verdict.
    """
    shares = [lookup.look(cell).share for cell in cells]
    within = set(cells)
    for compared in table.compared:
        look, interval = lookup.look(compared.cell), compared.ratio.interval
        if {compared.cell, compared.other} <= within and look.settled and interval:
            is_wide = 0.5 * math.log(interval.high / interval.low) > look.narrow
            shares += [look.share * look.settled] if is_wide else []
    return min(shares)


def _were_measured_together(cells: Sequence[Cell], rounds: Sequence[int], lookup: Lookup) -> bool:
    """Return whether the cells are in one group, or their groups were measured round by round.

    If one group was measured after the other, an effect across groups would include changes of the machine.
    """
    if len({lookup.groups.get(cell) for cell in cells}) == 1:
        return True
    starts: dict[int, list[str]] = defaultdict(list)
    for cell in cells:
        for launch in lookup.numbers[cell]:
            starts[launch.round].append(launch.started)
    return all(max(starts[one]) <= min(starts[other]) for one, other in pairwise(rounds))


def _find_contention(
    lookup: Lookup, cells: Sequence[Cell], rounds: Sequence[int], shape: tuple[int, ...]
) -> tuple[Floats, float] | None:
    """Return the loss of each launch mean from CPU contention, in the given shape, and the unchecked share.

    Both terms are explained in `interference.Contention`.
    """
    contentions = [lookup.contentions.get(lookup.groups.get(cell, "")) for cell in cells]
    shares = [contention.unchecked for contention in contentions if contention]
    if not shares:
        return None
    losses = [lookup.losses(cell) for cell in cells]
    return np.reshape([[series.get(number, 0.0) for series in losses] for number in rounds], shape), max(shares)


def _find_different_work(table: ScenarioTable) -> set[Cell]:
    """Return the cells that did different work from a compared cell, except each row's largest set of equal work."""
    differing_cells: set[Cell] = set()
    for row in table.rows:
        compared = [value.compared for value in row.values if value.compared]
        pair_cells = {cell for pair in compared if pair.work.differs for cell in (pair.cell, pair.other)}
        if pair_cells:
            agreeing_sets = _connect_cells([{pair.cell, pair.other} for pair in compared if not pair.work.differs])
            differing_cells |= pair_cells - max(agreeing_sets, key=len, default=set())
    return differing_cells


def _connect_cells(pairs: Sequence[set[Cell]]) -> list[set[Cell]]:
    """Return the sets of cells that are connected with each other by pairs."""
    groups: list[set[Cell]] = []
    for pair in pairs:
        overlapping = [group for group in groups if group & pair]
        groups = [*(group for group in groups if group not in overlapping), pair.union(*overlapping)]
    return groups


def _has_unchecked_work(table: ScenarioTable, cells: Sequence[Cell]) -> bool:
    cell_set = set(cells)
    return any(pair.work.work is Work.NOT_CHECKED and {pair.cell, pair.other} <= cell_set for pair in table.compared)


def _find_levels(run: Run, scenario: Scenario, usable: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the levels of each axis, the base first. Axes are the environment, the compared axes, and the row axes."""
    by_axis = {
        ENVIRONMENT: [run.reference, *(environment.name for environment in run.environments)],
        **{axis: scenario.axes[axis] for axis in (*scenario.compared_axes, *scenario.row_axes)},
    }
    measured_levels = {axis: sorted({facts[axis] for facts in usable}) for axis in by_axis}
    return {
        axis: [level for level in dict.fromkeys([*levels, *measured_levels[axis]]) if level in measured_levels[axis]]
        for axis, levels in by_axis.items()
    }


def find_largest(axes: Mapping[str, Sequence[str]], points: Collection[tuple[str, ...]]) -> dict[str, list[str]] | None:
    """Return the levels of each axis in the largest complete factorial among `points`; None if there is none.

    `axes` maps each axis to its levels. A point has one level of each axis, in the same order. In the result, at least
    two axes have two or more levels. The factorial with the most points wins. In a tie, more varying axes win, then
    more levels in the axes that are listed first, and then levels that are listed first. The result is exact if the
    search needs at most a thousand boxes. Otherwise, it is the largest factorial that the search found.
    """
    indexes = [{level: index for index, level in enumerate(levels)} for levels in axes.values()]
    indexed = {tuple(numbers[level] for numbers, level in zip(indexes, point, strict=True)) for point in points}
    box = _search(tuple(tuple(range(len(levels))) for levels in axes.values()), sorted(indexed))
    if box is None:
        return None
    return {
        axis: [levels[index] for index in level_indexes]
        for (axis, levels), level_indexes in zip(axes.items(), box, strict=True)
    }


def _search(full_box: _Box, points: Sequence[tuple[int, ...]]) -> _Box | None:
    """Return the largest complete box, found by a depth-first search; None if there is none.

    If a combination is missing, one of its levels must be removed. The search first tries the level whose removal
    leaves the most points. Removing levels never adds points, so the search skips boxes that already have fewer points
    than the best complete box.
    """
    members, table = set(points), np.array(points, np.intp).reshape(len(points), len(full_box))
    best: _Box | None = None
    stack, known_boxes = [(full_box, table)], {full_box}
    count = 0
    while stack and count < MOST_BOXES:
        box, box_points = stack.pop()
        count += 1
        if _count_varying_axes(box) < 2 or (best and len(box_points) < _count_points(best)):
            continue
        if len(box_points) == _count_points(box):
            best = min(box, best or box, key=_rank)
            continue
        missing = next(point for point in product(*box) if point not in members)
        candidates = [
            candidate for candidate in _split_box(box, box_points, missing) if candidate[0] not in known_boxes
        ]
        known_boxes.update(candidate[0] for candidate in candidates)
        # the candidate with the most points is last, because the search continues with the last one
        stack += sorted(candidates, key=lambda candidate: len(candidate[1]))
    return best


def _split_box(
    box: _Box, box_points: npt.NDArray[np.intp], missing: tuple[int, ...]
) -> list[tuple[_Box, npt.NDArray[np.intp]]]:
    """Return smaller boxes, each without one level of `missing`, and the points in each smaller box."""
    return [
        (
            (*box[:axis], tuple(other for other in box[axis] if other != level), *box[axis + 1 :]),
            box_points[box_points[:, axis] != level],
        )
        for axis, level in enumerate(missing)
        if len(box[axis]) > 1
    ]


def _rank(box: _Box) -> tuple[int, int, list[tuple[int, tuple[int, ...]]]]:
    return -_count_points(box), -_count_varying_axes(box), [(-len(levels), levels) for levels in box]


def _count_points(box: _Box) -> int:
    return math.prod(len(levels) for levels in box)


def _count_varying_axes(box: _Box) -> int:
    return sum(len(levels) > 1 for levels in box)
