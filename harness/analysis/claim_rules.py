"""The rules for the outcome of a claim of an upstream issue.

A ratio is judged like any comparison: all of a scenario's claims about one quantity are one family of verdicts. The
claimed direction is confirmed if the verdict for the worse side is `slower`. The interval is then compared with the
claimed range: the effect is smaller if the interval is entirely below the range, larger if it is entirely above, and
otherwise confirmed. Without the verdict `slower`, the claim is "not seen" if the whole interval is below a bound. The
bound is the middle between the margin and the smallest claimed value, on the log scale, because a small difference
doesn't support a claim of a large one. A count of traces has no noise, so that this bound comes first: two traces
instead of one for each shape are a fix, not a smaller problem.

An absolute value (seconds, or bytes per call) isn't compared with another cell. The effect is seen if the whole
interval is above 10 % of the smallest claimed value. But an interval from the largest claimed value (or less) to more
than ten times that value is too wide to show the effect. If the effect isn't seen, the claim is "not seen" if the whole
interval is below half of the smallest claimed value. A reporter's machine differs from this one by a small factor, and
an allocator may return some memory; neither reduces a value to 10 %. The reporter noticed the claimed value, and would
not have noticed 10 % of it.
"""

import math
from enum import StrEnum

import numpy as np

from harness.analysis.statistics import Interval, exp_limited
from harness.analysis.verdicts import Verdict, judge_interval, margins
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.scenario import TRACES, Claim

#: Shares of the smallest claimed value. An effect is seen if the whole interval is above NOTICED, because nobody would
#: have reported less. If it isn't seen, it is absent if the whole interval is below ABSENT. A run of claims measures
#: memory growth until half the width of the interval is at most ABSENT.
NOTICED, ABSENT = 0.1, 0.5


class ClaimOutcome(StrEnum):
    """The outcome of a claim in one environment."""

    CONFIRMED = "confirmed"
    SMALLER = "smaller"
    LARGER = "larger"
    NOT_SEEN = "not seen"
    OPPOSITE = "opposite"
    FIXED_BEFORE = "fixed before"
    UNCLEAR = "unclear"
    DIFFERENT_WORK = "different work"
    CANNOT_RUN = "cannot run"
    NOT_MEASURED = "not measured"

    @property
    def holds(self) -> bool:
        """Whether the claimed effect exists, of any size."""
        return self in (ClaimOutcome.CONFIRMED, ClaimOutcome.SMALLER, ClaimOutcome.LARGER)

    @property
    def is_gone(self) -> bool:
        """Whether the problem is shown to be absent."""
        return self in (ClaimOutcome.NOT_SEEN, ClaimOutcome.OPPOSITE, ClaimOutcome.FIXED_BEFORE)


def judge_ratio(verdict: Verdict | None, interval: Interval | None, claim: Claim, margin: float = 0.0) -> ClaimOutcome:
    """Return the outcome of a ratio value(worse) / value(better). `verdict` describes the worse side.

    `margin` is a share: 0.03 for 3 %.
    """
    is_below = interval is not None and interval.high < math.sqrt(claim.range[0] * (1.0 + margin))
    match verdict:
        case Verdict.SLOWER if claim.of == TRACES and is_below:
            return ClaimOutcome.NOT_SEEN
        case Verdict.SLOWER if interval:
            return _judge_size(interval, claim.range)
        case Verdict.FASTER:
            return ClaimOutcome.OPPOSITE
        case Verdict.SAME:
            return ClaimOutcome.NOT_SEEN
        case Verdict.DIFFERENT_WORK:
            return ClaimOutcome.DIFFERENT_WORK
    return ClaimOutcome.NOT_SEEN if is_below else ClaimOutcome.UNCLEAR


def judge_value(interval: Interval, claimed: tuple[float, float], bias: float = 0.0) -> ClaimOutcome:
    """Return the outcome of an absolute value, in seconds or in bytes per call.

    If an interval that is wider by `bias` on both sides has another outcome, the claim is unclear.
    """
    if bias:
        outcome = judge_value(interval, claimed)
        wider_interval = Interval(interval.low - bias, interval.high + bias)
        return outcome if judge_value(wider_interval, claimed) is outcome else ClaimOutcome.UNCLEAR
    is_vague = interval.low <= claimed[1] and interval.high > claimed[1] / NOTICED
    if interval.low > NOTICED * claimed[0] and not is_vague:
        return _judge_size(interval, claimed)
    return ClaimOutcome.NOT_SEEN if interval.high < ABSENT * claimed[0] else ClaimOutcome.UNCLEAR


def judge_claim(
    claim: Claim, mean: float, half_width: float, rounds: int, margin: float, *, bias: float = 0.0
) -> ClaimOutcome:
    """Return the outcome of a claim if nothing withholds it.

    `mean`, `half_width` and `bias` are on the log scale, or in bytes per call for a claim about memory growth. The bias
    makes the interval of a ratio wider. `margin` is a share.
    """
    if claim.ratio is None:
        low, high = mean - half_width, mean + half_width
        interval = Interval(low, high) if claim.bytes else Interval(exp_limited(low), exp_limited(high))
        return judge_value(interval, claim.range, bias) if rounds >= FEWEST_ROUNDS else ClaimOutcome.UNCLEAR
    low, high = mean - half_width - bias, mean + half_width + bias
    interval = Interval(exp_limited(low), exp_limited(high))
    verdict = judge_interval(low, high, float(margins(np.array([rounds]), math.log1p(margin))[0]))
    is_certain = rounds >= FEWEST_ROUNDS or verdict in (Verdict.FASTER, Verdict.SLOWER)
    return judge_ratio(verdict if is_certain else None, interval, claim, margin)


def _judge_size(interval: Interval, claimed: tuple[float, float]) -> ClaimOutcome:
    low, high = claimed
    if interval.high < low:
        return ClaimOutcome.SMALLER
    return ClaimOutcome.LARGER if interval.low > high else ClaimOutcome.CONFIRMED
