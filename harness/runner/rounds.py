"""What has been done of a plan, judged from its launches alone: so a resumed run goes on as if never interrupted."""

from collections.abc import Iterable

from harness.model.cell import Cell
from harness.model.launch import Launch, Role, Status
from harness.model.run import Group

#: A cell whose last launches in a row ended so, in measured rounds, is not launched again.
GIVE_UP_AFTER = 2


class Ledger:
    """The launches of a run, by group and round."""

    def __init__(self, launches: Iterable[Launch] = ()) -> None:
        self._rounds: dict[tuple[str, int], list[Launch]] = {}
        self._cells: dict[Cell, list[Launch]] = {}
        for launch in launches:
            self.add(launch)

    def add(self, launch: Launch) -> None:
        """Count a finished launch in."""
        self._rounds.setdefault((launch.group, launch.round), []).append(launch)
        self._cells.setdefault(launch.cell, []).append(launch)

    def alive(self, group: Group, number: int) -> list[Cell]:
        """The group's cells that round `number` launches: those whose launches before it did not fail for good."""
        return [cell for cell in group.cells if not self._given_up(cell, number)]

    def is_complete(self, group: Group, number: int) -> bool:
        """Whether the newest attempt at this round launched every cell that it should."""
        attempt = self.attempts(group, number) - 1
        done = {
            launch.cell
            for launch in self._rounds.get((group.name, number), [])
            if launch.attempt == attempt and launch.status is not Status.INTERRUPTED
        }
        return all(cell in done for cell in self.alive(group, number))

    def attempts(self, group: Group, number: int) -> int:
        """How often this round was begun."""
        return 1 + max((launch.attempt for launch in self._rounds.get((group.name, number), [])), default=-1)

    def pilot(self, cell: Cell) -> Launch | None:
        """The cell's last pilot launch."""
        pilots = [launch for launch in self._cells.get(cell, []) if launch.role is Role.PILOT]
        return pilots[-1] if pilots else None

    def _given_up(self, cell: Cell, before: int) -> bool:
        earlier = [
            launch
            for launch in self._cells.get(cell, [])
            if launch.round < before and launch.status is not Status.INTERRUPTED
        ]
        pilots = [launch.status for launch in earlier if launch.role is Role.PILOT]
        if pilots and pilots[-1] is not Status.OK:
            return True
        last = [launch.status for launch in earlier if launch.role is not Role.PILOT][-GIVE_UP_AFTER:]
        return len(last) == GIVE_UP_AFTER and Status.OK not in last
