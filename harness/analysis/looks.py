"""Looks: the share of the significance level that a verdict may use if a run is judged more than once.

A look is one check of a run's verdicts. A run that ends as planned is judged once, with the whole level. Verdicts are
checked more than once in five cases:

- in a run that is continued after its report was read (`--resume RUN --rounds 8`): after the rounds in `Run.looks`;
- in a run of claims, which ends a group when the outcomes of its claims are clear: after the first rounds that allow an
  outcome, and each time that the number of rounds has doubled;
- in a confirmation of a change, which is continued until it is clear. It is a continued run, with its looks;
- with `--precision`, which ends a group when the verdicts of its comparisons are clear: after the rounds LOOKS;
- in a search, which compares two environments until the answer is clear: after the rounds LOOKS_AT_PAIRS. Each of these
  looks has an equal part of the whole level (Bonferroni), because a search has no planned end.

The looks of the first four cases share a separate level. With `--precision`, it is half of the level of a run that ends
as planned, and otherwise the same level. Let n be the number of rounds at the first look. After r rounds, the looks
have used at most the share 1 - n/r of this level, and each look gets the part that earlier looks left. This is a
spending function, as in K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
70, 1983. Every look judges all rounds so far, so the probability of a wrong verdict at any look is at most the sum of
their levels (Bonferroni). A verdict can only be wrong on one side, and a level of 5 % is 2.5 % on each side. So the
planned end and all other looks together show a wrong verdict in at most 5 % of runs.
bench/simulation/stopping.md has the measured error rates. The looks of confirmations and searches: harness/paired/.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.distributions import Floats
from harness.model.environment import Device, Environment
from harness.model.launch import Launch
from harness.model.run import RULES, Plan, Run, StopReason
from harness.model.scenario import MACHINE, Cell, Claim, Scenario

#: With `--precision`, the rounds after which verdicts are checked.
LOOKS = (3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 65, 85)

#: The rounds after which a search compares two environments.
LOOKS_AT_PAIRS = (3, 5, 8, 13, 21, 34)

#: The share of the level for all LOOKS together. It is below 1 because a run that stops when its intervals are
#: narrow already gets wrong intervals in slightly more than 5 % of cases.
LOOKS_SHARE = 0.5

#: The first look at which a run may stop because its intervals are narrow enough. Earlier looks would reduce the
#: coverage (bench/simulation/stopping.md).
FIRST_LOOK = 6

#: The rounds after which the outcomes of claims are first checked. For claims of a factor of at least LARGE, two rounds
#: are enough. Claims of a factor below CLOSE are close to the margin. They are first checked one round later, because
#: three launches often have the same one of two speeds.
FIRST_LOOK_AT_CLAIMS, FIRST_LOOK_AT_LARGE, FIRST_LOOK_AT_CLOSE = 3, 2, 4
LARGE, CLOSE = 3.0, 2.0

#: One round is checked too, but only for ratios that need no second one (VAST in analysis/verdicts.py).
FIRST_LOOK_AT_VAST = 1

#: After a look at claims, the next look has at least this multiple of its rounds.
WORTHWHILE = 1.5

#: The first versions of the rules (model/run.py) with looks at claims, and with FIRST_LOOK_AT_CLOSE.
RULES_WITH_LOOKS_AT_CLAIMS, RULES_WITH_LOOK_AT_CLOSE = 8, 10

#: The fewest rounds for a verdict.
FEWEST_JUDGED = 2


@dataclass(frozen=True, slots=True)
class Look:
    """The share of the level that a group's verdicts may use; 1 if a run ended as planned.

    `first` is the number of rounds at the look after the planned rounds; 0 if the group had no other look yet. In a
    group that `--precision` ended, `settled` is the share for a comparison that has a clear verdict and an interval
    whose half width, on the log scale, is above `narrow`. In any other group, `settled` is 0.
    """

    share: float = 1.0
    settled: float = 0.0
    narrow: float = math.inf
    first: int = 0


def compute_last_share(rounds: Sequence[int]) -> float:
    """Return the share of the level that the last look may use.

    `rounds` (ascending) has the number of rounds at each look. The first look belongs to the plan, and has its own
    level. Two kinds of looks don't count: looks without new rounds, and looks with too few rounds for a verdict.
    """
    counts = sorted({count for count in rounds if count >= FEWEST_JUDGED})
    return counts[0] / counts[-2] - counts[0] / counts[-1] if len(counts) > 1 else 1.0


def compute_next_share(first: float | Floats, rounds: float | Floats, total: Floats) -> Floats:
    """Return the share of the level for the next look, after `total` rounds, if the last look was after `rounds`.

    `first` is the number of rounds at the look after the planned rounds. The arguments must have the same shape, or
    shapes that broadcast.
    """
    return first / rounds - first / total


def compute_settling_share(rounds: int) -> float:
    """Return the share of the significance level for the look after `rounds` rounds with `--precision`, or 0."""
    if rounds not in LOOKS:
        return 0.0
    return LOOKS_SHARE * compute_last_share([FEWEST_JUDGED, *LOOKS[: LOOKS.index(rounds) + 1]])


def find_first_check(plan: Plan) -> int:
    """Return the first round after which a group of the plan may end early."""
    return FIRST_LOOK_AT_LARGE if plan.claims and plan.precision is None else LOOKS[0]


def find_first_looks(run: Run) -> dict[str, int]:
    """Return, by group of the run, the round after which the outcomes of its claims are first checked.

    If the group's claims have different first rounds, the result is the latest of these rounds.
    """
    groups = {cell: group.name for group in run.plan.groups for cell in group.cells}
    result: dict[str, int] = {}
    for scenario in run.scenarios:
        for claim in (candidate for candidate in scenario.claims if str(candidate.issue) in run.plan.claims):
            for worse, _ in find_claim_cells(run.environments, scenario, claim):
                if worse in groups:
                    name = groups[worse]
                    result[name] = max(result.get(name, 0), find_first_look(claim, run.rules))
    return result


def find_first_look(claim: Claim, rules: int = RULES) -> int:
    """Return the first round after which the outcome of a claim is checked, with this version of the rules."""
    if claim.ratio and claim.ratio[0] >= LARGE:
        return FIRST_LOOK_AT_LARGE
    is_close = claim.ratio is not None and claim.ratio[0] < CLOSE
    return FIRST_LOOK_AT_CLOSE if is_close and rules >= RULES_WITH_LOOK_AT_CLOSE else FIRST_LOOK_AT_CLAIMS


def find_claim_cells(
    environments: Iterable[Environment], scenario: Scenario, claim: Claim
) -> set[tuple[Cell, Cell | None]]:
    """Return a claim's cells in the claimed environment and in each of `environments`, on every device and machine."""
    names = ["", *(environment.name for environment in environments)]
    by_machine = [scenario.on_machine(label) for label in scenario.axes.get(MACHINE, [])] or [scenario]
    return {own.claimed(claim, device, name) for own in by_machine for device in Device for name in names}


