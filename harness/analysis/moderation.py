"""Moderated variances: the variance of a comparison, estimated with information from other launches.

Three rounds are too few to estimate a variance, so the sample variance of each comparison is moderated by a prior. The
posterior is s̃² = (d0·s0² + d·s²) / (d0 + d), with d0 + d degrees of freedom (G. K. Smyth, "Linear models and empirical
Bayes methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3(1), 2004). The prior s0² of a comparison is the residual variance of its own group, multiplied by a
factor that depends on the design of the comparison. The weight d0 of the prior is four degrees of freedom, unless
Smyth's estimate of d0 from the variances of the table is smaller or larger:

- It is smaller if the variances differ more than four degrees of freedom allow. This happens if some cells vary far
  more than others, and their samples don't show it. The posterior then has fewer degrees of freedom. The posterior
  variance is still at least as large as with four degrees of freedom, because a few launches may agree by chance, for
  example if they have the same mode.
- It is larger if at least twelve comparisons have similar variances.

If the samples of a cell vary more, its launches also vary more. So the residual of a group comes only from cells whose
samples vary like the samples of the comparison's more variable cell. The prior thus depends on other information about
a variance, as in M. A. Sartor et al., "Intensity-based hierarchical Bayes method improves testing for differentially
expressed genes in microarray experiments", BMC Bioinformatics 7:538, 2006.
bench/simulation/variability.md has the error rates.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.analysis.distributions import Floats, digamma, f_survival, tetragamma, trigamma
from harness.analysis.statistics import RESOLUTION, Logs

#: The degrees of freedom that a group's residual variance usually adds to the variance of a comparison.
PRIOR_FREEDOM = 4.0

#: The samples of two cells vary alike if their standard deviations differ by at most this factor.
SIMILAR_FACTOR = 2.0

#: With fewer comparisons than FEWEST, the weight of the prior isn't estimated. Only comparisons with at least
#: FEWEST_FREEDOM degrees of freedom count.
FEWEST, FEWEST_FREEDOM = 2, 2

#: With fewer comparisons than FEWEST_FOR_MORE, the estimated weight is at most PRIOR_FREEDOM. Only comparisons with at
#: least FEWEST_FREEDOM_FOR_MORE degrees of freedom count.
FEWEST_FOR_MORE, FEWEST_FREEDOM_FOR_MORE = 12, 3

#: If a variance as large as the measured one has a smaller probability than this, the prior doesn't reduce it. In half
#: of all tables with a dozen equal variances, one of them is this large by chance.
REJECTION_LEVEL = 0.05

#: The limit for the only comparison of a table. It is larger, because no other comparison shows how similar variances
#: are.
SINGLE_REJECTION_LEVEL = 0.10


@dataclass(frozen=True, slots=True)
class Residual:
    """The variance (above 0) of launches of the same cell on the log scale, and its degrees of freedom."""

    variance: float
    freedom: float


def residual(cells: Sequence[Hashable], rounds: Sequence[Hashable], logs: Sequence[float]) -> Residual | None:
    """Return the residual variance of a group's launches, without effects of cell and round (see `residuals`).

    If no launch is missing, n rounds of S launches have (S - 1)(n - 1) + 1 degrees of freedom, and one less without a
    control. The result is None if there are no degrees of freedom.
    """
    launch_residuals, freedom = residuals(cells, rounds, logs)
    return (
        Residual(max(float(launch_residuals @ launch_residuals) / freedom, RESOLUTION**2), freedom) if freedom else None
    )


def residuals(cells: Sequence[Hashable], rounds: Sequence[Hashable], values: Sequence[float]) -> tuple[Floats, float]:
    """Return the residual of each launch's value without effects of cell and round, and the degrees of freedom.

    The effects are the least squares fit of value = cell + round (two-way analysis of variance without interaction).
    Each launch has one entry in `cells`, in `rounds` and in `values`. A launch of the control is a launch of its cell.
    """
    long_labels, short_labels = sorted(
        (_number_labels(cells), _number_labels(rounds)), key=lambda labels: labels.max(), reverse=True
    )
    centered = np.asarray(values, np.float64) - np.mean(values)
    counts = np.bincount(long_labels)

    def remove_effect(values: Floats) -> Floats:
        """Return the residual of each launch after one effect per label in `long_labels` is removed."""
        return np.asarray(values - (np.bincount(long_labels, values) / counts)[long_labels])

    # the normal equations without the factor that has more labels: cells × cells if there are hundreds of rounds
    counts_by_pair = np.zeros((counts.size, short_labels.max() + 1))
    np.add.at(counts_by_pair, (long_labels, short_labels), 1.0)
    reduced_matrix = np.diag(counts_by_pair.sum(axis=0)) - counts_by_pair.T @ (counts_by_pair / counts[:, None])
    solution, _, rank, _ = np.linalg.lstsq(
        reduced_matrix, np.bincount(short_labels, remove_effect(centered)), rcond=None
    )
    freedom = float(centered.size - counts.size - rank)
    return remove_effect(centered - solution[short_labels]), freedom


@dataclass(frozen=True, slots=True)
class LaunchVariances:
    """Variances of a group's launches. As for `residual`, each launch has one entry in `cells`, `rounds` and `logs`.

    `within` contains the standard error of a launch mean by cell, estimated from samples (above 0). A cell without an
    entry counts as similar to any other cell.
    """

    cells: Sequence[Hashable]
    rounds: Sequence[Hashable]
    logs: Sequence[float]
    within: Mapping[Any, float]
    _known: dict[frozenset[Hashable], Residual | None] = field(default_factory=dict, compare=False, repr=False)

    def between(self, one: Hashable, other: Hashable) -> Residual | None:
        """Return the residual variance that a comparison of two cells can use.

        The variance comes from cells whose samples vary like the samples of the more variable side. If the samples of
        the other side vary less, that side isn't included: the mean of a large and a small variance would be too small
        for the ratio.
        """
        larger_error = max(self.within.get(one, 0.0), self.within.get(other, 0.0))

        def is_similar(cell: Hashable) -> bool:
            cell_error = self.within.get(cell, larger_error)
            return not larger_error or cell_error <= SIMILAR_FACTOR * larger_error <= SIMILAR_FACTOR**2 * cell_error

        similar_cells = frozenset(filter(is_similar, dict.fromkeys(self.cells)))
        if similar_cells not in self._known:
            triples = [
                triple for triple in zip(self.cells, self.rounds, self.logs, strict=True) if triple[0] in similar_cells
            ]
            self._known[similar_cells] = residual(*map(list, zip(*triples, strict=True))) if triples else None
        return self._known[similar_cells]


def _number_labels(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    """Return a number for each label, from 0, in the order in which the labels first occur."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels], np.intp)


