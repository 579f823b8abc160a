"""Complete factorials: levels of axes, every combination of which is there."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

#: So many boxes are looked at, at most. Designs with slabs missing need some tens.
MOST_BOXES = 1000

# by axis, the indices of the levels that are kept, ascending
_Box = tuple[tuple[int, ...], ...]


def largest(axes: Mapping[str, Sequence[str]], points: Collection[tuple[str, ...]]) -> dict[str, list[str]] | None:
    """The largest complete factorial among `points`, as the levels kept of each axis; None where there is none.

    `axes` maps each axis to its levels; a point has a level of each, in their order. At least two axes keep two levels.
    Most points win; of equally many, most axes with two levels or more, then most levels of the axes named first, then
    the levels named first. It is the largest as long as a thousand boxes are enough to find it, else that of those.
    """
    places = [{level: index for index, level in enumerate(levels)} for levels in axes.values()]
    indexed = {tuple(place[level] for place, level in zip(places, point, strict=True)) for point in points}
    box = _search(tuple(tuple(range(len(levels))) for levels in axes.values()), sorted(indexed))
    if box is None:
        return None
    return {axis: [levels[index] for index in kept] for (axis, levels), kept in zip(axes.items(), box, strict=True)}


def _search(whole: _Box, points: Sequence[tuple[int, ...]]) -> _Box | None:
    """Depth first: of a combination that is missing, one level must go, whichever leaves most points first.

    No complete box within a box has more points than that has, so one with fewer than the best is given up.
    """
    known, table = set(points), np.array(points, np.intp).reshape(len(points), len(whole))
    best: _Box | None = None
    waiting, met = [(whole, table)], {whole}
    looked = 0
    while waiting and looked < MOST_BOXES:
        box, inside = waiting.pop()
        looked += 1
        if _varying(box) < 2 or (best and len(inside) < _size(best)):
            continue
        if len(inside) == _size(box):
            best = min(box, best or box, key=_rank)
            continue
        missing = next(point for point in product(*box) if point not in known)
        smaller = [each for each in _without(box, inside, missing) if each[0] not in met]
        met.update(each[0] for each in smaller)
        # the last one is looked at next
        waiting += sorted(smaller, key=lambda each: len(each[1]))
    return best


def _without(
    box: _Box, inside: npt.NDArray[np.intp], missing: tuple[int, ...]
) -> list[tuple[_Box, npt.NDArray[np.intp]]]:
    """The box without one of the levels of `missing`, for each axis that has another; and the points left inside."""
    return [
        (
            (*box[:axis], tuple(each for each in box[axis] if each != level), *box[axis + 1 :]),
            inside[inside[:, axis] != level],
        )
        for axis, level in enumerate(missing)
        if len(box[axis]) > 1
    ]


def _rank(box: _Box) -> tuple[int, int, list[tuple[int, tuple[int, ...]]]]:
    return -_size(box), -_varying(box), [(-len(kept), kept) for kept in box]


def _size(box: _Box) -> int:
    return math.prod(len(kept) for kept in box)


def _varying(box: _Box) -> int:
    return sum(len(kept) > 1 for kept in box)
