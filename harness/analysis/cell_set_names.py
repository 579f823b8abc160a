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
    """Return at most `limit` boxes that contain only `cells`, each cell once, and the number of cells in none of them.

    The algorithm is greedy: it starts with the first cell that isn't in a box, and extends a box along one axis after
    another. The box must not contain other cells of `universe` or cells of an earlier box. The environment is the
    last axis, so that names usually contain it.
    """
    unique_cells = list(dict.fromkeys(cells))
    boxes: list[Box] = []
    uncovered_count = 0
    all_cells = list(universe)
    for scenario in dict.fromkeys(cell.scenario for cell in unique_cells):
        points = {cell: _make_point(cell) for cell in all_cells if cell.scenario == scenario}
        remaining_cells = dict.fromkeys(cell for cell in unique_cells if cell.scenario == scenario)
        while remaining_cells and len(boxes) < limit:
            sides = _grow(next(iter(remaining_cells)), points, remaining_cells.keys())
            covered_cells = [cell for cell, point in points.items() if _is_within(point, sides)]
            boxes.append(Box(scenario, _name_values(sides, points.values()), len(covered_cells)))
            for cell in covered_cells:
                del remaining_cells[cell]
        uncovered_count += len(remaining_cells)
    return boxes, uncovered_count


def _make_point(cell: Cell) -> _Point:
    return {**cell.axes, DEVICE: cell.device.value, ENVIRONMENT: cell.environment}


def _is_within(point: _Point, sides: _Sides, ignored_axis: str = "") -> bool:
    return all(point[axis] in values for axis, values in sides.items() if axis != ignored_axis)


def _grow(seed: Cell, points: Mapping[Cell, _Point], allowed: Set[Cell]) -> _Sides:
    sides = {axis: {value} for axis, value in _make_point(seed).items()}
    if len(allowed) == 1:
        return sides
    for axis in sides:
        excluded_values: set[str] = set()
        allowed_values: set[str] = set()
        for cell, point in points.items():
            if _is_within(point, sides, ignored_axis=axis):
                (allowed_values if cell in allowed else excluded_values).add(point[axis])
        # if no other cell is excluded, add all values, so that the axis isn't part of the name
        all_values = {point[axis] for point in points.values()}
        sides[axis] = allowed_values - excluded_values if excluded_values else all_values
    return sides


def _name_values(sides: _Sides, points: Iterable[_Point]) -> dict[str, tuple[str, ...]]:
    """Return the axes that are restricted, with their values in the run's order."""
    all_points = list(points)
    axis_values = {axis: dict.fromkeys(point[axis] for point in all_points) for axis in sides}
    return {
        axis: tuple(value for value in axis_values[axis] if value in values)
        for axis, values in sides.items()
        if not values.issuperset(axis_values[axis])
    }
