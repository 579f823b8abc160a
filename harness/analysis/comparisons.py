"""The comparisons of one table, each with its ratio, its verdict and what stands behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from harness.analysis import work
from harness.analysis.control import Control
from harness.analysis.lookup import Lookup
from harness.analysis.statistics import Estimate, exp, interval, log_ratios, variance
from harness.analysis.verdicts import (
    ALPHA,
    FEWEST_ROUNDS,
    Judged,
    Logs,
    Verdict,
    half_widths,
    judge,
    moderated,
    rounds_to_settle,
)
from harness.model.scenario import Cell


class Withheld(StrEnum):
    """Why a comparison has no verdict."""

    FEW_ROUNDS = "few rounds"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Settling:
    """What would settle an unclear verdict: so many more rounds of its group, which take about so many seconds."""

    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One cell against another.

    `estimate` is time(other) / time(cell), above 1 when `cell` is faster, with the interval that the verdict was taken
    from, `level` wide (0.95 and more). `verdict` says what `cell` is; where it is None, `withheld` says why. `settling`
    is told of an unclear one, None where no number of rounds would do: the difference lies at the margin. `work` tells
    whether both did the same, `pythons` are the two interpreters' versions where they differ.
    """

    cell: Cell
    other: Cell
    estimate: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None
    settling: Settling | None
    work: work.WorkCheck
    pythons: tuple[str, str] | None

    @property
    def takes(self) -> Estimate:
        """How many times as long `cell` takes as `other`."""
        return self.estimate.inverse

    @property
    def judged(self) -> bool:
        """Whether its level was divided with the others' of its table."""
        return self.withheld is not Withheld.FEW_ROUNDS and self.verdict is not Verdict.DIFFERENT_WORK


@dataclass(frozen=True, slots=True)
class _Pair:
    cell: Cell
    other: Cell
    logs: Sequence[float]
    work: work.WorkCheck

    @property
    def judged(self) -> bool:
        """Whether it is of those that get a verdict from their times: decided without looking at these."""
        return len(self.logs) >= FEWEST_ROUNDS and self.work.work is not work.Work.DIFFERENT


def compare(pairs: Sequence[tuple[Cell, Cell]], found: Lookup, margin: float) -> list[Compared | None]:
    """What each pair of (cell, other) shows, judged together; None where no round has both.

    `margin` is a share: 0.03 for 3 %. Pairs with fewer than four rounds and those that did different work are not
    judged, and not counted when the level is divided among the others.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    logs = _logs(family)
    log_margin = math.log1p(margin)
    judged = judge(logs, log_margin)
    unclear = [index for index, verdict in enumerate(judged.verdicts) if verdict is Verdict.UNCLEAR]
    rounds = rounds_to_settle(logs.take(unclear), judged.alpha[unclear], log_margin).tolist()
    settle = dict(zip(unclear, rounds, strict=True))
    results = (
        _judged(pair, judged, index, settle=settle.get(index, 0), found=found, margin=log_margin)
        for index, pair in enumerate(family)
    )
    return [None if pair is None else next(results) if pair.judged else _unjudged(pair, found) for pair in known]


def half_widths_of(pairs: Sequence[tuple[Cell, Cell]], found: Lookup) -> list[float | None]:
    """Half the width of each pair's interval on the log scale, at 1 - 0.05 / m for the m pairs that are judged.

    The widest that `compare` may show, whatever the verdicts: so a rule that stops by it does not look at these. None
    for a pair that is not judged; infinite for one with too few rounds to be.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    widths = iter(half_widths(_logs(family), ALPHA / max(1, len(family))).tolist())
    return [
        None if pair is None or pair.work.work is work.Work.DIFFERENT else next(widths) if pair.judged else math.inf
        for pair in known
    ]


def _pair(cell: Cell, other: Cell, found: Lookup) -> _Pair | None:
    series = found.series.get(cell), found.series.get(other)
    logs = log_ratios(series[1], series[0]) if series[0] and series[1] else []
    if not logs:
        return None
    return _Pair(cell, other, logs, work.compare(found.numbers[other], found.numbers[cell]))


def _logs(family: Sequence[_Pair]) -> Logs:
    return moderated(
        mean=np.array([math.fsum(pair.logs) / len(pair.logs) for pair in family], np.float64),
        variance=np.array([variance(pair.logs) for pair in family], np.float64),
        rounds=np.array([len(pair.logs) for pair in family], np.float64),
    )


def _judged(pair: _Pair, judged: Judged, index: int, *, settle: int, found: Lookup, margin: float) -> Compared:
    n = len(pair.logs)
    mean, half = math.fsum(pair.logs) / n, float(judged.half[index])
    verdict = judged.verdicts[index]
    withheld = Withheld.CONTROL if lost_in(found.control, verdict, mean, half, margin) else None
    more = settle - n
    settling = None
    if verdict is Verdict.UNCLEAR and more > 0:
        settling = Settling(more, more * found.seconds_per_round(pair.cell))
    return Compared(
        cell=pair.cell,
        other=pair.other,
        estimate=Estimate(exp(mean), n, interval(mean, half)),
        level=1.0 - float(judged.alpha[index]),
        verdict=None if withheld else verdict,
        withheld=withheld,
        settling=None if withheld else settling,
        work=pair.work,
        pythons=found.pythons(pair.cell.environment, pair.other.environment),
    )


def lost_in(control: Control | None, verdict: Verdict, mean: float, half: float, margin: float) -> bool:
    """Whether the control takes the verdict away.

    All of them where its whole interval lies beyond the margin: this run calls a thing different from itself. Where it
    only reaches beyond, those whose own interval does not lie farther out than that.
    """
    if control is None or control.estimate.interval is None:
        return False
    if control.beyond(margin):
        return True
    if control.reach <= margin or verdict is Verdict.UNCLEAR:
        return False
    return abs(mean) - half <= control.reach


def _unjudged(pair: _Pair, found: Lookup) -> Compared:
    n = len(pair.logs)
    mean = math.fsum(pair.logs) / n
    half = float(half_widths(_logs([pair]), ALPHA)[0]) if n > 1 else None
    different = pair.work.work is work.Work.DIFFERENT
    return Compared(
        cell=pair.cell,
        other=pair.other,
        estimate=Estimate(exp(mean), n, None if half is None else interval(mean, half)),
        level=1.0 - ALPHA,
        verdict=Verdict.DIFFERENT_WORK if different else None,
        withheld=None if different else Withheld.FEW_ROUNDS,
        settling=None,
        work=pair.work,
        pythons=found.pythons(pair.cell.environment, pair.other.environment),
    )
