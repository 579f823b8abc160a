"""The progress of a run. It depends only on the launches, so a resumed run continues as if it wasn't interrupted."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import fmean

from harness.analysis.interference import describe_interference
from harness.analysis.rounds import is_to_measure
from harness.model.launch import Launch, Role, Status
from harness.model.run import Group, Plan
from harness.model.scenario import Cell

#: If this many measured launches of a cell fail in a row, it isn't launched again.
GIVE_UP_AFTER = 2

#: At most one in REPEAT_ONE_IN rounds is repeated because it was noisy.
REPEAT_ONE_IN = 5


class RoundLog:
    """The launches of a run, by group and round."""

    def __init__(self, plan: Plan, launches: Iterable[Launch] = ()) -> None:
        self.plan = plan
        self.launches: list[Launch] = []
        #: The width of the widest interval, by group and number of rounds (runner/stop_rules.py).
        self.widths: dict[tuple[str, int], float] = {}
        self._rounds: dict[tuple[str, int], list[Launch]] = defaultdict(list)
        self._cells: dict[Cell, list[Launch]] = defaultdict(list)
        for launch in launches:
            self.add(launch)

    def add(self, launch: Launch) -> None:
        """Add a finished launch."""
        self.launches.append(launch)
        self._rounds[launch.group, launch.round].append(launch)
        self._cells[launch.cell].append(launch)

    @property
    def ended(self) -> list[Launch]:
        """The launches that weren't interrupted. The duration of an interrupted launch isn't known."""
        return [launch for launch in self.launches if launch.status is not Status.INTERRUPTED]

    def slots(self, group: Group, number: int) -> list[tuple[Cell, Role]]:
        """Return the cells and roles that round `number` of the group launches.

        These launches are left out: launches of cells that failed repeatedly, launches of cells that only make
        observations and whose pilot has recorded them, pilots that aren't needed, and the A/A control of a cell that
        has no other cell left to compare with.
        """
        active_cells = {
            cell
            for cell in group.cells
            if (not self._is_given_up(group, cell, number) if number else self.is_to_pilot(group, cell))
        }
        return [
            (cell, role)
            for cell, role in self.plan.slots(group, number)
            if cell in active_cells and (role is not Role.CONTROL or len(active_cells) > 1)
        ]

    def is_complete(self, group: Group, number: int) -> bool:
        """Return whether the newest attempt at this round has all its launches."""
        return self._has_all_launches(group, number, self.attempts(group, number) - 1)

    def attempts(self, group: Group, number: int) -> int:
        """Return how often this round was started."""
        return 1 + max((launch.attempt for launch in self._rounds[group.name, number]), default=-1)

    def rounds(self, group: Group) -> int:
        """Return the number of consecutive complete rounds of the group."""
        number = 1
        while self._rounds[group.name, number] and self.is_complete(group, number):
            number += 1
        return number - 1

    def is_to_repeat(self, group: Group, number: int) -> bool:
        """Return whether the round is complete and noisy, and may be repeated (see REPEAT_ONE_IN).

        A round isn't repeated if most rounds of the group were noisy: the repetition would probably be noisy too, and a
        new round gives more information. Interleaved rounds aren't repeated either, because interference affects all
        cells of such a round. The only round of a plan isn't repeated.
        """
        if number == 0 or self.plan.rounds == 1 or self.in_turns(group) or not self.is_complete(group, number):
            return False
        rounds = range(1, number + 1)
        repetitions = sum(
            self._has_all_launches(group, earlier, attempt)
            for earlier in rounds
            for attempt in range(self.attempts(group, earlier) - 1)
        )
        noisy_rounds = sum(self._is_noisy(group, earlier) for earlier in rounds)
        is_usually_noisy = number > 2 and 2 * noisy_rounds > number
        return repetitions * REPEAT_ONE_IN < number and not is_usually_noisy and self._is_noisy(group, number)

    def in_turns(self, group: Group) -> bool:
        """Return whether launches of the group are interleaved: as planned, unless the scenario fixes the calls."""
        pilots = [pilot for cell in group.cells if (pilot := self.pilot(cell))]
        return self.plan.in_turns(group) and not (pilots and all(pilot.fixes_calls for pilot in pilots))

    def is_to_pilot(self, group: Group, cell: Cell) -> bool:
        """Return whether a pilot of the cell is useful.

        See `Plan.needs_pilot`. A cell that only makes observations needs no second pilot. A strict budget gets no
        further pilot if the rest is too small for this pilot and a round of two launches.
        """
        pilot = self.pilot(cell)
        if pilot and pilot.only_observed:
            return False
        ended = self.ended
        pilots = [launch for launch in ended if launch.round == 0]
        pilot_seconds = [launch.seconds for launch in pilots]
        budget = None if self.plan.budget_is_wish or self.plan.is_spent_by_group else self.plan.budget_seconds
        if budget and pilot_seconds and sum(pilot_seconds) + 3.0 * fmean(pilot_seconds) > budget:
            return False
        timed_scopes = {
            self.plan.get_pilot_scope(launch.cell, launch.group) for launch in pilots if not launch.only_observed
        }
        return self.plan.needs_pilot(cell, group.name, {launch.cell.environment for launch in ended}, timed_scopes)

    def is_first(self, cell: Cell) -> bool:
        """Return whether the cell has no earlier launch, except interrupted ones."""
        return all(launch.status is Status.INTERRUPTED for launch in self._cells[cell])

    def calls_per_sample(self, cell: Cell) -> int | None:
        """Return the calls per sample of the cell, from its first launch with samples; None if there is none."""
        return next((launch.calls_per_sample for launch in self._cells[cell] if launch.calls_per_sample), None)

    def peak(self, cell: Cell) -> float:
        """Return the largest memory use of the cell's launches in bytes; 0 if it isn't known."""
        return max((launch.resources.get("max_rss_bytes", 0.0) for launch in self._cells[cell]), default=0.0)

    def pilot(self, cell: Cell) -> Launch | None:
        """Return the cell's last pilot, or None."""
        pilots = [launch for launch in self._cells[cell] if launch.role is Role.PILOT]
        return pilots[-1] if pilots else None

    def seconds(self, number: int | None = None, groups: Iterable[Group] = ()) -> float:
        """Return the total duration, in seconds, of all launches, or of the launches in round `number` of `groups`."""
        if number is None:
            return sum(launch.seconds for launch in self.launches)
        return sum(launch.seconds for group in groups for launch in self._rounds[group.name, number])

    def _is_noisy(self, group: Group, number: int) -> bool:
        """Return whether the newest attempt at this round has a launch with interference."""
        newest = self.attempts(group, number) - 1
        return any(
            describe_interference(launch) for launch in self._rounds[group.name, number] if launch.attempt == newest
        )

    def _has_all_launches(self, group: Group, number: int, attempt: int) -> bool:
        planned = Counter(self.slots(group, number))
        launched = Counter(
            (launch.cell, launch.role)
            for launch in self._rounds[group.name, number]
            if launch.attempt == attempt and launch.status is not Status.INTERRUPTED
        )
        return planned <= launched

    def _is_given_up(self, group: Group, cell: Cell, number: int) -> bool:
        earlier = [
            launch
            for launch in self._cells[cell]
            if launch.round < number and launch.status is not Status.INTERRUPTED and not launch.ended_under_profiler
        ]
        # without a pilot, the first launch counts as the pilot
        pilots = [launch for launch in earlier if launch.role is Role.PILOT] or earlier[:1]
        if pilots and not is_to_measure(pilots[-1], group.of):
            return True
        last_statuses = [launch.status for launch in earlier if launch.role is not Role.PILOT][-GIVE_UP_AFTER:]
        return len(last_statuses) == GIVE_UP_AFTER and Status.OK not in last_statuses
