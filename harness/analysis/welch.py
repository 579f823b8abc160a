"""Means of launches that are not paired, their differences, and what moves many of them alike.

Rounds of one run are paired: whatever slows a whole round cancels. Rounds of different days share nothing, so their
difference has the spread of both: B. L. Welch, "The generalization of Student's problem when several different
population variances are involved", Biometrika 34, 1947. Variances are not moderated here: what moves a whole round is
in the spread of every cell of that run, so the cells' variances are no independent samples of one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analysis.moderation import Floats
from harness.analysis.statistics import variance
from harness.analysis.verdicts import RESOLUTION, Logs

#: A shift is told of so many cells at least: a median of four others holds where one of them has changed by itself.
FEWEST_CELLS = 5


@dataclass(frozen=True, slots=True)
class Means:
    """Means on the log scale, each of shape (m,): their standard `error`, which has `freedom` degrees."""

    mean: Floats
    error: Floats
    freedom: Floats

    @property
    def logs(self) -> Logs:
        """What `verdicts.judge` takes: one round each, of that spread."""
        return Logs(self.mean, self.error**2, np.ones_like(self.mean), self.freedom)

    def take(self, indices: Sequence[int] | npt.NDArray[np.intp]) -> "Means":
        """Some of them."""
        at = np.asarray(indices, np.intp)
        return Means(self.mean[at], self.error[at], self.freedom[at])


def means(logs: Sequence[Sequence[float]]) -> Means:
    """The mean of each cell's logs of centres, two at least of each."""
    counts = np.array([len(values) for values in logs], np.float64)
    spread = np.array([max(variance(values), RESOLUTION**2) for values in logs], np.float64)
    mean = np.array([math.fsum(values) / len(values) for values in logs], np.float64)
    return Means(mean, np.sqrt(spread / counts), counts - 1.0)


def minus(one: Means, other: Means) -> Means:
    """`one` minus `other`, which is independent of it.

    The error is √(e1² + e2²), with the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of
    estimates of variance components", Biometrics Bulletin 2, 1946.
    """
    parts, others = one.error**2, other.error**2
    total = parts + others
    freedom = total**2 / (parts**2 / one.freedom + others**2 / other.freedom)
    return Means(one.mean - other.mean, np.sqrt(total), freedom)


def median(of: Means) -> Means:
    """The median of the means (one at least), of shape (1,).

    Its error is that of a median of normal values, √(π/2 · e² / m), of which e² is the median of the errors' squares:
    some wild cells move neither.
    """
    error = np.sqrt(np.pi / 2.0 * np.median(of.error**2) / of.mean.size)
    return Means(np.array([np.median(of.mean)]), np.array([error]), np.array([of.freedom.sum()]))


def minus_others(of: Means, base: Sequence[int]) -> Means:
    """Each mean minus the median of the others of `base` (indices, `FEWEST_CELLS` at least); the same shape.

    The cells' errors are taken as independent. What moves a whole round moves all cells, so it cancels here, and is in
    the errors all the same: the intervals are rather too wide than too narrow.
    """
    known = np.asarray(base, np.intp)
    parts = [minus(of.take([index]), median(of.take(known[known != index]))) for index in range(of.mean.size)]
    return Means(
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.error for part in parts]),
        np.concatenate([part.freedom for part in parts]),
    )
