"""Estimates from launch means: geometric means, paired ratios, unpaired differences, and their t intervals.

All calculations use the log scale. On this scale, a launch that takes twice as long and a launch that takes half as
long are equally far from the middle, and a ratio of times is a difference.

Source of the paired ratio and of the launch as the unit: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable
time", ISMM 2013.

Cells of one run are paired by round, so effects on a whole round cancel. Rounds of different days have nothing in
common, so the difference between two runs has the variability of both: B. L. Welch, "The generalization of Student's
problem when several different population variances are involved", Biometrika 34, 1947. The variances in such a
difference aren't moderated. Effects on a whole round are in the variance of every cell of a run, so the variances of
the cells aren't independent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import numpy as np
import numpy.typing as npt

from harness.analysis.distributions import Floats, student_quantile
from harness.model.defaults import LEVEL

#: The smallest number of rounds for an interval of a cell's mean. For two rounds, the t quantile is 12.7, so the
#: interval would be less informative than the two values.
FEWEST_FOR_INTERVAL = 3

#: The smallest standard deviation on the log scale: clocks count nanoseconds, and times are about a second. Without
#: this limit, the variance of equal times would be 0 or a rounding error, and moderation uses the log of the variance.
RESOLUTION = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval from `low` to `high`, in the unit of its value."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Estimate:
    """A positive number from a number of `rounds`: seconds per step, or a ratio. With one round, it has no interval."""

    value: float
    rounds: int
    interval: Interval | None = None

    @classmethod
    def from_log(cls, mean: float, rounds: int, half: float | None = None) -> "Estimate":
        """Return the estimate exp(mean), with the interval exp(mean ± half)."""
        # exp is limited, because two rounds with very different times give a half-width that is too large for a float
        return cls(
            exp_limited(mean),
            rounds,
            None if half is None else Interval(exp_limited(mean - half), exp_limited(mean + half)),
        )

    @property
    def distance(self) -> float:
        """The distance of the ratio from 1, on the log scale."""
        return abs(math.log(self.value))

    @property
    def inverse(self) -> "Estimate":
        """The inverse ratio, with the inverse interval."""
        inverse_interval = self.interval and Interval(1.0 / self.interval.high, 1.0 / self.interval.low)
        return Estimate(1.0 / self.value, self.rounds, inverse_interval)


@dataclass(frozen=True, slots=True)
class Difference(Estimate):
    """A difference or memory growth, on a linear scale. The value may be negative."""

    @property
    def distance(self) -> float:
        """The distance of the difference from 0."""
        return abs(self.value)

    @property
    def inverse(self) -> "Difference":
        """The difference with the opposite sign, and its interval."""
        opposite_interval = self.interval and Interval(-self.interval.high, -self.interval.low)
        return Difference(-self.value, self.rounds, opposite_interval)


@dataclass(frozen=True, slots=True)
class Logs:
    """Differences of log times, such as the paired log ratios of a table's m comparisons, as arrays of shape (m,).

    `mean` and `variance` (above 0) are over a number of `rounds`. `freedom` has the degrees of freedom of the variance,
    which may be moderated. `excess` is 0, unless a variance was too large to be reduced by moderation: it is then the
    ratio of its standard deviation to that of the group's other launches. It is None if nothing was moderated.
    """

    mean: Floats
    variance: Floats
    rounds: Floats
    freedom: Floats
    excess: Floats | None = None

    @classmethod
    def measured(cls, mean: Floats, variance: Floats, rounds: Floats) -> "Logs":
        """Return the values with variances that aren't moderated.

        `variance` is the sample variance of the values of all rounds (at least two).
        """
        return cls(mean, np.maximum(variance, RESOLUTION**2), rounds, rounds - 1.0)

    @property
    def error(self) -> Floats:
        """The standard error of each mean."""
        return np.sqrt(self.variance / self.rounds)


def combine(launch_means: Sequence[float]) -> Estimate:
    """Return the geometric mean of a cell's launch means (at least one), with its t interval.

    The result is exp(m), with the interval exp(m ± t·s/√n). Here m and s are the mean and the standard deviation of n
    logs, and t has n - 1 degrees of freedom. With fewer than FEWEST_FOR_INTERVAL values, there is no interval.
    """
    logs = [math.log(mean) for mean in launch_means]
    n = len(logs)
    if n < FEWEST_FOR_INTERVAL:
        return Estimate.from_log(fmean(logs), n)
    return Estimate.from_log(fmean(logs), n, student(n - 1) * math.sqrt(variance(logs) / n))


def log_ratios(longer: Mapping[int, float], shorter: Mapping[int, float]) -> list[float]:
    """Return log(longer / shorter) for every round that both have.

    Both arguments map rounds to seconds per step. Effects that slow a whole round cancel out.
    """
    common_rounds = sorted(longer.keys() & shorter.keys())
    return [math.log(longer[number]) - math.log(shorter[number]) for number in common_rounds]


def exp_limited(log: float) -> float:
    """Return exp(log). The result is limited so that the value and its inverse are finite floats."""
    return math.exp(min(max(log, -700.0), 700.0))


def percent(ratio: float) -> float:
    """Convert the ratio time(other) / time(plus) to a difference in percent.

    The result is (longer / shorter - 1) × 100 in absolute value, and positive if `plus` is faster. The function is
    monotone and continuous, so it maps the ends of an interval to the ends of an interval.
    """
    return (ratio - 1.0) * 100.0 if ratio >= 1.0 else (1.0 - 1.0 / ratio) * 100.0


@lru_cache(maxsize=256)
def student(freedom: float, level: float = LEVEL) -> float:
    """Return the two-sided Student quantile: a t variable is within ± this value with probability `level`."""
    return float(student_quantile(freedom, 0.5 + level / 2.0))


def variance(values: Sequence[float]) -> float:
    """Return the sample variance of two values or more, with n - 1 degrees of freedom."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def half_widths(logs: Logs, alpha: float | Floats) -> Floats:
    """Return half the width of the 1 - `alpha` t intervals: t(1 - alpha/2) · s / √n, on the log scale."""
    return student_quantile(logs.freedom, 1.0 - np.asarray(alpha) / 2.0) * logs.error


