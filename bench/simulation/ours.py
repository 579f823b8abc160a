"""The harness's own rules on simulated launches, through the rule that stops by width."""

import math
from dataclasses import dataclass

import numpy as np

from bench.simulation.machine import Floats, Table, launches
from harness.analysis.control import pooled
from harness.analysis.moderation import moderate
from harness.analysis.shape import outliers
from harness.analysis.sizing import FIRST_LOOK
from harness.analysis.statistics import Logs, half_widths
from harness.analysis.verdicts import ALPHA, Verdict, judge

MARGIN = math.log1p(0.03)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of many tables of one kind.

    `false_alarms` and `false_same` are shares of tables with any `faster` or `slower`, any `same`; `found` and `same`
    are shares of comparisons. `coverage` is the share of comparisons whose own 95 % interval holds the truth, `half`
    the median half-width of that, on the log scale; `rounds` the mean number of rounds; `outlying` the share of
    compared cells of which the report says that some of their launches are outliers.
    """

    false_alarms: float
    false_same: float
    found: float
    same: float
    coverage: float
    half: float
    rounds: float
    outlying: float


def outcome(table: Table, rounds: int, tables: int, *, seed: int, precision: float | None = None) -> Outcome:
    """Judge so many simulated tables of `rounds` rounds; with `precision` (0.02), of at most so many."""
    draw = np.random.default_rng(seed)
    different = {Verdict.FASTER, Verdict.SLOWER}
    alarms, sames, verdicts, covered, halves, counts, outlying = [], [], [], [], [], [], []
    for _ in range(tables):
        centres = launches(table, rounds, draw)
        logs = measured(table, centres, precision)
        judged = judge(logs, MARGIN)
        alarms.append(bool(different & set(judged.verdicts)))
        sames.append(Verdict.SAME in judged.verdicts)
        verdicts += judged.verdicts
        own = half_widths(logs, ALPHA)
        covered.append(np.abs(logs.mean - table.truth) <= own)
        halves.append(own)
        counts.append(logs.rounds)
        if table.mixture:
            outlying += [any(outliers(cell.tolist())) for group in centres for cell in group[: table.others]]
    return Outcome(
        false_alarms=float(np.mean(alarms)),
        false_same=float(np.mean(sames)),
        found=float(np.mean([verdict in different for verdict in verdicts])),
        same=float(np.mean([verdict is Verdict.SAME for verdict in verdicts])),
        coverage=float(np.mean(covered)),
        half=float(np.median(halves)),
        rounds=float(np.mean(counts)),
        outlying=float(np.mean(outlying)) if outlying else 0.0,
    )


def controls(table: Table, rounds: int, tables: int, *, seed: int) -> tuple[float, float]:
    """Of how many runs the control's interval reaches beyond the margin, and of how many it lies wholly beyond it."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(tables):
        centres = launches(table, rounds, draw)
        found.append(pooled((centres[:, -1] - centres[:, -2]).tolist()))
    return float(np.mean([each.reach > MARGIN for each in found])), float(
        np.mean([each.beyond(MARGIN) for each in found])
    )


def measured(table: Table, centres: Floats, precision: float | None) -> Logs:
    """The log-ratios that a run ends with: each group's at the round after which its intervals are narrow enough."""
    ratios = _ratios(centres)
    rounds = ratios.shape[2]
    counts = np.full(table.groups, rounds)
    if precision is not None:
        stopped = np.zeros(table.groups, bool)
        for number in range(FIRST_LOOK, rounds):
            counts[~stopped] = number
            half = half_widths(_logs(ratios, counts), ALPHA / table.comparisons)
            stopped |= half.reshape(table.groups, -1).max(axis=1) <= math.log1p(precision)
            if stopped.all():
                break
        counts[~stopped] = rounds
    return _logs(ratios, counts)


def _ratios(logs: Floats) -> Floats:
    """log(reference / cell), shape (groups, others, rounds); the reference's centre is the mean of its two logs."""
    return logs[:, -2:].mean(axis=1, keepdims=True) - logs[:, :-2]


def _logs(ratios: Floats, counts: Floats) -> Logs:
    groups, others, rounds = ratios.shape
    kept = np.arange(rounds) < counts[:, None, None]
    n = np.broadcast_to(counts[:, None], (groups, others)).astype(np.float64)
    mean = np.where(kept, ratios, 0.0).sum(axis=2) / n
    variance = np.where(kept, (ratios - mean[:, :, None]) ** 2, 0.0).sum(axis=2) / (n - 1.0)
    return moderate(Logs.measured(mean.ravel(), variance.ravel(), n.ravel()))
