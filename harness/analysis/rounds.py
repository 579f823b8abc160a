"""Which of the stored launches count, each cell's centres by round, and what a round costs."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from harness.model.launch import Launch, Role, Status
from harness.model.run import Plan
from harness.model.scenario import Cell

#: A cell's centres by round, in seconds per step.
Series = Mapping[int, float]

#: What others take of a launch's CPU counts from this share on: it is what a verdict's margin is.
OWN_SHARE = 0.03
#: The kernel counts in ticks of 10 ms: a CPU's count may be two of them off at each end, and this share between them.
TICKS_SECONDS, TICKS_SHARE = 0.04, 0.01


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
    # by group, round and attempt
    rounds: dict[str, dict[int, dict[int, list[Launch]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for launch in launches:
        if launch.role is not Role.PILOT:
            rounds[launch.group][launch.round][launch.attempt].append(launch)
    chosen: list[Launch] = []
    for group in plan.groups:
        slots = {(cell, role) for cell, role in group.slots if cell not in first or is_to_measure(first[cell])}
        for number in sorted(rounds[group.name]):
            attempts = rounds[group.name][number]
            complete = [each for each, made in attempts.items() if slots <= {(one.cell, one.role) for one in made}]
            chosen += attempts[max(complete or attempts)]
    return chosen


def series(launches: Sequence[Launch]) -> dict[Cell, Series]:
    """Each cell's centre in every round in which it gave one, in seconds per step.

    A cell launched more than once in a round (the reference, as its own control) has the mean of its launches' logs.
    """
    logs: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        if gave_number(launch):
            logs[launch.cell][launch.round].append(math.log(centre(launch)))
    return {
        cell: {number: math.exp(sum(values) / len(values)) for number, values in by_round.items()}
        for cell, by_round in logs.items()
    }


def taken(launch: Launch) -> float:
    """The share of its timed part for which others had the launch's CPU: other processes, and the hypervisor.

    0 where that is not shown to be over 3 %, and where it cannot be known: with several CPUs, a step that waits for one
    of them is not slowed by what happens on another, and what ran while a step waited by itself did not slow it. Where
    others used all of a CPU that a step left idle, the two cannot be told apart, and its own waiting is in the share.
    """
    known = launch.resources
    seconds, own, busy = (known.get(f"steady_{name}") for name in ("seconds", "cpu_seconds", "own_cpus_busy_seconds"))
    if not seconds or own is None or busy is None or known.get("steady_own_cpus") != 1.0:
        return 0.0
    others, away = busy - own + known.get("steady_own_cpus_steal_seconds", 0.0), seconds - own
    is_shown = others - TICKS_SECONDS > OWN_SHARE * seconds
    # the kernel counts others in ticks, and the launch's own time in nanoseconds: where they agree, the finer one holds
    agrees = abs(away - others) <= TICKS_SECONDS + TICKS_SHARE * seconds
    return away / seconds if is_shown and agrees and 0.0 < away < seconds else 0.0


def centre(launch: Launch) -> float:
    """Seconds per step that are judged: the launch's mean, less what others took of its CPU meanwhile."""
    return launch.centre * (1.0 - taken(launch))


def gave_number(launch: Launch) -> bool:
    """Whether the launch has a centre: it ended ok, and time and steps were counted."""
    return launch.status is Status.OK and launch.steps > 0 and 0.0 < launch.centre < math.inf


def is_to_measure(pilot: Launch) -> bool:
    """Whether a cell with this pilot is launched in the rounds: it ended ok, and did not only observe."""
    return pilot.status is Status.OK and not pilot.only_observed


def seconds_per_round(launches: Sequence[Launch]) -> dict[str, float]:
    """By group, the mean over its rounds of what its launches took, in seconds; 0 in runs that did not record it."""
    rounds: dict[str, dict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for launch in launches:
        rounds[launch.group][launch.round, launch.attempt] += launch.seconds
    return {group: sum(each.values()) / len(each) for group, each in rounds.items()}
