"""Run timeline: the rounds after which groups stopped, and the sampling of launches."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.cell_index import Lookup
from harness.analysis.looks import find_first_check
from harness.analysis.sizing import samplings
from harness.model.launch import Launch, Sampling
from harness.model.run import Run, StopReason


@dataclass(frozen=True, slots=True)
class Stopped:
    """A number of `groups` that stopped for the same reason, and the `rounds` after which they stopped, fewest first.

    `missed_check` is the first round after which intervals are checked, if some groups stopped before it.
    """

    reason: StopReason
    groups: int
    rounds: Sequence[int]
    missed_check: int | None


@dataclass(frozen=True, slots=True)
class Endings:
    """The reasons why groups ended, the number of all `groups` of the run, and the number of `active` groups."""

    stops: Sequence[Stopped]
    groups: int
    active: int


def describe_ends(run: Run) -> Endings:
    """Return why the run's groups ended."""
    rounds: dict[StopReason, list[int]] = defaultdict(list)
    recorded_stops = [run.stops[group.name] for group in run.plan.groups if group.name in run.stops]
    for stop in recorded_stops:
        rounds[stop.reason].append(stop.rounds)
    first_check = find_first_check(run.plan)
    stops = [
        Stopped(
            reason=reason,
            groups=len(rounds[reason]),
            rounds=sorted(set(rounds[reason])),
            missed_check=first_check if run.plan.ends_early and min(rounds[reason]) < first_check else None,
        )
        for reason in StopReason
        if rounds[reason]
    ]
    return Endings(stops, len(run.plan.groups), len(run.plan.groups) - len(recorded_stops))


def list_samplings(run: Run, launches: Sequence[Launch], lookup: Lookup) -> list[Sampling]:
    """Return the sampling of each group with a result, or the planned sampling if all groups use it."""
    planned = run.plan.sampling
    groups = dict.fromkeys(lookup.groups[cell] for cell in lookup.series if cell in lookup.groups)
    is_same = not (planned.is_open or run.plan.single_steps)
    return [planned] if is_same else list(samplings(planned, groups, launches, run.plan.single_steps).values())