def list_looks_at_claims(first: int, last: int) -> list[int]:
    """Return the rounds after which a group's claims are checked: `first`, 2 · `first` and so on, and the `last` round.

    Looks shortly before the last round are left out: the last look would have a small share of the level, so that its
    intervals would be as wide as those of the look before.
    """
    doubled = (first * 2**power for power in itertools.count())
    return [*itertools.takewhile(lambda look: WORTHWHILE * look < last, doubled), last]


def divide_level(run: Run, counted: Sequence[Launch]) -> dict[str, Look]:
    """Return, by group, the share of the level that verdicts may use. `counted` contains the launches that count."""
    rounds: dict[str, set[int]] = defaultdict(set)
    for launch in counted:
        rounds[launch.group].add(launch.round)
    has_looks_at_claims = run.rules >= RULES_WITH_LOOKS_AT_CLAIMS and run.plan.precision is None
    first_looks = find_first_looks(run) if has_looks_at_claims else {}
    by_group = {}
    for group in run.plan.groups:
        name, stop = group.name, run.stops.get(group.name)
        earlier_rounds = [look[name] for look in run.looks if name in look]
        if name in first_looks:
            looks = list_looks_at_claims(first_looks[name], run.plan.rounds)
            earlier_rounds += [look for look in looks if look < len(rounds[name])]
        share = (
            compute_last_share([*earlier_rounds, max([len(rounds[name]), *earlier_rounds])]) if earlier_rounds else 1.0
        )
        first_rounds = min((count for count in earlier_rounds if count >= FEWEST_JUDGED), default=0)
        by_group[name] = Look(share, first=first_rounds)
        if run.plan.precision is not None and stop and stop.reason is StopReason.PRECISION:
            width = math.log1p(run.plan.precision) if stop.rounds >= FIRST_LOOK else 0.0
            by_group[name] = Look(share, compute_settling_share(stop.rounds), width, first_rounds)
    return by_group


# The ends of groups.


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
