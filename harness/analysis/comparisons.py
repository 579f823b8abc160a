"""The comparisons of one table, each with its ratio, its verdict and what stands behind it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from harness.analysis import turns, work
from harness.analysis.looks import share_left
from harness.analysis.lookup import Lookup
from harness.analysis.moderation import moderate
from harness.analysis.quantities import PIECE, calls_looked_at, growth_control, growths
from harness.analysis.rounds import series
from harness.analysis.statistics import Difference, Estimate, Floats, Interval, Logs, half_widths, log_ratios, means
from harness.analysis.trends import in_common, restricted
from harness.analysis.verdicts import (
    POWER,
    Judgement,
    Verdict,
    Withheld,
    half_widths_after,
    judge,
    judgements,
    margins,
    p_values,
    rounds_to_settle,
    shown_alpha,
    unjudged,
)
from harness.model.defaults import ALPHA, FEWEST_ROUNDS
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class Settling:
    """How many more rounds settle an unclear verdict, and with which `probability`: POWER or more.

    Where MOST_ROUNDS in all are not enough, those up to them, and their lower probability. `seconds` is what they take
    in all groups of the machine together; `half` is half the interval's width then, on the log scale.
    """

    rounds: int
    seconds: float
    half: float
    probability: float

    @property
    def is_likely(self) -> bool:
        """Whether so many rounds are likely to be enough."""
        return self.probability >= POWER


@dataclass(frozen=True, slots=True)
class Compared:
    """One cell against another.

    `ratio` is time(cell) / time(other): how many times as long `cell` takes, above 1 if it is slower. Its interval is
    `level` wide: 1 - 0.05 / m of m that are judged together, and more if a run is judged more than once
    (analysis/looks.py). `verdict` (by Holm) says what `cell` is; if it is None, `withheld` says why. `alone` is how
    many times as large the ratio is where each was measured alone, of launches that took turns, with its interval at
    the same level. `settling` is of an unclear one. `work` tells whether both did the same, `pythons` are the two
    interpreters' versions if they differ. `steps`: one of the two changes while it is measured, so both are compared
    between these numbers of steps made before. `contention` is by how much the ratio may be wrong, on the log scale, if
    CPU contention was subtracted: the interval is that much longer on both sides.
    """

    cell: Cell
    other: Cell
    ratio: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None
    settling: Settling | None
    work: work.WorkCheck
    pythons: tuple[str, str] | None
    alone: Estimate | None = None
    steps: Interval | None = None
    contention: float = 0.0

    @property
    def bias(self) -> Estimate | None:
        """What `alone` says, if it is shown not to be 1: both intervals then are as much wider as it is away from 1."""
        return self.alone if turns.is_bias(self.alone) else None

    @property
    def judged(self) -> bool:
        """Whether it is one of those that the verdicts of its table are of."""
        return (self.withheld is None or self.withheld.by_times) and self.verdict is not Verdict.DIFFERENT_WORK


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cells, the log ratio of each round that has both, and `weight`: its variance, where a launch has one of 1.

    `changes`: one of their steps does while it is measured, so the ratio is of the `steps` that both have, if any.
    """

    cell: Cell
    other: Cell
    logs: Sequence[float]
    weight: float
    work: work.WorkCheck
    changes: bool
    steps: Interval | None

    @property
    def judged(self) -> bool:
        """Whether it is of those that get a verdict from their times: decided without looking at their ratio."""
        return len(self.logs) > 1 and not self.work.differs and not self.apart

    @property
    def apart(self) -> bool:
        """Whether a step changes, and the two have too few steps in common."""
        return self.changes and self.steps is None


