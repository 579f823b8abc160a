"""How a run went: what it resolves, where groups ended, how long launches measured, what disturbed their rounds."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.disturbance import disturbed_rounds, is_watched
from harness.analysis.lookup import Lookup
from harness.analysis.precision import FIRST_LOOK
from harness.analysis.rounds import counted
from harness.analysis.sizing import samplings
from harness.model.launch import Launch, Role
from harness.model.run import Run, StopReason
from harness.report import format


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the A/A control shows: a cell of each group differs from itself by `difference`, with its interval.

    `reference`: that cell is the reference's everywhere. `reach` is how far from none the interval's farther end lies
    (empty without an interval). `lost`: that is beyond the margin; `beyond`: the whole interval is.
    """

    difference: str
    groups: int
    reference: bool
    reach: str
    lost: bool
    beyond: bool


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
class Ended:
    """How the run's groups ended: by reason, and how many have not yet."""

    stops: Sequence[Stopped]
    groups: int
    going: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many seconds launches warmed up and measured, from the least to the most; empty where no group has a number.

    `piloted`: the groups' pilots set one of them, or both.
    """

    warmup: str
    measure: str
    piloted: bool


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


def resolution(run: Run, found: Lookup) -> Resolution | None:
    """What the run's control shows; None where there is none."""
    if found.control is None:
        return None
    margin = math.log1p(run.plan.margin)
    has_interval = found.control.estimate.interval is not None
    return Resolution(
        difference=format.gain(found.control.estimate),
        groups=found.control.groups,
        reference=all(c.environment == run.reference for group in run.plan.groups if (c := group.control)),
        reach=format.apart(found.control.reach) if has_interval else "",
        lost=has_interval and found.control.reach > margin,
        beyond=found.control.beyond(margin),
    )


def ended(run: Run) -> Ended:
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
    return Ended(stops, len(run.plan.groups), len(run.plan.groups) - len(known))


def lengths(run: Run, launches: Sequence[Launch], found: Lookup) -> Lengths:
    """How long the launches of the groups that have a number warmed up and measured."""
    planned = run.plan.sampling
    with_numbers = dict.fromkeys(found.groups[cell] for cell in found.series if cell in found.groups)
    used = list(samplings(planned, with_numbers, launches).values()) if planned.is_open else [planned]
    return Lengths(
        warmup=format.seconds([each.warmup_seconds for each in used if each.warmup_seconds is not None]),
        measure=format.seconds([each.measure_seconds for each in used if each.measure_seconds is not None]),
        piloted=planned.is_open,
    )


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
