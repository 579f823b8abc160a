"""Verdicts from log ratios: intervals compared with a fixed margin, for all comparisons of a table at once.

The verdict is `faster` or `slower` if the whole interval is outside the margin, `same` if the whole interval is inside,
and otherwise `unclear`. An interval inside the margin shows equivalence, by the two one-sided tests of D. J.
Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of
average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987. With an interval of 95 %, each test
has a level of 2.5 %.

For the comparisons of one table, the probability of any wrong verdict is at most 5 %, by the step-down procedure of S.
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979. The
comparisons are ordered by their p values, clearest first. The k-th of m comparisons is judged by an interval at the
level 1 - 0.05 / (m - k + 1). From the first unclear comparison on, the level stays the same. J. P. Shaffer, Annals of
Statistics 8, 1980, shows that the procedure also covers the direction of a difference. For the measured error rates,
see bench/simulation/README.md.

Holm's levels depend on the measured values. So intervals at these levels would contain the true value less often than
the level promises. For this reason, all intervals that are shown have the level 1 - 0.05/m: with 95 % probability, all
intervals of a table contain their true ratios.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from harness.analysis.distributions import Floats, student_cdf
from harness.analysis.statistics import Estimate, Interval, Logs, exp_limited, half_widths
from harness.model.defaults import ALPHA, FEWEST_ROUNDS

#: A comparison with at least two rounds, but fewer than FEWEST_ROUNDS, has a verdict only if its whole interval is
#: beyond this factor (log scale).
LARGE = math.log(1.5)

#: One round has a verdict if its ratio is beyond VAST. Its interval then extends by the factor ONE_ROUND to both sides.
#: Both are on the log scale. In all kinds of noise in bench/simulation/machine.py, with 1 and 3 times their standard
#: deviation, at most 5 % of rounds are off by more than ONE_ROUND, and none by VAST.
VAST, ONE_ROUND = math.log(30.0), math.log(2.0)

#: The probability of a clear verdict after the suggested number of rounds.
POWER = 0.8

#: The largest number of rounds that harness suggests, in total and as a multiple of the rounds that were measured.
MOST_ROUNDS, MOST_TIMES = 200, 10


class Verdict(StrEnum):
    """The verdict of a comparison: faster and slower for times, less and more for other quantities."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    LESS = "less"
    MORE = "more"
    UNCLEAR = "unclear"
    DIFFERENT_WORK = "different work"

    @property
    def turned(self) -> "Verdict":
        """The verdict of the other cell."""
        pairs = ((Verdict.FASTER, Verdict.SLOWER), (Verdict.LESS, Verdict.MORE))
        return next((one if self is other else other for one, other in pairs if self in (one, other)), self)

    @property
    def of_amounts(self) -> "Verdict":
        """The verdict for a quantity that isn't a time: `less` instead of `faster`, and `more` instead of `slower`."""
        return {Verdict.FASTER: Verdict.LESS, Verdict.SLOWER: Verdict.MORE}.get(self, self)


class Withheld(StrEnum):
    """The reason why a comparison has no verdict."""

    FEW_ROUNDS = "few rounds"
    CONTROL = "control"
    #: The time per step changes during the measurement, and the two cells have too few steps in common.
    TREND = "trend"
    #: CPU contention was subtracted, and the verdict is unclear because of the possible error of this subtraction.
    CONTENTION = "contention"

    @property
    def by_times(self) -> bool:
        """Whether the verdict was withheld after the times were judged, so it used a part of the level."""
        return self in (Withheld.CONTROL, Withheld.CONTENTION)