def moderate(
    logs: Logs, weights: Floats, residuals: Sequence[Residual | None], machines: Sequence[Hashable] | None = None
) -> Logs:
    """Return `logs` with moderated variances and their degrees of freedom.

    `weights`, of shape (m,), is the variance of each comparison if the variance of every launch is 1. `residuals`
    contains the residual variance of each comparison's group, or None if the group has none. If `machines` contains the
    machine of each comparison, only comparisons of the same machine affect each other.

    A variance isn't reduced if it is too large compared with the variance of the group's other launches. A variance
    is too large if F(d, d0) exceeds the ratio of the two with a probability below 5 %, or below 10 % if there is only
    one comparison. Such a variance keeps its own value, and the share 1 - 1/√m of the prior's degrees of freedom. With
    none of them, three rounds would make its interval six times as wide as the other intervals. The more comparisons
    there are, the likelier it is that the largest variance is large by chance.
    """
    if machines is not None and len(set(machines)) > 1:
        variance, freedom, excess = logs.variance.copy(), logs.freedom.copy(), np.zeros_like(logs.freedom)
        for machine in dict.fromkeys(machines):
            members = [index for index, other in enumerate(machines) if other == machine]
            member_logs = Logs(logs.mean[members], logs.variance[members], logs.rounds[members], logs.freedom[members])
            moderated_logs = moderate(member_logs, weights[members], [residuals[index] for index in members])
            variance[members], freedom[members] = moderated_logs.variance, moderated_logs.freedom
            excess[members] = moderated_logs.excess
        return replace(logs, variance=variance, freedom=freedom, excess=excess)
    variances, freedom = logs.variance / weights, logs.freedom
    prior_freedom = np.array([prior.freedom if prior else 0.0 for prior in residuals], np.float64)
    expected = np.array([prior.variance if prior else 1.0 for prior in residuals], np.float64)
    # the group's residual includes the comparison's own launches, but only the other launches add information
    other_freedom = np.maximum(prior_freedom - freedom, 0.0)
    lent_freedom = np.minimum(other_freedom, _prior_freedom(variances, expected, freedom, other_freedom > 0.0))
    largest_freedom = np.maximum(lent_freedom, np.minimum(other_freedom, PRIOR_FREEDOM))
    # a variance may be small by chance, so it is at least the value with the largest weight of the prior
    moderated_variances = np.maximum(
        *((d0 * expected + freedom * variances) / (d0 + freedom) for d0 in (lent_freedom, largest_freedom))
    )
    # compare a variance with the residual of the other launches, because its own part would hide how large it is
    divisor = np.maximum(other_freedom, 1.0)
    other_variance = np.maximum(prior_freedom * expected - freedom * variances, RESOLUTION**2) / divisor
    probability = np.where(
        other_freedom > 0.0, f_survival(freedom, np.maximum(largest_freedom, 1.0), variances / other_variance), 1.0
    )
    is_unlikely = probability < (REJECTION_LEVEL if variances.size > 1 else SINGLE_REJECTION_LEVEL)
    kept_share = 1.0 - 1.0 / math.sqrt(max(1, variances.size))
    return replace(
        logs,
        variance=weights * np.where(is_unlikely, np.maximum(variances, moderated_variances), moderated_variances),
        freedom=freedom + np.where(is_unlikely, kept_share * lent_freedom, lent_freedom),
        excess=np.where(is_unlikely, np.sqrt(variances / other_variance), 0.0),
    )