def compare(pairs: Sequence[tuple[Cell, Cell]], found: Lookup, margin: float) -> list[Compared | None]:
    """What each pair of (cell, other) shows, judged together; None where no round has both.

    `margin` is a share: 0.03 for 3 %. Pairs with one round, those that did different work, and those of a step that
    changes and no steps in common are not judged, and not counted when the level is divided among the others.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    logs, log_margin = _logs(family, found), math.log1p(margin)
    alone, contention = _alone(family, found), _contention(family, found)
    # the two have nothing to do with each other, so both may act in the same direction
    bias = contention + _bias(alone)
    lost = [found.is_lost(pair.cell, log_margin) for pair in family]
    log_margins = margins(logs.rounds, log_margin)
    judged = judge(logs, log_margins, bias, _shares(family, logs, log_margins, bias, found))
    said = judgements(logs, judged, [len(pair.logs) for pair in family], lost)
    hidden = (contention >= log_margin) & (np.abs(logs.mean) <= log_margin + contention)
    said = [_withheld(each) if is_hidden else each for each, is_hidden in zip(said, hidden, strict=True)]
    cells = [pair.cell for pair in family]
    settled = settlings(logs, judged.alpha, log_margin, cells, found, shown=1.0 - judged.levels, bias=bias)
    results = (
        replace(_compared(pair, judgement, found, settling), alone=shift, contention=wider)
        for pair, judgement, settling, shift, wider in zip(
            family, said, settled, alone, contention.tolist(), strict=True
        )
    )
    return [
        None if pair is None else next(results) if pair.judged else _unjudged(pair, len(family), found)
        for pair in known
    ]


def _withheld(said: Judgement) -> Judgement:
    """The same, without a verdict where it is unclear: no number of rounds takes away what contention may have done."""
    is_unclear = said.verdict is Verdict.UNCLEAR
    return replace(said, verdict=None, withheld=Withheld.CONTENTION) if is_unclear else said


def compare_growth(pairs: Sequence[tuple[Cell, Cell]], found: Lookup) -> list[Compared | None]:
    """What each pair of (cell, other) shows of memory growth, judged together; None where no round has both.

    `ratio` is how much more each call of `cell` keeps than one of `other`, in bytes: a Difference. Its interval is a t
    interval of the paired differences, each with its own variance: what leaks scatters unlike what does not. The
    margin is PIECE over the calls that were looked at; a control of growth beyond it takes the verdict away.
    """
    known = [_growth_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    logs = means([pair.logs for pair in family])
    pieces = np.array([_piece(pair, found) for pair in family])
    judged = judge(logs, pieces, shares=np.array([found.look(pair.cell).share for pair in family], np.float64))
    settled = settlings(logs, judged.alpha, pieces, [pair.cell for pair in family], found, shown=1.0 - judged.levels)
    results = iter(
        _compared(
            pair,
            Judgement(
                Difference(mean, len(pair.logs), Interval(mean - half, mean + half)),
                level,
                *_growth_verdict(pair, verdict, margin, found),
            ),
            found,
            settling,
        )
        for pair, mean, half, level, verdict, settling, margin in zip(
            family,
            logs.mean.tolist(),
            judged.half.tolist(),
            judged.levels.tolist(),
            judged.verdicts,
            settled,
            pieces.tolist(),
            strict=True,
        )
    )
    return [
        None if pair is None else next(results) if pair.judged else _unjudged_growth(pair, len(family), found)
        for pair in known
    ]


def settlings(
    logs: Logs,
    alpha: Floats,
    margin: float | Floats,
    cells: Sequence[Cell],
    found: Lookup,
    *,
    shown: float | Floats,
    bias: float | Floats = 0.0,
) -> list[Settling | None]:
    """Return what settles each of the `logs`, of shape (m,) as `cells`; None for one that has MOST_ROUNDS already.

    `alpha` is the level at which each is judged, and `shown` that of the intervals that are shown; `margin` and `bias`
    are those of `judge`. A run that is continued shares its level with the looks before.
    """
    known = [found.look(cell) for cell in cells]
    share = np.array([look.share for look in known])
    first = np.where([look.first > 0 for look in known], [look.first for look in known], logs.rounds)
    level = partial(share_left, first.astype(np.float64), logs.rounds)
    totals, chances = rounds_to_settle(logs, alpha / share, margin, bias, level)
    later = np.maximum(totals, logs.rounds + 1.0)
    halves = half_widths_after(logs, later, shown / share * level(later)) + bias
    return [
        Settling(more, found.seconds_for(cell, more), half, chance) if more > 0 else None
        for cell, more, half, chance in zip(
            cells, (totals - logs.rounds.astype(int)).tolist(), halves.tolist(), chances.tolist(), strict=True
        )
    ]


def control_of_growth(cell: Cell, found: Lookup) -> Difference | None:
    """The control of memory growth of the cell's group, in bytes a call; None where the group has none."""
    group = found.groups.get(cell)
    members = [each for each in found.numbers if found.groups.get(each) == group]
    return growth_control([launch for each in members for launch in found.numbers[each]])


