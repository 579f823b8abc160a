"""What cells say beside one another, with no more lines than there are differences."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Entry = TypeVar("Entry")
Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FoldedLine(Generic[Entry]):
    """What cells with these axis values say, environment by environment; None where none of them says anything.

    An axis that is not among `axes` makes no difference to it.
    """

    axes: Mapping[str, str]
    entries: Sequence[Entry | None]


def fold(
    said: Mapping[tuple[tuple[str, ...], str], Entry],
    axes: Sequence[str],
    environments: Sequence[str],
    key: Callable[[Entry], Hashable],
) -> list[FoldedLine[Entry]]:
    """The lines that `said`, by the values of `axes` and the environment, needs.

    An axis is left out where what is said does not depend on it: two entries say the same when their `key` is equal,
    and one whose key is None (a cell that was not launched) agrees with all. The lines are in the order in which `said`
    first has their values.
    """
    points = {
        (tuple(zip(axes, values, strict=True)), environment): entry for (values, environment), entry in said.items()
    }
    # the last axes first: what a header names first tells most
    for axis in reversed(axes):
        without = _without(axis, points)
        if all(len({key(entry) for entry in entries} - {None}) <= 1 for entries in without.values()):
            points = {
                place: next((entry for entry in entries if key(entry) is not None), entries[0])
                for place, entries in without.items()
            }
    return [
        FoldedLine(dict(values), [points.get((values, environment)) for environment in environments])
        for values in dict.fromkeys(values for values, _ in points)
    ]


def _without(axis: str, points: Mapping[tuple[Values, str], Entry]) -> dict[tuple[Values, str], list[Entry]]:
    """The entries that fall together where an axis is not looked at."""
    found: dict[tuple[Values, str], list[Entry]] = {}
    for (values, environment), entry in points.items():
        found.setdefault((tuple(pair for pair in values if pair[0] != axis), environment), []).append(entry)
    return found
