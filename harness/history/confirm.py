"""Confirms a change: both sides of it are measured again, side by side, in one run on this machine."""

import math


def verdict(log: float, low: float, high: float, ratio: float, margin: float) -> bool | None:
    """Whether the change of a finding is there: True, False, or None where that is not known well enough.

    `log` is the log of time(after) / time(before) side by side, `low` to `high` its 95 % interval; `ratio` is the
    finding's, and says which way it went; `margin` is a share. It is refuted where the whole interval is below the
    margin that way, and confirmed where the whole interval goes that way and its middle by half the margin at least.
    """
    if ratio < 1.0:
        log, low, high = -log, -high, -low
    least = math.log1p(margin)
    if high < least:
        return False
    return True if low > 0.0 and log > least / 2.0 else None
