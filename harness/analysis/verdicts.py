"""Log-ratios to verdicts: intervals against a fixed margin, for all comparisons of a table at once.

`faster` and `slower` need the whole interval outside the margin, `same` needs it inside, all else is `unclear`. That an
interval inside the margin shows equivalence is the two one-sided tests of D. J. Schuirmann, "A comparison of the two
one-sided tests procedure and the power approach for assessing the equivalence of average bioavailability", Journal of
Pharmacokinetics and Biopharmaceutics 15, 1987; with an interval of 95 %, each of them is made at 2.5 %.

Over the comparisons of one table the step-down procedure of S. Holm, "A simple sequentially rejective multiple test
procedure", Scandinavian Journal of Statistics 6, 1979, keeps the chance of any wrong verdict at 5 %: the k-th
clearest of m comparisons gets an interval of 1 - 0.05 / (m - k + 1), down to the first one that is unclear, and the
rest get that one's. (That it also covers on which side a rejection lies is J. P. Shaffer, Annals of Statistics 8, 1980;
docs/simulation.md has what came of it.) An interval that is shown is the one that its verdict was taken from.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from harness.analysis.control import Control
from harness.analysis.statistics import Estimate, Floats, Logs, half_widths

#: The chance that a table holds any wrong verdict.
ALPHA = 0.05

#: With fewer rounds there are intervals and no verdict: a t quantile of 2 degrees of freedom is 4.3.
FEWEST_ROUNDS = 4

#: More rounds than these are not told: the difference lies at the margin, and no number of rounds settles it.
MOST_ROUNDS = 1000


class Verdict(StrEnum):
    """What is said of one cell against another."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNCLEAR = "unclear"
    DIFFERENT_WORK = "different work"

    @property
    def turned(self) -> "Verdict":
        """What is then said of the other cell."""
        return {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(self, self)


class Withheld(StrEnum):
    """Why a comparison has no verdict."""

    FEW_ROUNDS = "few rounds"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A ratio time(other) / time(cell), above 1 when the cell is faster, and what is said of the cell.

    The interval is the one that the verdict was taken from, `level` wide; where `verdict` is None, `withheld` says why.
    """

    ratio: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None = None

    @property
    def judged(self) -> bool:
        """Whether its level was divided with the others' that were judged together."""
        return self.withheld is not Withheld.FEW_ROUNDS and self.verdict is not Verdict.DIFFERENT_WORK


@dataclass(frozen=True, slots=True)
class Judged:
    """For each comparison, shape (m,): half the interval's width on the log scale, its level, and the verdict."""

    half: Floats
    alpha: Floats
    verdicts: list[Verdict]


def judge(logs: Logs, margin: float) -> Judged:
    """The verdicts of one table. `margin` is on the log scale, log(1.03) for 3 %."""
    alpha = holm(_p_values(logs, margin))
    half = half_widths(logs, alpha)
    low, high = logs.mean - half, logs.mean + half
    verdicts = [_verdict(float(a), float(b), margin) for a, b in zip(low, high, strict=True)]
    return Judged(half, alpha, verdicts)


def judgements(
    logs: Logs, judged: Judged, rounds: Sequence[int], controls: Iterable[Control | None], margin: float
) -> list[Judgement]:
    """What is said of each of the `logs` that were `judged`; `rounds` are those that its estimate tells of."""
    known = [control for control in controls if control]
    made = []
    values = zip(logs.mean.tolist(), judged.half.tolist(), judged.alpha.tolist(), judged.verdicts, rounds, strict=True)
    for mean, half, alpha, verdict, count in values:
        lost = any(_is_lost(control, verdict, abs(mean) - half, margin) for control in known)
        given, withheld = (None, Withheld.CONTROL) if lost else (verdict, None)
        made.append(Judgement(Estimate.from_log(mean, count, half), 1.0 - alpha, given, withheld))
    return made


def unjudged(mean: float, half: float | None, rounds: int, *, different_work: bool = False) -> Judgement:
    """What is said where the times give no verdict: a 95 % interval, `half` as wide, and why."""
    verdict, withheld = (Verdict.DIFFERENT_WORK, None) if different_work else (None, Withheld.FEW_ROUNDS)
    return Judgement(Estimate.from_log(mean, rounds, half), 1.0 - ALPHA, verdict, withheld)


def _is_lost(control: Control, verdict: Verdict, nearest: float, margin: float) -> bool:
    """Whether the control takes away the verdict on an interval whose nearest end lies `nearest` off 0.

    It takes all of them where its whole interval lies beyond the margin: this run calls a thing different from itself.
    Where it only reaches beyond, those whose own interval does not lie farther out than that.
    """
    if control.beyond(margin):
        return True
    reaches = margin < control.reach < math.inf
    return reaches and verdict is not Verdict.UNCLEAR and nearest <= control.reach


def _verdict(low: float, high: float, margin: float) -> Verdict:
    if low > margin:
        return Verdict.FASTER
    if high < -margin:
        return Verdict.SLOWER
    return Verdict.SAME if -margin < low and high < margin else Verdict.UNCLEAR


def holm(p_values: Floats) -> Floats:
    """The significance level at which each comparison is looked at; the same shape.

    In the order of the p values, level k is ALPHA / (m - k + 1); from the first p value above its level on, all have
    that one's.
    """
    count = p_values.size
    order = np.argsort(p_values, kind="stable")
    levels = ALPHA / np.arange(count, 0, -1.0)
    unclear = np.flatnonzero(p_values[order] > levels)
    if unclear.size:
        levels[unclear[0] :] = levels[unclear[0]]
    result = np.empty(count)
    result[order] = levels
    return result


def rounds_to_settle(logs: Logs, alpha: Floats, margin: float) -> npt.NDArray[np.int64]:
    """How many rounds in all would take each interval off the margin, if mean and spread stay as they are; shape (m,).

    The smallest n with t(1 - alpha/2; n - 1 + what moderation lent) · s / √n < ||mean| - margin|; 0 where that is over
    a thousand: the difference lies at the margin. It is an estimate: the mean will move.
    """
    from scipy.special import stdtrit

    lent = logs.freedom - (logs.rounds - 1.0)
    distance = np.abs(np.abs(logs.mean) - margin)
    candidates = np.arange(FEWEST_ROUNDS, MOST_ROUNDS + 1.0)[:, None]
    quantiles = stdtrit(candidates - 1.0 + lent, 1.0 - alpha / 2.0)
    enough = quantiles * np.sqrt(logs.variance / candidates) < distance
    found = np.where(enough.any(axis=0), candidates[enough.argmax(axis=0), 0], 0.0)
    # what is unclear now needs at least one more
    return np.where(found > 0.0, np.maximum(found, logs.rounds + 1.0), 0.0).astype(np.int64)


def _p_values(logs: Logs, margin: float) -> Floats:
    """The level at which each interval would just touch the margin: 2 · P(T > ||mean| - margin| / error)."""
    from scipy.special import stdtr

    return np.asarray(2.0 * stdtr(logs.freedom, -np.abs(np.abs(logs.mean) - margin) / logs.error))
