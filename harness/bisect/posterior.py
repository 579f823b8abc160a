"""The posterior of the position of a step among ordered candidates, from noisy paired rounds: a Bayesian search.

Candidates have numbers, and one step is between two of them. A paired round measures the difference of two candidates:
the log of their ratio, or their plain difference if a ratio makes no sense. If the step has size d and is between the
candidates k and k + 1, a round is

    y = x d + u(probe) - u(fixed) + noise

x is 1 if only the probe is after the step, -1 if only the fixed candidate is, and 0 otherwise. u is the own difference
of a candidate, because two releases never take exactly the same time. All rounds of a candidate have the same u, so
more rounds don't remove it. u is normally distributed, with a standard deviation from `OWN_DEVIATIONS`. Each of these
values is half as likely as the value before it.

d and the variance of the noise are unknown, and are integrated out in closed form. d has a flat prior. The variance has
a scaled inverse chi-squared prior that counts as `PRIOR` rounds (A. Gelman et al., "Bayesian Data Analysis", 3rd
edition, 2013, sections 3.2, 14.2 and 14.7). In units of the noise variance, the n rounds have the covariance matrix
W = N + (own / noise)^2 Z Z'. Z maps rounds to candidates. N is 1 on the diagonal, and 1/2 between rounds of a scan,
which share a launch. The noise in W is an estimate, from the prior and from rounds of the same two candidates. With
S = x' W^-1 y, X = x' W^-1 x and R = y' W^-1 y - S^2 / X, the posterior is

    p(k, own | rounds) ~ p(k) p(own) |W|^(-1/2) X^(-1/2) (PRIOR spread^2 + R)^(-(PRIOR + n - 1) / 2)

The next probe: measuring a candidate shows whether it is after the step. With equal noise, the best candidate is the
median of the posterior, whose probability b of that is nearest to 1/2 (R. Waeber, P. I. Frazier and S. G. Henderson,
"Bisection search with noisy responses", SIAM Journal on Control and Optimization 51, 2013). It has the largest
b (1 - b). With r = (own / noise)^2, n rounds of a candidate are worth 1/(r + 1/n). So b (1 - b) is multiplied by the
gain of one more round. If two candidates are about equally likely, the one with fewer rounds is next.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from harness.analysis.distributions import Floats
from harness.model.defaults import LEVEL

#: The prior standard deviation of a round on the log scale, and the number of rounds that the prior counts as.
SPREAD, PRIOR = 0.03, 3.0

#: Standard deviations of candidates' own differences, on the log scale. See bench/simulation/bisection.md.
OWN_DEVIATIONS = (0.0, 0.01, 0.02, 0.04)

#: A probe gets rounds until the step is `CLEAR` times the standard error of the rounds' mean, at most `MOST_ROUNDS`.
CLEAR, MOST_ROUNDS = 3.0, 3


@dataclass(frozen=True, slots=True)
class Round:
    """A paired round: `value` is the value of `probe` minus the value of `fixed`, on the scale of the search.

    `probe` and `fixed` are candidates. The rounds of a scan (`is_scan`) share one launch of `fixed`.
    """

    fixed: int
    probe: int
    value: float
    is_scan: bool = False


@dataclass(frozen=True, slots=True)
class Posterior:
    """The posterior of the step: `shares` are the probabilities of `pairs` of adjacent `candidates`, and add up to 1.

    `step` is the mean size of the step, and `spread` the mean standard deviation of a round. `gains` is the gain of one
    more round, for each candidate.
    """

    candidates: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    shares: Floats
    step: float
    spread: float
    gains: Floats

    @property
    def likeliest(self) -> tuple[int, int]:
        """Return the pair with the largest share."""
        return self.pairs[int(self.shares.argmax())]

    @property
    def share(self) -> float:
        """Return the largest share of a pair."""
        return float(self.shares.max())

    @property
    def is_found(self) -> bool:
        """Return whether one pair has a share of at least `LEVEL`."""
        return self.share >= LEVEL

    @property
    def likely_range(self) -> tuple[int, int]:
        """Return the first and last candidate of the shortest range that contains the step with probability `LEVEL`."""
        probabilities = dict(zip(self.candidates, self.beyond().tolist(), strict=True))
        ranges = combinations(self.candidates, 2)
        likely_pairs = [pair for pair in ranges if probabilities[pair[1]] - probabilities[pair[0]] >= LEVEL]
        return min(likely_pairs, key=lambda pair: pair[1] - pair[0])

    def beyond(self) -> Floats:
        """Return the probability that a candidate is after the step, for each candidate."""
        return np.concatenate([[0.0], np.cumsum(self.shares)])

    def next_probe(self) -> int:
        """Return the candidate that is most useful to measure next, without the ends."""
        probabilities = self.beyond()[1:-1]
        usefulness = probabilities * (1.0 - probabilities) * self.gains[1:-1]
        # a stable sort: of equal candidates, the middle one comes first, and then the earlier one
        middle = np.abs(np.arange(probabilities.size) - (probabilities.size - 1) / 2.0)
        return self.candidates[1 + int(np.lexsort((middle, -usefulness.round(9)))[0])]

    def rounds(self) -> int:
        """Return the number of rounds for the next probe. See `CLEAR` and `MOST_ROUNDS`."""
        if self.step == 0.0:
            return MOST_ROUNDS
        needed_rounds = (CLEAR * self.spread / abs(self.step)) ** 2
        return max(1, min(MOST_ROUNDS, math.ceil(needed_rounds)))


def posterior(
    candidates: Sequence[int], rounds: Sequence[Round], *, spread: float = SPREAD, unit: float = 1.0
) -> Posterior:
    """Return the posterior of the step among `candidates`. Their numbers ascend, and the first and last are the ends.

    `spread` is the prior standard deviation of a round, and `unit` the scale of `OWN_DEVIATIONS`, both on the scale of
    the search. Rounds of other candidates are left out. Every position has the same prior probability. If numbers are
    missing between two candidates, the pair has the probability of all their positions. Raises ValueError if there are
    fewer than two candidates, or if no rounds connect the ends.
    """
    if len(candidates) < 2:
        raise ValueError("a search needs two ends")
    pairs = list(pairwise(candidates))
    index = {number: position for position, number in enumerate(candidates)}
    (fixed, probes, scanned), counts, means, within = _pool_rounds(rounds, index)
    after = np.arange(1, len(candidates))[:, None]
    # shape: (pairs, means)
    x = (probes >= after).astype(np.float64) - (fixed >= after)
    if not counts.size or not x.any(axis=1).all():
        raise ValueError("the ends were not measured")
    noise = (PRIOR * spread**2 + within) / (PRIOR + counts.sum() - counts.size)
    ratios = (np.array(OWN_DEVIATIONS) * unit) ** 2 / noise
    contrasts = np.eye(len(candidates))[probes] - np.eye(len(candidates))[fixed]
    # shape from here on: (owns, …)
    noises = np.where(np.eye(counts.size, dtype=bool), 1.0 / counts, 0.5 * np.outer(scanned, scanned))
    covariances = noises + ratios[:, None, None] * (contrasts @ contrasts.T)
    inverses = np.linalg.inv(covariances)
    step_weights = x @ inverses
    squares = (step_weights * x).sum(axis=2)
    steps = step_weights @ means / squares
    residuals = means - x * steps[:, :, None]
    residual_sums = within + ((residuals @ inverses) * residuals).sum(axis=2)
    freedom = PRIOR + counts.sum() - 1.0
    variances = PRIOR * spread**2 + residual_sums
    lengths = np.array([last - first for first, last in pairs], np.float64)
    priors = np.log(lengths) - math.log(2.0) * np.arange(len(OWN_DEVIATIONS))[:, None]
    determinants = np.linalg.slogdet(covariances)[1][:, None]
    logs = priors - 0.5 * (determinants + np.log(squares) + freedom * np.log(variances))
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    ratio = float(shares.sum(axis=1) @ ratios)
    round_counts = np.bincount(probes, counts, len(candidates)).astype(np.float64)
    return Posterior(
        candidates=candidates,
        pairs=pairs,
        shares=shares.sum(axis=0),
        step=float((shares * steps).sum()),
        spread=math.sqrt(float((shares * variances).sum()) / freedom),
        gains=_count_equivalent_rounds(round_counts + 1.0, ratio) - _count_equivalent_rounds(round_counts, ratio),
    )


def _pool_rounds(
    rounds: Sequence[Round], index: Mapping[int, int]
) -> tuple[npt.NDArray[np.int64], Floats, Floats, float]:
    """Pool the rounds of the same two candidates, which have one row of W, for their mean.

    Return the fixed candidates, probes and scans (shape (3, means)), the numbers of rounds, their means, and the rest
    of their variance. `index` contains the positions of the candidates.
    """
    values: dict[tuple[int, int, bool], list[float]] = defaultdict(list)
    for entry in rounds:
        if entry.probe in index and entry.fixed in index:
            values[index[entry.fixed], index[entry.probe], entry.is_scan].append(entry.value)
    means = np.array([math.fsum(group) / len(group) for group in values.values()])
    within = math.fsum(
        (value - mean) ** 2 for mean, group in zip(means, values.values(), strict=True) for value in group
    )
    counts = np.array([len(group) for group in values.values()], np.float64)
    return np.array(list(values), np.int64).reshape(-1, 3).T, counts, means, within


def _count_equivalent_rounds(rounds: Floats, ratio: float) -> Floats:
    """Return the number of rounds without own differences that give as much information; shape (candidates,)."""
    return np.asarray(rounds / (1.0 + ratio * rounds))
