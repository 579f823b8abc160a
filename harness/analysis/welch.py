"""Means of launches that are not paired, their differences, and what moves many of them alike.

Rounds of one run are paired: whatever slows a whole round cancels. Rounds of different days share nothing, so their
difference has the spread of both: B. L. Welch, "The generalization of Student's problem when several different
population variances are involved", Biometrika 34, 1947. Variances are not moderated here: what moves a whole round is
in the spread of every cell of that run, so the cells' variances are no independent samples of one.
"""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

from harness.analysis.statistics import variance
from harness.analysis.verdicts import RESOLUTION, Logs

#: A shift is told of so many cells at least: a median of four others holds where one of them has changed by itself.
FEWEST_CELLS = 5


def means(logs: Sequence[Sequence[float]]) -> Logs:
    """The mean of each cell's logs of centres, two at least of each."""
    counts = np.array([len(values) for values in logs], np.float64)
    spread = np.array([max(variance(values), RESOLUTION**2) for values in logs], np.float64)
    return Logs(np.array([fmean(values) for values in logs], np.float64), spread, counts, counts - 1.0)


def minus(one: Logs, other: Logs) -> Logs:
    """`one` minus `other`, which is independent of it: one round each, of the spread of both.

    The error is √(e1² + e2²), with the degrees of freedom of F. E. Satterthwaite, "An approximate distribution of
    estimates of variance components", Biometrics Bulletin 2, 1946.
    """
    parts, others = one.error**2, other.error**2
    total = parts + others
    freedom = total**2 / (parts**2 / one.freedom + others**2 / other.freedom)
    return Logs(one.mean - other.mean, total, np.ones_like(total), freedom)


def medians(of: Logs, sets: Sequence[npt.NDArray[np.intp]]) -> Logs:
    """The medians of the means of some sets (indices, one at least of each), of shape (sets,).

    The error is that of a median of m normal values, √(π/2 · e² / m), of which e² is the median of the errors' squares:
    some wild cells move neither.
    """
    return Logs(
        mean=np.array([np.median(of.mean[at]) for at in sets]),
        variance=np.array([np.pi / 2.0 * np.median(of.error[at] ** 2) / at.size for at in sets]),
        rounds=np.ones(len(sets)),
        freedom=np.array([of.freedom[at].sum() for at in sets]),
    )


def minus_others(of: Logs, base: npt.NDArray[np.intp]) -> Logs:
    """Each mean minus the median of the others of `base` (indices, `FEWEST_CELLS` at least); the same shape.

    The cells' errors are taken as independent. What moves a whole round moves all cells, so it cancels here, and is in
    the errors all the same: the intervals are rather too wide than too narrow.
    """
    return minus(of, medians(of, [base[base != index] for index in range(of.mean.size)]))
