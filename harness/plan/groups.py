"""Cells to groups, and groups to seeded rounds."""

import random
from collections.abc import Mapping, Sequence

from harness.model.cell import Cell
from harness.model.run import Group
from harness.model.scenario import Scenario


def group(cells: Sequence[Cell], scenarios: Mapping[str, Scenario]) -> list[Group]:
    """The cells in the groups that will be compared: those that differ only in environment and compared axes."""
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
        )
        for key, members in groups.items()
    ]


def order(seed: int, group: str, number: int, cells: Sequence[Cell]) -> list[Cell]:
    """The order in which round `number` launches the cells of a group: a shuffle drawn from the seed.

    A fixed order mistakes drift for a difference. Each round of each group draws by itself, so that a round done again
    after an interruption, or by itself, has the same order.
    """
    shuffled = list(cells)
    random.Random(f"{seed}/{group}/{number}").shuffle(shuffled)
    return shuffled