def means(logs: Sequence[Sequence[float]]) -> Logs:
    """Return the means of lists of logs (at least two values each), each with its own variance."""
    return Logs.measured(
        mean=np.array([fmean(values) for values in logs], np.float64),
        variance=np.array([variance(values) for values in logs], np.float64),
        rounds=np.array([len(values) for values in logs], np.float64),
    )


def subtract(one: Logs, other: Logs) -> Logs:
    """Return `one` minus an independent `other` from another run, with the variability of both.

    The error is √(e1² + e2²), with the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of
    estimates of variance components", Biometrics Bulletin 2, 1946.
    """
    squared_errors, other_squared_errors = one.error**2, other.error**2
    total = squared_errors + other_squared_errors
    freedom = total**2 / (squared_errors**2 / one.freedom + other_squared_errors**2 / other.freedom)
    return Logs(one.mean - other.mean, total, np.ones_like(total), freedom)


def medians(logs: Logs, sets: Sequence[npt.NDArray[np.intp]]) -> Logs:
    """Return the median of the means in each of `sets`, which contain indices (at least one each).

    The error is the standard error of the median of m normal values, √(π/2 · e² / m). Here e² is the median of the
    squared errors. So a few extreme cells change neither the median nor its error.
    """
    return Logs(
        mean=np.array([np.median(logs.mean[indexes]) for indexes in sets]),
        variance=np.array([np.pi / 2.0 * np.median(logs.error[indexes] ** 2) / indexes.size for indexes in sets]),
        rounds=np.ones(len(sets)),
        freedom=np.array([logs.freedom[indexes].sum() for indexes in sets]),
    )


def subtract_others(logs: Logs, base: npt.NDArray[np.intp]) -> Logs:
    """Return each mean minus the median of the other means whose indices are in `base` (at least two indices).

    The cells' errors are treated as independent. An effect on a whole round changes all cells, so it cancels out here
    but remains in the errors. So the intervals are too wide rather than too narrow.
    """
    return subtract(logs, medians(logs, [base[base != index] for index in range(logs.mean.size)]))