def is_beyond(difference: Difference | None, margin: float) -> bool:
    """Whether a difference is shown to be more than the margin, either way."""
    ends = difference.interval if difference else None
    return ends is not None and (ends.low > margin or ends.high < -margin)


def _growth_verdict(
    pair: _Pair, verdict: Verdict, margin: float, found: Lookup
) -> tuple[Verdict, None] | tuple[None, Withheld]:
    if len(pair.logs) < FEWEST_ROUNDS:
        return None, Withheld.FEW_ROUNDS
    if is_beyond(control_of_growth(pair.cell, found), margin):
        return None, Withheld.CONTROL
    return verdict, None


def _growth_pair(cell: Cell, other: Cell, found: Lookup) -> _Pair | None:
    """The two with the difference of each round in place of a log ratio."""
    one, two = (growths(found.numbers.get(each, ())) for each in (cell, other))
    differences = [one[number] - two[number] for number in sorted(one.keys() & two.keys())]
    if not differences:
        return None
    same = work.compare(found.numbers[other], found.numbers[cell])
    return _Pair(cell, other, differences, found.weight(cell, other), same, changes=False, steps=None)


def _piece(pair: _Pair, found: Lookup) -> float:
    """What memory may grow by each call with nothing being kept: PIECE over the fewest later calls of a launch."""
    launches = [*found.numbers[pair.cell], *found.numbers[pair.other]]
    return PIECE / max(1.0, min(calls_looked_at(launch) for launch in launches if launch.memory))


def _unjudged_growth(pair: _Pair, judged: int, found: Lookup) -> Compared:
    level = 1.0 - shown_alpha(judged) * found.look(pair.cell).share
    mean = fmean(pair.logs)
    verdict, withheld = (Verdict.DIFFERENT_WORK, None) if pair.work.differs else (None, Withheld.FEW_ROUNDS)
    return _compared(pair, Judgement(Difference(mean, len(pair.logs)), level, verdict, withheld), found)


