"""Groups of cells, the seeded random order of launches in rounds and turns, and blocks of launches."""

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from harness.model.run import Group
from harness.model.scenario import DEVICE, GROWTH, PRINTED, STEP, TRACES, Cell, Scenario

Slot = TypeVar("Slot")


def group(cells: Sequence[Cell], scenarios: Mapping[str, Scenario], reference: str) -> list[Group]:
    """Return the groups of cells. The cells of a group differ only in the environment and in compared axes.

    The control of a group is its first cell in the environment `reference`.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(name_group(cell, scenarios[cell.scenario]), []).append(cell)
    return [
        Group(
            name=name,
            scenario=members[0].scenario,
            device=device_of(members[0], scenarios[members[0].scenario]),
            axes={axis: members[0].axes[axis] for axis in scenarios[members[0].scenario].row_axes},
            cells=members,
            control=find_control(members, reference),
            of=[quantity for quantity in scenarios[members[0].scenario].quantities if is_of_launches(quantity)],
        )
        for name, members in groups.items()
    ]


def find_lone_cells(cells: Sequence[Cell], selected: Sequence[Cell], scenarios: Mapping[str, Scenario]) -> list[Cell]:
    """Return the cells that can't be compared, because the other `selected` cells of their group can't run.

    A single cell is still useful if its scenario has statements from its source, because the cell shows whether they
    are true. So such cells aren't returned, except in runs that compare devices.
    """
    sizes = Counter(name_group(cell, scenarios[cell.scenario]) for cell in selected)
    remaining = Counter(name_group(cell, scenarios[cell.scenario]) for cell in cells)
    return [
        cell
        for cell in cells
        if remaining[name := name_group(cell, scenarios[cell.scenario])] == 1 < sizes[name]
        and (DEVICE in cell.axes or not scenarios[cell.scenario].expect)
    ]


def is_of_launches(quantity: str) -> bool:
    """Return whether every launch has a value of the quantity, even without timed steps."""
    return quantity not in (STEP, GROWTH, TRACES) and not quantity.startswith(PRINTED)


def name_group(cell: Cell, scenario: Scenario) -> str:
    """Return the name of the cell's group: `step cpu model=small`."""
    values = [f"{axis}={cell.axes[axis]}" for axis in scenario.row_axes]
    return " ".join([cell.scenario, device_of(cell, scenario), *values])


def device_of(cell: Cell, scenario: Scenario) -> str:
    """Return the device of the cell's group: the cell's device, or `cpu,gpu` if devices are compared."""
    return ",".join(scenario.axes[DEVICE]) if DEVICE in scenario.compared_axes else cell.device.value


def find_control(cells: Sequence[Cell], reference: str) -> Cell | None:
    """Return the cell that other cells of the group are compared with. It is launched twice per round as A/A control.

    It is the first cell in the environment `reference`, otherwise the first of all cells. The result is None if there
    is a single cell.
    """
    if len(cells) < 2:
        return None
    return next((cell for cell in cells if cell.environment == reference), cells[0])


def keep_one_control(groups: Sequence[Group], scenarios: Mapping[str, Scenario]) -> list[Group]:
    """Return the groups. Only the smallest group, and groups that compare memory growth, keep the A/A control.

    The control shows how much two identical cells differ. One group is enough for this, and further rounds are more
    useful than more controls. Memory growth needs a control in the same group.
    """

    def compares_growth(candidate: Group) -> bool:
        scenario = scenarios[candidate.scenario]
        return GROWTH in scenario.quantities or any(claim.of == GROWTH for claim in scenario.claims)

    candidates = [candidate for candidate in groups if candidate.control]
    chosen = min(candidates, key=lambda candidate: len(candidate.cells)).name if candidates else ""
    return [
        replace(candidate, controlled=candidate.name == chosen or compares_growth(candidate)) for candidate in groups
    ]


def order(seed: int, group: str, number: int, slots: Sequence[Slot]) -> list[Slot]:
    """Return a group's launches in the order of round `number`: a random order that depends on the seed.

    With a fixed order, drift would look like a difference between cells. The order only depends on the seed, the group
    and the round, so a repeated round has the same order.
    """
    shuffled = list(slots)
    random.Random(f"{seed}/{group}/{number}").shuffle(shuffled)
    return shuffled


def order_turn(seed: int, group: str, number: int, members: int, turns: int) -> list[list[int]]:
    """Return the order of the members (numbered from 0) in each turn of round `number`.

    The design is balanced: after as many turns as there are members (twice as many if their number is odd), each member
    has had each position equally often, and has followed each other member equally often. It consists of the rows in E.
    J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments", Australian
    Journal of Scientific Research A 2, 1949. The seed determines which member is which, and the order of the rows.
    """
    generator = random.Random(f"{seed}/{group}/{number}/turns")
    zigzag = [(index + 1) // 2 if index % 2 else (members - index // 2) % members for index in range(members)]
    orders: list[list[int]] = []
    while len(orders) < turns:
        names = generator.sample(range(members), members)
        rows = [[names[(index + shift) % members] for index in zigzag] for shift in range(members)]
        if members % 2:
            rows += [row[::-1] for row in rows]
        orders += generator.sample(rows, len(rows))
    return orders[:turns]


def split(items: Sequence[Slot], sizes: Sequence[float], room: float) -> list[list[Slot]]:
    """Split items into the smallest number of about equally long parts whose total sizes are at most `room`.

    If a single item is larger than `room`, it is a separate part.
    """
    for parts in range(1, max(1, len(items))):
        bounds = [round(len(items) * part / parts) for part in range(parts + 1)]
        if all(sum(sizes[start:end]) <= room for start, end in itertools.pairwise(bounds)):
            return [list(items[start:end]) for start, end in itertools.pairwise(bounds)]
    return [[item] for item in items] or [[]]
