"""Centres to estimates: geometric means, paired ratios, and their t intervals.

Everything is done on the log scale, where a launch that takes twice as long and one that takes half as long lie
equally far from the middle, and where a ratio of times is a difference.

Source of the paired ratio and of the launch as the unit: T. Kalibera and R. Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

#: How often an interval contains the true value.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, in the unit of the value it belongs to."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A positive number (seconds per step, or a ratio of two such) from `rounds` rounds; one round has no interval."""

    value: float
    rounds: int
    interval: Interval | None = None

    @classmethod
    def from_log(cls, mean: float, rounds: int, half: float | None = None) -> "Estimate":
        """exp(mean), with the interval exp(mean ± half)."""
        # two rounds far apart give a half-width that a float cannot hold
        return cls(exp(mean), rounds, None if half is None else Interval(exp(mean - half), exp(mean + half)))

    @property
    def inverse(self) -> "Estimate":
        """The ratio seen from the other side; its interval is the same one, turned over."""
        turned = self.interval and Interval(1.0 / self.interval.high, 1.0 / self.interval.low)
        return Estimate(1.0 / self.value, self.rounds, turned)


def combine(centres: Sequence[float]) -> Estimate:
    """The geometric mean of one cell's centres (seconds per step, at least one), with its t interval.

    exp(m), with the interval exp(m ± t·s/√n): m and s are mean and standard deviation of n logs, t has n-1 df.
    """
    logs = [math.log(centre) for centre in centres]
    n = len(logs)
    return Estimate.from_log(fmean(logs), n, student(n - 1) * math.sqrt(variance(logs) / n) if n > 1 else None)


def log_ratios(longer: Mapping[int, float], shorter: Mapping[int, float]) -> list[float]:
    """log(longer / shorter) for every round that both have; both map rounds to centres in seconds per step.

    The pairs are by round, so whatever slows a whole round cancels.
    """
    both = sorted(longer.keys() & shorter.keys())
    return [math.log(longer[number]) - math.log(shorter[number]) for number in both]


def exp(log: float) -> float:
    """A log as a positive number, kept to what a float can hold, and its inverse too."""
    return math.exp(min(max(log, -700.0), 700.0))


def percent(ratio: float) -> float:
    """A ratio time(other) / time(plus) as the source defines it: (longer / shorter - 1) × 100, positive if plus wins.

    Monotone and continuous (0 at 1, slope 100 on both sides), so an interval's ends map to an interval's ends.
    """
    return (ratio - 1.0) * 100.0 if ratio >= 1.0 else (1.0 - 1.0 / ratio) * 100.0


@lru_cache(maxsize=256)
def student(freedom: float, level: float = LEVEL) -> float:
    """The two-sided Student quantile: a t variable of `freedom` degrees lies within ± this with probability `level`."""
    # scipy.stats has it too, and takes a second to import
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2.0))


def variance(values: Sequence[float]) -> float:
    """The sample variance of two values or more, with n - 1 degrees of freedom."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