def half_widths_of(pairs: Sequence[tuple[Cell, Cell]], found: Lookup, planned: int = 0) -> list[float | None]:
    """Half the width of each pair's interval on the log scale, at 1 - 0.05 / m for the m pairs that are judged.

    Where so many are `planned` that are not measured yet, m is that.

    What `compare` shows, whatever the verdicts: so a rule that stops by it does not look at these. But for a bias that
    was found, which no more rounds take away. None for a pair that is not judged; infinite for one with too few rounds
    to be.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    widths = iter(half_widths(_logs(family, found), shown_alpha(max(planned, len(family)))).tolist())
    return [
        None if pair is None or pair.work.differs or pair.apart else next(widths) if pair.judged else math.inf
        for pair in known
    ]


def open_widths(
    pairs: Sequence[tuple[Cell, Cell]], found: Lookup, margin: float, settled: Mapping[str, float]
) -> list[float | None]:
    """The same widths, but 0 of a comparison whose verdict is settled.

    `margin` is a share: 0.03 for 3 %. `settled` is by group what a look may use of the level now (analysis/looks.py): a
    verdict is settled where the interval at 1 - 0.05 · that / m is clear of the margin, and no control takes it away.
    """
    halves = half_widths_of(pairs, found)
    if not any(settled.values()):
        return halves
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and pair.judged]
    logs, log_margin = _logs(family, found), math.log1p(margin)
    shares = np.array([settled[found.groups[pair.cell]] for pair in family], np.float64)
    bias = _contention(family, found) + _bias(_alone(family, found))
    are_settled = _are_settled(logs, margins(logs.rounds, log_margin), bias, shares)
    lost = np.array([found.is_lost(pair.cell, log_margin) for pair in family], np.bool_)
    known_well = iter((are_settled & ~lost).tolist())
    return [
        0.0 if pair and pair.judged and next(known_well) else half for pair, half in zip(known, halves, strict=True)
    ]


def ratios(pairs: Sequence[tuple[Cell, Cell]], found: Lookup, alpha: float = ALPHA) -> list[Estimate | None]:
    """time(cell) / time(other) of each pair, with an interval of 1 - `alpha` of its own, whatever else is compared.

    What `compare` shows before the level is divided among the pairs and before what a bias adds: variances are
    moderated over all of these. None where no round has both, and where a step changes and the two have too few steps
    in common. Of one round there is no interval.
    """
    known = [_pair(cell, other, found) for cell, other in pairs]
    family = [pair for pair in known if pair and len(pair.logs) > 1 and not pair.apart]
    halves = iter(half_widths(_logs(family, found), alpha).tolist())
    return [
        None
        if pair is None or pair.apart
        else Estimate.from_log(fmean(pair.logs), len(pair.logs), next(halves) if len(pair.logs) > 1 else None)
        for pair in known
    ]


def _alone(family: Sequence[_Pair], found: Lookup) -> list[Estimate | None]:
    """How many times as large each ratio is where launches were measured alone.

    What is measured alone comes last: of a step that changes, it is no check of turns.
    """
    stretches = turns.alone([(pair.cell, pair.other) for pair in family], found)
    return [None if pair.changes else each for pair, each in zip(family, stretches, strict=True)]


def _contention(family: Sequence[_Pair], found: Lookup) -> Floats:
    """By how much each ratio may be wrong, on the log scale, as CPU contention was subtracted; shape (m,)."""
    return np.array([found.contention(pair.cell, pair.other) for pair in family], np.float64)


def _bias(alone: Sequence[Estimate | None]) -> Floats:
    return np.array([abs(math.log(each.value)) if each and turns.is_bias(each) else 0.0 for each in alone], np.float64)


def _are_settled(logs: Logs, log_margins: Floats, bias: Floats, shares: Floats) -> NDArray[np.bool_]:
    """Which comparisons are clear at these shares of the level, divided among all of them."""
    return np.asarray((shares > 0.0) & (p_values(logs, log_margins, bias) <= shares * shown_alpha(logs.mean.size)))


def _shares(family: Sequence[_Pair], logs: Logs, log_margins: Floats, bias: Floats, found: Lookup) -> Floats:
    """What each comparison may use of the level: less where it is settled, and was not waited for to be narrow."""
    looks = [found.look(pair.cell) for pair in family]
    share, settled, narrow = (
        np.array([getattr(look, name) for look in looks], np.float64) for name in ("share", "settled", "narrow")
    )
    early = share * settled
    wide = half_widths(logs, share * shown_alpha(len(family))) > narrow
    is_early = wide & _are_settled(logs, log_margins, bias, early)
    return np.where(is_early, early, share)


def _pair(cell: Cell, other: Cell, found: Lookup) -> _Pair | None:
    if not log_ratios(found.series.get(cell, {}), found.series.get(other, {})):
        return None
    changes, own, others = cell in found.trends or other in found.trends, found.series[cell], found.series[other]
    both = [*found.numbers[other], *found.numbers[cell]]
    steps = in_common(both) if changes else None
    if steps:
        between = series(restricted(both, steps))
        own, others = between[cell], between[other]
    same = work.compare(found.numbers[other], found.numbers[cell])
    return _Pair(cell, other, log_ratios(own, others), found.weight(cell, other), same, changes, steps)


def _logs(family: Sequence[_Pair], found: Lookup) -> Logs:
    weights = np.array([pair.weight for pair in family], np.float64)
    residuals = [found.residual(pair.cell, pair.other) for pair in family]
    machines = [found.machine(pair.cell) for pair in family]
    return moderate(means([pair.logs for pair in family]), weights, residuals, machines)


def _unjudged(pair: _Pair, judged: int, found: Lookup) -> Compared:
    """What is shown of a pair beside those that are `judged`: an interval of the same level."""
    n, level = len(pair.logs), 1.0 - shown_alpha(judged) * found.look(pair.cell).share
    half = float(half_widths(_logs([pair], found), 1.0 - level)[0]) if n > 1 else None
    why = Withheld.TREND if pair.apart else Withheld.FEW_ROUNDS
    return _compared(pair, unjudged(fmean(pair.logs), half, n, level, different_work=pair.work.differs, why=why), found)


def _compared(pair: _Pair, said: Judgement, found: Lookup, settling: Settling | None = None) -> Compared:
    return Compared(
        cell=pair.cell,
        other=pair.other,
        ratio=said.ratio,
        level=said.level,
        verdict=said.verdict,
        withheld=said.withheld,
        settling=settling if said.verdict is Verdict.UNCLEAR else None,
        work=pair.work,
        pythons=found.pythons(pair.cell.environment, pair.other.environment),
        steps=pair.steps,
    )
