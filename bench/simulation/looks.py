"""Runs with repeated verdicts: continued after somebody read their reports, or ended by clear verdicts or claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.simulation.harness_rules import MARGIN, Groups, end_run
from bench.simulation.machine import Floats, Table, launches
from harness.analysis.claim_rules import ClaimOutcome, judge_claim
from harness.analysis.looks import compute_last_share, find_first_look, list_looks_at_claims
from harness.analysis.statistics import half_widths
from harness.analysis.verdicts import Verdict, compute_shown_alpha, judge
from harness.model.scenario import Claim

#: Twelve of the thirteen ratios in docs/examples/headline, by group.
HEADLINE = np.log([[1.19, 1.15, 0.965, 3.37], [1.15, 3.34, 0.992, 0.342], [1.28, 1.12, 1.00, 0.876]])


@dataclass(frozen=True, slots=True)
class Continued:
    """The results of runs that a reader continues as long as a verdict is unclear. All true log ratios are equal.

    Three numbers are shares of runs: the last report has any `faster` or `slower` (`different`), any `same`, and all
    its shown intervals contain the true ratio (`together`). Three numbers are shares of settled comparisons: after the
    planned rounds (`first`), in the last report (`settled`), and in a new run with the most rounds (`new`). `rounds` is
    the mean number of rounds.
    """

    different: float
    same: float
    together: float
    first: float
    settled: float
    new: float
    rounds: float


def simulate_continued(
    table: Table, looks: Sequence[int], tables: int, effect: float, *, unsettled: bool = False, seed: int
) -> Continued:
    """Simulate runs whose reports are read after the rounds `looks`, and that continue while a verdict is unclear.

    If `unsettled`, only groups with an unclear verdict continue.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(tables):
        groups = Groups(table, *launches(table, looks[-1], draw), effect)
        plain, last = (_report(groups, [part] * table.groups) for part in (looks[:1], looks[-1:]))
        report, own_looks = plain, [[looks[0]] for _ in range(table.groups)]
        for count in looks[1:]:
            is_unclear = np.array([verdict is Verdict.UNCLEAR for verdict in report.verdicts])
            is_open = (
                is_unclear.reshape(table.groups, -1).any(axis=1) if unsettled else [is_unclear.any()] * table.groups
            )
            own_looks = [[*own, count] if goes_on else own for own, goes_on in zip(own_looks, is_open, strict=True)]
            report = _report(groups, own_looks)
        shares = [_settled(reading.verdicts) for reading in (plain, report, last)]
        calls = any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in report.verdicts)
        rows.append(
            (calls, Verdict.SAME in report.verdicts, report.holds, *shares, np.mean([own[-1] for own in own_looks]))
        )
    return Continued(*np.mean(rows, axis=0).tolist())


@dataclass(frozen=True, slots=True)
class _Report:
    verdicts: Sequence[Verdict]
    holds: bool


def _report(groups: Groups, looks: Sequence[Sequence[int]]) -> _Report:
    """Return the report after the last look at each group. `looks` has the looks of each group."""
    for group, own_looks in enumerate(looks):
        groups.measure(np.array([group]), own_looks[-1])
    logs = groups.logs
    shares = np.repeat([compute_last_share(own_looks) for own_looks in looks], groups.table.per_group)
    judged = judge(logs, MARGIN, shares=shares)
    return _Report(judged.verdicts, bool((np.abs(logs.mean - groups.truth) <= judged.half).all()))


def _settled(verdicts: Sequence[Verdict]) -> float:
    return float(np.mean([verdict is not Verdict.UNCLEAR for verdict in verdicts]))


@dataclass(frozen=True, slots=True)
class ClaimRuns:
    """The results of runs for one claim: the shares of runs with a wrong and with a clear outcome, and mean rounds."""

    wrong: float
    clear: float
    rounds: float


def simulate_claims(table: Table, claim: Claim, rounds: int, tables: int, effect: float, *, seed: int) -> ClaimRuns:
    """Simulate runs of at most `rounds` rounds for a claim of a ratio, whose true log ratio is `effect`.

    An outcome is wrong if it contradicts the true ratio: `not seen` or `opposite` from the bound of *not seen* on, and
    `confirmed` within the margin. The size is wrong if the true ratio is in the claimed range, and the outcome isn't
    `confirmed`.
    """
    assert claim.ratio
    draw = np.random.default_rng(seed)
    low, high = map(math.log, claim.ratio)
    looks = list_looks_at_claims(find_first_look(claim), rounds)
    rows = []
    for _ in range(tables):
        groups, number = Groups(table, *launches(table, rounds, draw), effect), 0
        outcome, is_narrow = ClaimOutcome.UNCLEAR, False
        while outcome is ClaimOutcome.UNCLEAR and not is_narrow and number < len(looks):
            number += 1
            groups.measure(np.arange(table.groups), looks[number - 1])
            logs = groups.logs
            half = float(half_widths(logs, compute_last_share(looks[:number]) * compute_shown_alpha(logs.mean.size))[0])
            outcome = judge_claim(claim, float(logs.mean[0]), half, looks[number - 1], math.expm1(MARGIN))
            is_narrow = half <= claim.needed(math.expm1(MARGIN))
        is_wrong = (
            (outcome.is_gone and effect >= (low + MARGIN) / 2.0)
            or (outcome.holds and effect <= MARGIN)
            or (outcome is not ClaimOutcome.CONFIRMED and outcome.holds and low <= effect <= high)
        )
        rows.append((is_wrong, outcome is not ClaimOutcome.UNCLEAR, looks[number - 1]))
    return ClaimRuns(*np.mean(rows, axis=0).tolist())


def simulate_looks(
    table: Table, rounds: int, tables: int, effects: Floats, precision: float, *, seed: int
) -> list[float]:
    """Return a group's mean number of rounds and the share of settled comparisons, without and with looks at verdicts.

    Without these looks, only the width of intervals ends a group. `effects` are the true log ratios, of shape (groups,
    comparisons per group).
    """
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(tables):
        simulated = launches(table, rounds, draw)
        row: list[float] = []
        for settles in (False, True):
            ended = end_run(table, *simulated, precision, settles=settles, effect=effects)
            verdicts = judge(ended.logs, MARGIN, shares=ended.shares).verdicts
            row += [float(ended.logs.rounds.mean()), _settled(verdicts)]
        rows.append(row)
    return [float(mean) for mean in np.mean(rows, axis=0)]


def at(difference: float) -> float:
    """Return the log ratio of a cell that takes longer by this share (0.1: 10 %)."""
    return -math.log1p(difference)
