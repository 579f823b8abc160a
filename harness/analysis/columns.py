"""The columns of a table, from the comparisons in a scenario's header.

No code in this module depends on a particular scenario.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.environments import get_represented_packages
from harness.model.environment import find_unmet
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT, STEP, Cell, Comparison, Scenario, has_values


@dataclass(frozen=True)
class Side:
    """One side of a comparison: an environment, and values of the compared axes."""

    environment: str
    axes: Mapping[str, str]

    @property
    def values(self) -> dict[str, str]:
        """The environment and the axes' values, by name."""
        return {ENVIRONMENT: self.environment, **self.axes}


@dataclass(frozen=True)
class ScenarioColumn:
    """A column with the time per step of `side`, or with the ratio time(other) / time(side) if `other` is set.

    A ratio is above 1 if `side` is faster. In a table of another quantity, values of this quantity replace times.
    `comparison` is the entry in the header that requests the ratio.
    """

    side: Side
    other: Side | None = None
    comparison: Comparison | None = None


def columns(run: Run, scenario: Scenario, cells: Sequence[Cell], quantity: str = STEP) -> list[ScenarioColumn]:
    """Return the columns of a scenario's table: columns of times, and then columns of ratios in the header's order.

    `cells` are the scenario's cells in the run. Only the header's comparisons of `quantity` are included. If two of
    them compare the same sides, only the first one gets a column.
    """
    sides = _find_sides(run, scenario, cells)
    ratios: list[ScenarioColumn] = []
    for entry in scenario.compare:
        if entry.of != quantity:
            continue
        pairs = [(column.side, column.other) for column in ratios]
        ratios += [
            ScenarioColumn(side, other, entry)
            for side, other in _list_compared_sides(run, scenario, entry, sides)
            if other in sides and (side, other) not in pairs
        ]
    return [*(ScenarioColumn(side) for side in sides), *ratios]


def _find_sides(run: Run, scenario: Scenario, cells: Iterable[Cell]) -> list[Side]:
    """Return the combinations of environments and values of the compared axes that occur in `cells`.

    Environments are in the run's order, and values in the header's order.
    """
    compared_axes = scenario.compared_axes
    combinations = {(cell.environment, *(cell.axes[axis] for axis in compared_axes)) for cell in cells}
    levels = [
        [environment.name for environment in run.environments],
        *(list(scenario.axes[axis]) for axis in compared_axes),
    ]

    def make_sort_key(values: tuple[str, ...]) -> list[int]:
        # values that aren't in run.json come last
        return [
            names.index(value) if value in names else len(names) for names, value in zip(levels, values, strict=True)
        ]

    return [
        Side(environment, dict(zip(compared_axes, values, strict=True)))
        for environment, *values in sorted(combinations, key=lambda item: (make_sort_key(item), item))
    ]


def _list_compared_sides(
    run: Run, scenario: Scenario, entry: Comparison, sides: Sequence[Side]
) -> list[tuple[Side, Side]]:
    """Return the pairs of sides that an entry compares. The second side of a pair may be missing from `sides`.

    Along an axis, `plus` is compared with each other value (or only with `against`), with the same values of the other
    axes and the same environment. Along the environments, each environment is compared with the run's baseline, for
    each combination of the compared axes.
    """
    if entry.along != ENVIRONMENT:
        baselines = (
            [entry.against] if entry.against else [value for value in scenario.axes[entry.along] if value != entry.plus]
        )
        return [
            (side, Side(side.environment, {**side.axes, entry.along: other}))
            for other in baselines
            for side in sides
            if side.axes[entry.along] == entry.plus
        ]
    if entry.pick:
        return _pick_sides(run, entry, sides)
    return [(side, Side(run.reference, side.axes)) for side in sides if side.environment != run.reference]


def _pick_sides(run: Run, entry: Comparison, sides: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Pair each environment with the baseline. Each side has the axis values of its first matching pick.

    Compared axes that no pick names must be equal on both sides.
    """

    def matches_pick(side: Side) -> bool:
        return any(
            axes is not None and has_values(axes, side.axes)
            for installed in get_represented_packages(run, side.environment)
            for axes in [next((pick.axes for pick in entry.pick if not find_unmet(pick.requires, installed)), None)]
        )

    matching_sides = [side for side in sides if matches_pick(side)]
    picked_axes = {axis for pick in entry.pick for axis in pick.axes}
    return [
        (side, other)
        for side in matching_sides
        for other in matching_sides
        if side.environment != run.reference == other.environment
        and all(side.axes[axis] == other.axes[axis] for axis in side.axes if axis not in picked_axes)
    ]