@dataclass(frozen=True, slots=True)
class Deciding:
    """The interval that decides a verdict, and its level by Holm's procedure. The interval of the ratio is wider."""

    interval: Interval
    level: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """A ratio time(cell) / time(other), above 1 if the cell is slower, with the cell's verdict.

    The interval has the level `level`. If `verdict` is None, `withheld` is the reason. `deciding` is the narrower
    interval that decides the verdict, if the interval of the ratio alone would leave it unclear.
    """

    ratio: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None = None
    deciding: Deciding | None = None

    @property
    def judged(self) -> bool:
        """Whether the comparison was judged. The level is divided among the judged comparisons."""
        return (self.withheld is None or self.withheld.by_times) and self.verdict is not Verdict.DIFFERENT_WORK


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts of m comparisons, with arrays of shape (m,).

    `half` is half the width of the interval that is shown, on the log scale. `levels` is the level of this interval:
    1 - 0.05/m, or more if a comparison may use only a share of the significance level. `alpha` is Holm's significance
    level, at which the verdict was made. `deciding` is half the width of the interval that decides the verdict; 0 if
    the verdict also follows from the interval that is shown.
    """

    half: Floats
    levels: Floats
    alpha: Floats
    verdicts: list[Verdict]
    deciding: Floats


def judge(logs: Logs, margin: float | Floats, bias: float | Floats = 0.0, shares: float | Floats = 1.0) -> Judged:
    """Return the verdicts of one table. Each argument after `logs` has one value for all comparisons, or one for each.

    `margin` is on the log scale, such as log(1.03). `bias` (0 or more) is an error that a ratio may have, for example
    because the measurement method changes it. The direction of the error is unknown, so intervals are wider by this
    amount on both sides. `shares` (above 0, at most 1) are the shares of the level that comparisons may use
    (analysis/looks.py). Holm's procedure uses the p values divided by these shares.
    """
    margins = np.broadcast_to(margin, logs.mean.shape)
    alpha = shares * compute_holm_levels(p_values(logs, margins, bias) / shares)
    shown_alpha = np.broadcast_to(shares * compute_shown_alpha(logs.mean.size), logs.mean.shape)
    deciding_widths, shown_widths = half_widths(logs, alpha) + bias, half_widths(logs, shown_alpha) + bias
    verdicts, shown_verdicts = (
        [
            judge_interval(*bounds)
            for bounds in zip((logs.mean - width).tolist(), (logs.mean + width).tolist(), margins.tolist(), strict=True)
        ]
        for width in (deciding_widths, shown_widths)
    )
    is_needed = [verdict is not other for verdict, other in zip(verdicts, shown_verdicts, strict=True)]
    return Judged(shown_widths, 1.0 - shown_alpha, alpha, verdicts, np.where(is_needed, deciding_widths, 0.0))


def describe_too_few(rounds: int, needed_rounds: int = FEWEST_ROUNDS) -> str:
    """Return the reason for a missing verdict after `rounds` rounds: `too few rounds (2 of 3) for a verdict`."""
    return f"too few rounds ({rounds} of {needed_rounds}) for a verdict"


def margins(rounds: Floats, margin: float, min_rounds: int = FEWEST_ROUNDS) -> Floats:
    """Return the margin of each comparison on the log scale: at least LARGE for fewer than `min_rounds` rounds."""
    return np.where(rounds < min_rounds, max(LARGE, margin), margin)


def compute_shown_alpha(comparisons: int) -> float:
    """Return the significance level of intervals for this number of comparisons (Bonferroni)."""
    return ALPHA / max(1, comparisons)


def judgements(
    logs: Logs, judged: Judged, rounds: Sequence[int], lost: bool | Sequence[bool], fewest: int = FEWEST_ROUNDS
) -> list[Judgement]:
    """Return the judgement of each comparison. `rounds` contains each comparison's number of rounds.

    A comparison with fewer than `fewest` rounds has a verdict only if it is certainly beyond its margin (`margins`).
    If `lost` is true (for all comparisons, or for each), the verdict is withheld: the A/A control is beyond the margin,
    so the measurement showed a difference between identical cells.
    """
    outcomes = []
    for mean, half_width, level, verdict, deciding, count, is_lost in zip(
        logs.mean.tolist(),
        judged.half.tolist(),
        judged.levels.tolist(),
        judged.verdicts,
        list_deciding(logs, judged, exp_limited),
        rounds,
        [lost] * logs.mean.size if isinstance(lost, bool) else lost,
        strict=True,
    ):
        has_too_few = count < fewest and verdict not in (Verdict.FASTER, Verdict.SLOWER)
        withheld = Withheld.FEW_ROUNDS if has_too_few else Withheld.CONTROL if is_lost else None
        ratio = Estimate.from_log(mean, count, half_width)
        outcomes.append(
            Judgement(ratio, level, None, withheld) if withheld else Judgement(ratio, level, verdict, None, deciding)
        )
    return outcomes


def list_deciding(logs: Logs, judged: Judged, scale: Callable[[float], float]) -> list[Deciding | None]:
    """Return the interval of each verdict that doesn't follow from the shown interval; otherwise None.

    `scale` converts the ends: from logs to ratios, or not at all.
    """
    return [
        Deciding(Interval(scale(mean - half_width), scale(mean + half_width)), 1.0 - alpha) if half_width else None
        for mean, half_width, alpha in zip(
            logs.mean.tolist(), judged.deciding.tolist(), judged.alpha.tolist(), strict=True
        )
    ]


def make_unjudged(
    mean: float,
    half: float | None,
    rounds: int,
    level: float,
    *,
    different_work: bool = False,
    why: Withheld = Withheld.FEW_ROUNDS,
) -> Judgement:
    """Return a judgement without a verdict: the ratio with its interval (`half` is half its width), and the reason.

    `mean` and `half` are on the log scale. If `half` is None, there is no interval. A ratio of one round beyond VAST
    has a verdict and an interval nevertheless.
    """
    if rounds == 1 and abs(mean) >= VAST and not different_work and why is Withheld.FEW_ROUNDS:
        vast = Verdict.SLOWER if mean > 0.0 else Verdict.FASTER
        return Judgement(Estimate.from_log(mean, rounds, ONE_ROUND), level, vast)
    verdict, withheld = (Verdict.DIFFERENT_WORK, None) if different_work else (None, why)
    return Judgement(Estimate.from_log(mean, rounds, half), level, verdict, withheld)


def judge_interval(low: float, high: float, margin: float) -> Verdict:
    """Return the verdict of one interval. All arguments are on the log scale."""
    if low > margin:
        return Verdict.SLOWER
    if high < -margin:
        return Verdict.FASTER
    return Verdict.SAME if -margin < low and high < margin else Verdict.UNCLEAR


def compute_holm_levels(p_values: Floats) -> Floats:
    """Return the significance level of each comparison by Holm's procedure, in the shape of `p_values`.

    In ascending order of the p values, the k-th level is ALPHA / (m - k + 1). From the first p value above its level
    on, the level stays the same.
    """
    count = p_values.size
    order = np.argsort(p_values, kind="stable")
    levels = ALPHA / np.arange(count, 0, -1.0)
    unclear_places = np.flatnonzero(p_values[order] > levels)
    if unclear_places.size:
        levels[unclear_places[0] :] = levels[unclear_places[0]]
    result = np.empty(count)
    result[order] = levels
    return result


def chance_to_settle(
    logs: Logs, rounds: Floats, alpha: float | Floats, margin: float | Floats, bias: float | Floats = 0.0
) -> Floats:
    """Return the probability that each comparison has a clear verdict after `rounds` rounds in total.

    `rounds` must be larger than the present number of rounds. It has the shape (m,) of the comparisons, and the result
    has the same shape. To use k numbers of rounds at once, pass the shape (k, 1); the result then has the shape (k, m).
    `alpha` is the level at which each comparison is judged. `margin` and `bias` are the same as in `judge`.

    The distribution is predictive (D. J. Spiegelhalter, L. S. Freedman and P. R. Blackburn, "Monitoring clinical
    trials: conditional or predictive power?", Controlled Clinical Trials 7, 1986). With a flat prior, the true
    difference is `mean` + t · s/√n, where t has the degrees of freedom of the variance (`freedom`), and further rounds
    vary around the true difference by s. If n of N rounds are known, the mean of N rounds is
    `mean` + t · s·√(1/n - 1/N): the uncertainty of the true difference minus the uncertainty that remains after N
    rounds. Half the width of the interval is then t(1 - alpha/2) · s/√N, with the present variance and one more degree
    of freedom for each round. For moderated variances, bench/simulation/README.md shows that the result is
    correct to a few percentage points.
    """
    half_width = half_widths_after(logs, rounds, alpha) + bias
    scale = np.sqrt(logs.variance * (1.0 / logs.rounds - 1.0 / rounds))

    def compute_cdf(limit: Floats) -> Floats:
        return student_cdf(logs.freedom, (limit - logs.mean) / scale)

    outside_probability = compute_cdf(-margin - half_width) + 1.0 - compute_cdf(margin + half_width)
    return np.asarray(
        outside_probability + np.maximum(compute_cdf(margin - half_width) - compute_cdf(half_width - margin), 0.0)
    )


def rounds_to_settle(
    logs: Logs,
    alpha: Floats,
    margin: float | Floats,
    bias: float | Floats = 0.0,
    level: Callable[[Floats], Floats] = np.ones_like,
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the total number of rounds that each comparison needs for a clear verdict, and its probability.

    The result is the smallest number of rounds, above the present number, for which a clear verdict has a probability
    of at least POWER. If MOST_TIMES as many rounds aren't enough, or MOST_ROUNDS, the result is the smaller of these
    two numbers with its lower probability. Both results have the shape (m,). `alpha` is the level of each comparison in
    a run that ends as planned: the level that `compute_holm_levels` returns for the present rounds. `level` is a
    function that returns the share of this level that may be used after a number of rounds. It gets and returns arrays
    of shape (k, m).
    """
    candidates = np.arange(FEWEST_ROUNDS, MOST_ROUNDS + 1.0)[:, None]
    round_counts = np.maximum(candidates, logs.rounds + 1.0)
    probabilities = chance_to_settle(logs, round_counts, alpha * level(round_counts), margin, bias)
    probabilities = np.where(candidates > logs.rounds, probabilities, 0.0)
    limits = np.minimum(MOST_ROUNDS, MOST_TIMES * logs.rounds)
    is_enough = (probabilities >= POWER) & (candidates <= limits)
    index = np.where(is_enough.any(axis=0), is_enough.argmax(axis=0), limits.astype(np.int64) - FEWEST_ROUNDS)
    return candidates[index, 0].astype(np.int64), probabilities[index, np.arange(index.size)]


def half_widths_after(logs: Logs, rounds: Floats, alpha: float | Floats) -> Floats:
    """Return half the width of each interval at the level 1 - alpha after `rounds`, if the variance stays the same."""
    freedom = logs.freedom + rounds - logs.rounds
    return half_widths(Logs(logs.mean, logs.variance, rounds, freedom), alpha)


def p_values(logs: Logs, margin: float | Floats, bias: float | Floats) -> Floats:
    """Return the p values, at which intervals just reach the margin: 2 · P(T > (||mean| - margin| - bias) / error)."""
    distance = np.maximum(np.abs(np.abs(logs.mean) - margin) - bias, 0.0)
    return 2.0 * student_cdf(logs.freedom, -distance / logs.error)