def _prior_freedom(variances: Floats, expected: Floats, freedom: Floats, can_lend: NDArray[np.bool_]) -> Floats:
    """Return the degrees of freedom of each `expected` variance, estimated from the measured `variances`."""
    prior_freedom = np.full_like(variances, PRIOR_FREEDOM)
    is_counted = can_lend & (freedom >= FEWEST_FREEDOM)
    if is_counted.sum() < FEWEST:
        return prior_freedom
    # how well the residuals predict the variances
    estimate = weight(variances[is_counted] / expected[is_counted], freedom[is_counted])
    if estimate < PRIOR_FREEDOM:
        return np.where(is_counted, estimate, prior_freedom)
    is_counted &= freedom >= FEWEST_FREEDOM_FOR_MORE
    if is_counted.sum() >= FEWEST_FOR_MORE:
        # use a larger weight only if the variances themselves are similar too
        variance_sets = (variances[is_counted], variances[is_counted] / expected[is_counted])
        prior_freedom[is_counted] = max(
            PRIOR_FREEDOM, min(weight(variance_set, freedom[is_counted]) for variance_set in variance_sets)
        )
    return prior_freedom


def weight(variances: Floats, freedom: Floats) -> float:
    """Return d0, the degrees of freedom of a common variance, from the moments of log s² (Smyth 2004, section 6.2).

    Let e = log s² - ψ(d/2) + log(d/2). The variance of e, minus the mean of ψ'(d/2), is ψ'(d0/2). If the sample
    variances differ no more than if the true variances were equal, d0 is infinite.
    """
    logs = np.log(variances) - digamma(freedom / 2.0) + np.log(freedom / 2.0)
    excess = float(logs.var(ddof=1) - trigamma(freedom / 2.0).mean())
    return 2.0 * _inverse_trigamma(excess) if excess > 0.0 else math.inf


def _inverse_trigamma(value: float) -> float:
    """Return the y with ψ'(y) = `value` > 0, by Newton's method on 1/ψ' (Smyth 2004, appendix)."""
    # Smyth's limits: beyond them, the first terms of ψ' (1/y² + … and 1/y + 1/2y² + …) are exact to six digits
    if value > 1e7:
        return float(1.0 / np.sqrt(value))
    if value < 1e-6:
        return 0.5 + 1.0 / value
    y = 0.5 + 1.0 / value
    for _ in range(50):
        slope = float(trigamma(y))
        step = slope * (1.0 - slope / value) / float(tetragamma(y))
        y += step
        if -step / y < 1e-8:
            break
    return y
