"""How a run went: where its groups ended, how long launches measured, and which rounds others disturbed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.disturbance import disturbed_rounds, is_watched
from harness.analysis.lookup import Lookup
from harness.analysis.precision import FIRST_LOOK
from harness.analysis.rounds import counted
from harness.analysis.sizing import samplings
from harness.model.launch import Launch, Role, Sampling
from harness.model.run import Run, StopReason


@dataclass(frozen=True, slots=True)
class Stopped:
    """So many groups that ended for one reason, and after how many rounds, fewest first.

    `early` is the round before which no interval is looked at, where some ended before it; else 0.
    """

    reason: StopReason
    groups: int
    rounds: Sequence[int]
    early: int


@dataclass(frozen=True, slots=True)
class Endings:
    """How the run's groups ended: by reason, and how many have not yet."""

    stops: Sequence[Stopped]
    groups: int
    going: int


@dataclass(frozen=True, slots=True)
class DisturbedRound:
    """One attempt at a round of a group, how it was disturbed, and whether a later attempt counts in its place."""

    group: str
    round: int
    reason: str
    repeated: bool


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What other processes did to `rounds` measured rounds, repetitions included. `told`: launches watched them."""

    told: bool
    rounds: int
    disturbed: Sequence[DisturbedRound]

    @property
    def repeated(self) -> int:
        """How many of the disturbed ones were repeated."""
        return sum(each.repeated for each in self.disturbed)


def ended(run: Run) -> Endings:
    """How the run's groups ended."""
    rounds: dict[StopReason, list[int]] = defaultdict(list)
    known = [run.stops[group.name] for group in run.plan.groups if group.name in run.stops]
    for stop in known:
        rounds[stop.reason].append(stop.rounds)
    stops = [
        Stopped(
            reason=reason,
            groups=len(rounds[reason]),
            rounds=sorted(set(rounds[reason])),
            early=FIRST_LOOK if run.plan.precision is not None and min(rounds[reason]) < FIRST_LOOK else 0,
        )
        for reason in StopReason
        if rounds[reason]
    ]
    return Endings(stops, len(run.plan.groups), len(run.plan.groups) - len(known))


def samplings_used(run: Run, launches: Sequence[Launch], found: Lookup) -> list[Sampling]:
    """How the launches of the groups that have a number sampled, each way once a group."""
    planned = run.plan.sampling
    with_numbers = dict.fromkeys(found.groups[cell] for cell in found.series if cell in found.groups)
    return list(samplings(planned, with_numbers, launches).values()) if planned.is_open else [planned]


def disturbance(run: Run, launches: Sequence[Launch]) -> Disturbance:
    """Which rounds were disturbed."""
    measured = [launch for launch in launches if launch.role is not Role.PILOT]
    found = disturbed_rounds(measured)
    counts = _attempts(run, launches) if found else {}
    return Disturbance(
        told=any(is_watched(launch) for launch in measured),
        rounds=len({(launch.group, launch.round, launch.attempt) for launch in measured}),
        disturbed=[
            DisturbedRound(group, number, reason, repeated=counts.get((group, number), attempt) > attempt)
            for (group, number, attempt), reason in found.items()
        ],
    )


def _attempts(run: Run, launches: Sequence[Launch]) -> Mapping[tuple[str, int], int]:
    """By group and round, the attempt that counts."""
    return {(launch.group, launch.round): launch.attempt for launch in counted(run.plan, launches)}
