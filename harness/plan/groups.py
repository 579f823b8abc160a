"""Cells to groups, and groups to seeded rounds."""

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

from harness.model.run import Group
from harness.model.scenario import Cell, Scenario

Slot = TypeVar("Slot")


def group(cells: Sequence[Cell], scenarios: Mapping[str, Scenario], reference: str) -> list[Group]:
    """The cells in the groups that will be compared: those that differ only in environment and compared axes.

    Each group's control is its first cell in the environment `reference`.
    """
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        shared = [f"{axis}={cell.axes[axis]}" for axis in scenarios[cell.scenario].row_axes]
        groups.setdefault((cell.scenario, cell.device.value, *shared), []).append(cell)
    return [
        Group(
            name=" ".join(key),
            scenario=members[0].scenario,
            device=members[0].device.value,
            axes={axis: members[0].axes[axis] for axis in scenarios[members[0].scenario].row_axes},
            cells=members,
            control=control(members, reference),
        )
        for key, members in groups.items()
    ]


def control(cells: Sequence[Cell], reference: str) -> Cell | None:
    """The cell that is launched twice a round: the reference's first one, else the first; None of a single cell.

    One cell is enough to show what launches of the same thing differ by, and a second one would cost as much again.
    """
    if len(cells) < 2:
        return None
    return next((cell for cell in cells if cell.environment == reference), cells[0])


def order(seed: int, group: str, number: int, slots: Sequence[Slot]) -> list[Slot]:
    """The order in which round `number` makes the launches of a group: a shuffle drawn from the seed.

    A fixed order mistakes drift for a difference. Each round of each group draws by itself, so that a round done again
    after an interruption, or by itself, has the same order.
    """
    shuffled = list(slots)
    random.Random(f"{seed}/{group}/{number}").shuffle(shuffled)
    return shuffled
