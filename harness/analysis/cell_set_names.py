"""Names for sets of cells, so that a report can name many cells in one line."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from harness.model.scenario import DEVICE, ENVIRONMENT, Cell

# a cell as a point: its values by axis, including the environment and the device
_Point = dict[str, str]
_Sides = dict[str, set[str]]


@dataclass(frozen=True, slots=True)
class Box:
    """All cells of a scenario whose axis values are in `values`. An axis that isn't in `values` isn't restricted.

    `count` is the number of these cells in the run.
    """

    scenario: str
    values: Mapping[str, Sequence[str]]
    count: int


def cover_with_boxes(cells: Iterable[Cell], universe: Iterable[Cell], limit: int = 8) -> tuple[list[Box], int]:
    """Return at most `limit` boxes that contain only `cells`, each cell once, and the number of cells in no box.

    The algorithm is greedy: it starts with the first cell that isn't in a box, and extends a box along one axis after
    the other. The box must not contain other cells of `universe` or cells of an earlier box. The environment is the
    last axis, so that names usually contain it.
    """
    unique_cells = list(dict.fromkeys(cells))
    boxes: list[Box] = []
    left = 0
    everything = list(universe)
    for scenario in dict.fromkeys(cell.scenario for cell in unique_cells):
        points = {cell: _make_point(cell) for cell in everything if cell.scenario == scenario}
        remaining = dict.fromkeys(cell for cell in unique_cells if cell.scenario == scenario)
        while remaining and len(boxes) < limit:
            sides = _grow(next(iter(remaining)), points, remaining.keys())
            inside = [cell for cell, point in points.items() if _is_within(point, sides)]
            boxes.append(Box(scenario, _name_values(sides, points.values()), len(inside)))
            for cell in inside:
                del remaining[cell]
        left += len(remaining)
    return boxes, left


def _make_point(cell: Cell) -> _Point:
    return {**cell.axes, DEVICE: cell.device.value, ENVIRONMENT: cell.environment}


def _is_within(point: _Point, sides: _Sides, but: str = "") -> bool:
    return all(point[axis] in values for axis, values in sides.items() if axis != but)


def _grow(seed: Cell, points: Mapping[Cell, _Point], allowed: Set[Cell]) -> _Sides:
    sides = {axis: {value} for axis, value in _make_point(seed).items()}
    if len(allowed) == 1:
        return sides
    for axis in sides:
        foreign: set[str] = set()
        friendly: set[str] = set()
        for cell, point in points.items():
            if _is_within(point, sides, but=axis):
                (friendly if cell in allowed else foreign).add(point[axis])
        # if no other cell is excluded, add all values, so that the axis isn't part of the name
        sides[axis] = friendly - foreign if foreign else {point[axis] for point in points.values()}
    return sides


def _name_values(sides: _Sides, points: Iterable[_Point]) -> dict[str, tuple[str, ...]]:
    """Return the axes that are restricted, with their values in the run's order."""
    everything = list(points)
    occurring = {axis: dict.fromkeys(point[axis] for point in everything) for axis in sides}
    return {
        axis: tuple(value for value in occurring[axis] if value in values)
        for axis, values in sides.items()
        if not values.issuperset(occurring[axis])
    }
