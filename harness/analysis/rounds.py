"""Which of the stored launches count."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from harness.model.launch import Launch, Role, Status
from harness.model.run import Group, Plan
from harness.model.scenario import Cell

#: A cell's centres by round, in seconds per step.
Series = Mapping[int, float]


def pilots(launches: Sequence[Launch]) -> dict[Cell, Launch]:
    """Each cell's latest pilot. It is in no statistic, but a cell whose pilot broke is not launched again."""
    latest: dict[Cell, Launch] = {}
    for launch in launches:
        known = latest.get(launch.cell)
        if launch.role is Role.PILOT and (known is None or launch.attempt >= known.attempt):
            latest[launch.cell] = launch
    return latest


def counted(plan: Plan, launches: Sequence[Launch]) -> list[Launch]:
    """The launches that count: role measure or control, and of each round of each group one attempt only.

    That is the latest complete attempt, else the latest. An attempt is complete when every cell of the group that is
    measured (its pilot did not end it, and timed something) has an entry, the control's second one included. Launches
    of groups that the plan lacks do not count.
    """
    first = pilots(launches)
    by_group: dict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.role is not Role.PILOT:
            by_group[launch.group].append(launch)
    chosen: list[Launch] = []
    for group in plan.groups:
        measured = _measured(group, first)
        rounds: dict[int, dict[int, list[Launch]]] = defaultdict(lambda: defaultdict(list))
        for launch in by_group[group.name]:
            rounds[launch.round][launch.attempt].append(launch)
        for number in sorted(rounds):
            chosen += _one_attempt(rounds[number], measured)
    return chosen


def series(launches: Sequence[Launch]) -> dict[Cell, Series]:
    """Each cell's centre in every round in which it gave one, in seconds per step.

    A cell launched more than once in a round (the reference, as its own control) has the mean of its launches' logs.
    """
    logs: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        if gave_number(launch):
            logs[launch.cell][launch.round].append(math.log(launch.centre))
    return {
        cell: {number: math.exp(sum(values) / len(values)) for number, values in by_round.items()}
        for cell, by_round in logs.items()
    }


def gave_number(launch: Launch) -> bool:
    """Whether the launch has a centre: it ended ok, and time and steps were counted."""
    return launch.status is Status.OK and launch.steps > 0 and 0.0 < launch.centre < math.inf


def is_to_measure(pilot: Launch) -> bool:
    """Whether a cell with this pilot is launched in the rounds: it ended ok, and did not only observe."""
    return pilot.status is Status.OK and not pilot.only_observed


def _measured(group: Group, first: Mapping[Cell, Launch]) -> frozenset[tuple[Cell, Role]]:
    return frozenset((cell, role) for cell, role in group.slots if cell not in first or is_to_measure(first[cell]))


def _one_attempt(attempts: Mapping[int, list[Launch]], measured: frozenset[tuple[Cell, Role]]) -> list[Launch]:
    complete = [
        number for number, entries in attempts.items() if measured <= {(entry.cell, entry.role) for entry in entries}
    ]
    return attempts[max(complete or attempts)]
