"""The comparisons of one table, each with its ratio, its verdict and what stands behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis import work
from harness.analysis.lookup import Lookup
from harness.analysis.moderation import moderate
from harness.analysis.statistics import Estimate, Logs, half_widths, log_ratios, means
from harness.analysis.verdicts import (
    ALPHA,
    FEWEST_ROUNDS,
    Judgement,
    Verdict,
    Withheld,
    judge,
    judgements,
    rounds_to_settle,
    unjudged,
)
from harness.model.scenario import Cell


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
        return len(self.logs) >= FEWEST_ROUNDS and not self.work.differs


def compare(pairs: Sequence[tuple[Cell, Cell]], found: Lookup, margin: float) -> list[Compared | None]:
    """What each pair of (cell, other) shows, judged together; None where no round has both.

    `margin` is a share: 0.03 for 3 %. Pairs with fewer than four rounds and those that did different work are not
    judged, and not counted when the level is divided among the others.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    logs, log_margin = _logs(family), math.log1p(margin)
    judged = judge(logs, log_margin)
    said = judgements(logs, judged, [len(pair.logs) for pair in family], [found.control], log_margin)
    unclear = [index for index, verdict in enumerate(judged.verdicts) if verdict is Verdict.UNCLEAR]
    settled_by = dict(
        zip(unclear, rounds_to_settle(logs.take(unclear), judged.alpha[unclear], log_margin).tolist(), strict=True)
    )
    results = (
        _compared(pair, judgement, found, settled_by.get(index, 0))
        for index, (pair, judgement) in enumerate(zip(family, said, strict=True))
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
    return [None if pair is None or pair.work.differs else next(widths) if pair.judged else math.inf for pair in known]


def _pair(cell: Cell, other: Cell, found: Lookup) -> _Pair | None:
    logs = log_ratios(found.series.get(other, {}), found.series.get(cell, {}))
    return _Pair(cell, other, logs, work.compare(found.numbers[other], found.numbers[cell])) if logs else None


def _logs(family: Sequence[_Pair]) -> Logs:
    return moderate(means([pair.logs for pair in family]))


def _unjudged(pair: _Pair, found: Lookup) -> Compared:
    n = len(pair.logs)
    half = float(half_widths(_logs([pair]), ALPHA)[0]) if n > 1 else None
    return _compared(pair, unjudged(fmean(pair.logs), half, n, different_work=pair.work.differs), found)


def _compared(pair: _Pair, said: Judgement, found: Lookup, settled_by: int = 0) -> Compared:
    """What is shown of a pair; so many rounds in all would settle it, 0 where none would."""
    more = settled_by - len(pair.logs)
    settles = said.verdict is Verdict.UNCLEAR and more > 0
    return Compared(
        cell=pair.cell,
        other=pair.other,
        estimate=said.ratio,
        level=said.level,
        verdict=said.verdict,
        withheld=said.withheld,
        settling=Settling(more, more * found.seconds_per_round(pair.cell)) if settles else None,
        work=pair.work,
        pythons=found.pythons(pair.cell.environment, pair.other.environment),
    )
