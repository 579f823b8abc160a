"""The quality of a measurement: good, fair or poor. The rule uses facts that don't depend on the measured differences.

A measurement is poor if identical cells may differ by 25 %, or if other processes took 25 % of the time of
a typical launch. It is good if nothing is known that affects it, and if its A/A control rules out a bias as large as
the smallest difference that the run reports.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from harness.analysis.control import Control
from harness.analysis.interference import RunInterference
from harness.model.defaults import FEWEST_ROUNDS

#: The share from which a measurement is poor. It applies to the part of a launch's time that is subtracted because
#: others used the CPU, and to the difference between identical cells that the A/A control doesn't rule out. If the
#: standard deviation of launches is 2 %, none of 2,000 simulated controls of 3 rounds allows 25 %, but 92 % of them
#: allow more than 3 %. So a control that allows more than the margin makes a measurement only fair.
POOR_SHARE = 0.25


class Grade(StrEnum):
    """The quality of a measurement. From each grade to the next, results are less reliable."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of the measurement on one machine, with the facts that decide it.

    `rounds` are the different numbers of rounds of the run's tables, in ascending order. `machine` is the name of the
    machine in a merged run.
    """

    grade: Grade
    rounds: Sequence[int]
    control: Control | None
    interference: RunInterference
    machine: str = ""


def assess(
    rounds: Sequence[int], control: Control | None, interference: RunInterference, margin: float, *, compares: bool
) -> Quality | None:
    """Return the quality of a measurement; None if nothing was timed.

    `margin` is on the log scale. If the run `compares` cells, it should have a control.
    """
    if not rounds or not interference.launches:
        return None
    bias = _find_largest_bias(control)
    # after fewer rounds, an interval is wide on an idle machine too
    is_wide = control is not None and control.estimate.rounds >= FEWEST_ROUNDS and bias > math.log1p(POOR_SHARE)
    has_failed = control is not None and control.is_beyond(margin)
    if has_failed or is_wide or compute_typical_share(interference) > POOR_SHARE:
        grade = Grade.POOR
    elif rounds[0] < FEWEST_ROUNDS or (compares and bias > margin) or _is_noisy(interference):
        grade = Grade.FAIR
    else:
        grade = Grade.GOOD
    return Quality(grade, rounds, control, interference)


def compute_typical_share(interference: RunInterference) -> float:
    """Return the share of its time that is subtracted from the median launch. A few launches don't make a run poor."""
    shares = [*interference.taken, *interference.stopped]
    return median([*shares, *[0.0] * max(0, interference.launches - len(shares))])


def _find_largest_bias(control: Control | None) -> float:
    """Return the largest difference between identical cells that the control doesn't rule out, on the log scale.

    The result is infinite without a control, and if the control has no interval.
    """
    interval = control.estimate.interval if control else None
    return max(math.log(interval.high), -math.log(interval.low)) if interval else math.inf


def _is_noisy(interference: RunInterference) -> bool:
    """Return whether a launch that counts had interference, or whether this is unknown."""
    is_affected = interference.taken or interference.stopped or len(interference.disturbed) > interference.repeated
    return bool(is_affected) or not interference.told
