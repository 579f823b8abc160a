"""The blocks of a round: launches that start together, and are interleaved if their group is."""

from collections.abc import Sequence

from harness.model.launch import Role
from harness.model.run import Group
from harness.model.scenario import Cell
from harness.plan.groups import order, split
from harness.runner.rounds import RoundLog

#: The assumed memory use of a launch, in bytes, if no pilot has measured it.
USUAL_MEMORY = 2.0**30

_Slot = tuple[Cell, Role]


def plan_blocks(ledger: RoundLog, group: Group, number: int, memory: float, starts: Sequence[int]) -> list[list[_Slot]]:
    """Return the launches of a round in the order in which they start. Each list is a block, measured together.

    If the launches of a group need more than `memory` bytes, there are several blocks. Each block then has the group's
    control cell, so that cells of different blocks can be compared. Pilots that start at the same time on the CPUs
    `starts` are a block too.
    """
    seed, slots = ledger.plan.seed, ledger.slots(group, number)
    ordered = order(seed, group.name, number, slots)
    if not number:
        return _plan_pilots(ledger, group, ordered, memory, starts)
    if not ledger.in_turns(group):
        return [[slot] for slot in ordered]
    peaks = [launch.resources.get("max_rss_bytes", 0.0) for launch in ledger.launches]
    usual_bytes = max(peaks, default=0.0) or USUAL_MEMORY
    bytes_by_cell = {cell: ledger.peak(cell) or usual_bytes for cell, _ in slots}
    control_launches = [slot for slot in ordered if slot[0] == group.control]
    other_launches = [slot for slot in ordered if slot[0] != group.control]
    available = memory - sum(bytes_by_cell[cell] for cell, _ in control_launches)
    parts = split(other_launches, [bytes_by_cell[cell] for cell, _ in other_launches], available)
    control_slots = [(cell, Role.CONTROL) for cell, _ in control_launches[:1]]
    blocks = [[*(control_slots if index else control_launches), *part] for index, part in enumerate(parts)]
    return [order(seed, f"{group.name}/{index}", number, block) for index, block in enumerate(blocks)]


def _plan_pilots(
    ledger: RoundLog, group: Group, ordered: Sequence[_Slot], memory: float, starts: Sequence[int]
) -> list[list[_Slot]]:
    """Return the pilots in the given order, as lists of pilots that start at the same time, one per environment.

    Only pilots that are certainly needed start together. Their memory use isn't known yet, so USUAL_MEMORY and the
    number of CPUs limit how many start together.
    """
    first_pilots: dict[str, _Slot] = {}
    separate: list[list[_Slot]] = []
    for cell, role in ordered:
        if cell.environment not in first_pilots and ledger.is_to_pilot(group, cell):
            first_pilots[cell.environment] = cell, role
        else:
            separate.append([(cell, role)])
    together = list(first_pilots.values())
    max_together = max(1, int(min(len(choose_starts(group, starts, len(together))), memory / USUAL_MEMORY)))
    return [*(together[start : start + max_together] for start in range(0, len(together), max_together)), *separate]


def choose_starts(group: Group, starts: Sequence[int], launches: int) -> Sequence[int]:
    """Return the CPUs on which launches of the group start at the same time; empty if they start one by one.

    Launches start one by one if their phases or their peak memory are compared.
    """
    own_starts = () if group.of else starts[:launches]
    return own_starts if len(own_starts) > 1 else ()
