"""Where among ordered candidates a quantity steps, from paired rounds that are noisy: a Bayesian search.

Candidates are numbered in order, and one step is between two neighbours. A paired round shows the difference of a
candidate and another that was measured beside it: the log of their ratio (or their plain difference, if a ratio makes
no sense). For a step of size d between the candidates k and k + 1 that is

    y = x d + u(probe) - u(fixed) + noise

x is 1 if the first is beyond the step and the other before it, -1 the other way round, and 0 if both are on one side.
u is what a candidate differs by of its own: two releases never take exactly as long. It is the same in all rounds of a
candidate, so more rounds don't take it away. It is normal with a standard deviation that is one of `OWNS`, each half as
likely as the one before.

d and the variance of the noise are unknown, and integrated over in closed form: d with a flat prior, the variance with
a scaled inverse chi-squared one that is worth `PRIOR` rounds (A. Gelman et al., "Bayesian Data Analysis", 3rd edition,
2013, sections 3.2, 14.2 and 14.7). In units of the noise's variance, the n rounds have the covariance matrix
W = N + (own / noise)^2 Z Z'. Z says which candidates each round is of, and N is 1 on the diagonal and 1/2 between
rounds of a scan, which share a launch. The noise in W alone is an estimate, from the prior and rounds of the same two
candidates. With S = x' W^-1 y, X = x' W^-1 x and R = y' W^-1 y - S^2 / X that leaves

    p(k, own | rounds) ~ p(k) p(own) |W|^(-1/2) X^(-1/2) (PRIOR spread^2 + R)^(-(PRIOR + n - 1) / 2)

Which candidate to measure next: a probe answers whether it is beyond the step, so with equal noise everywhere it is the
one whose chance b of that is nearest to one half, the posterior's median (R. Waeber, P. I. Frazier and S. G. Henderson,
"Bisection search with noisy responses", SIAM Journal on Control and Optimization 51, 2013). That is the largest
b (1 - b). With r = (own / noise)^2, n rounds of a candidate are worth 1/(r + 1/n), so the product of b (1 - b) and of
what one more round adds to that decides: of neighbours that are about as likely, one that was measured less.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.statistics import Floats
from harness.model.defaults import LEVEL

#: Before any was seen, rounds scatter by this on the log scale, and that counts for as much as so many rounds.
SPREAD, PRIOR = 0.03, 3.0

#: What candidates may differ by of their own (standard deviations, log scale). docs/dev/validation/simulation.md has
#: what comes of it.
OWNS = (0.0, 0.01, 0.02, 0.04)

#: A probe has as many rounds as make the step so many times as large as their mean's error, and no more than so many.
CLEAR, MOST_ROUNDS = 3.0, 3


@dataclass(frozen=True, slots=True)
class Round:
    """One paired round: `value` is what candidate `probe` has beyond candidate `fixed`, on the scale of the search.

    `is_scan`: all such rounds share one launch of `fixed`.
    """

    fixed: int
    probe: int
    value: float
    is_scan: bool = False


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is known of the step: `pairs` are known neighbours, and `shares`, which add up to 1, how likely each has it.

    Between the two of a pair lie only candidates that nothing can be known of. `step` is the step's size and `spread` a
    round's standard deviation, both the means over all pairs. `candidates` are those that can be measured, and `gains`
    how much one more round of each would add.
    """

    candidates: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    shares: Floats
    step: float
    spread: float
    gains: Floats

    @property
    def likeliest(self) -> tuple[int, int]:
        """The pair that is most likely to have the step."""
        return self.pairs[int(self.shares.argmax())]

    @property
    def share(self) -> float:
        """How likely that pair has it."""
        return float(self.shares.max())

    @property
    def is_found(self) -> bool:
        """Whether 95 % lie on one pair."""
        return self.share >= LEVEL

    def beyond(self) -> Floats:
        """Of each candidate how likely it lies beyond the step."""
        return np.concatenate([[0.0], np.cumsum(self.shares)])

    def next_probes(self, count: int = 1) -> list[int]:
        """The candidates that tell most when they are measured next, the best first; no ends, for they are known."""
        beyond = self.beyond()[1:-1]
        worth = beyond * (1.0 - beyond) * self.gains[1:-1]
        # a stable sort: of equals the one in the middle, and then the earlier
        middle = np.abs(np.arange(beyond.size) - (beyond.size - 1) / 2.0)
        order = np.lexsort((middle, -worth.round(9)))
        return [self.candidates[1 + int(at)] for at in order[:count]]

    def rounds(self) -> int:
        """How many rounds the next probe is worth: until its mean tells the step from noise, and three at most."""
        if self.step == 0.0:
            return MOST_ROUNDS
        wanted = (CLEAR * self.spread / abs(self.step)) ** 2
        return max(1, min(MOST_ROUNDS, math.ceil(wanted)))


def posterior(
    count: int, rounds: Sequence[Round], unknown: Collection[int] = (), *, spread: float = SPREAD, unit: float = 1.0
) -> Posterior:
    """Return what paired rounds show of a step among `count` candidates, of which `unknown` can't be measured.

    `spread` is the standard deviation of a round as far as it is known beforehand, and `unit` what `OWNS` are shares
    of, both on the scale of the search. Every place is as likely before; one beside unknown candidates counts for all
    the places that it stands for. Raises ValueError if the ends are unknown, or were not measured: without them nothing
    is known of the step.
    """
    candidates = [each for each in range(count) if each not in unknown]
    if count < 2 or candidates[:1] != [0] or candidates[-1:] != [count - 1]:
        raise ValueError("the ends of a search are two, and both can be measured")
    pairs = list(pairwise(candidates))
    values: dict[tuple[int, int, bool], list[float]] = defaultdict(list)
    for each in rounds:
        if each.probe in candidates and each.fixed in candidates:
            values[each.fixed, each.probe, each.is_scan].append(each.value)
    # rounds of the same two candidates enter by their mean, which W has a row for, and what they differ from it by
    fixed, probes, scanned = np.array(list(values), np.int64).reshape(-1, 3).T
    counts = np.array([len(each) for each in values.values()], np.float64)
    means = np.array([math.fsum(each) / len(each) for each in values.values()])
    within = math.fsum((value - mean) ** 2 for mean, each in zip(means, values.values(), strict=True) for value in each)
    places = np.array([last for _, last in pairs])[:, None]
    # of shape (pairs, means)
    x = (probes >= places).astype(np.float64) - (fixed >= places)
    if not counts.size or not x.any(axis=1).all():
        raise ValueError("the ends were not measured")
    noise = (PRIOR * spread**2 + within) / (PRIOR + counts.sum() - counts.size)
    ratios = (np.array(OWNS) * unit) ** 2 / noise
    apart = np.eye(count)[probes] - np.eye(count)[fixed]
    # from here on of shape (owns, …)
    noises = np.where(np.eye(counts.size, dtype=bool), 1.0 / counts, 0.5 * np.outer(scanned, scanned))
    covariances = noises + ratios[:, None, None] * (apart @ apart.T)
    inverses = np.linalg.inv(covariances)
    weighted = x @ inverses
    squares = (weighted * x).sum(axis=2)
    steps = weighted @ means / squares
    left = means - x * steps[:, :, None]
    rest = within + ((left @ inverses) * left).sum(axis=2)
    freedom = PRIOR + counts.sum() - 1.0
    variances = PRIOR * spread**2 + rest
    lengths = np.array([last - first for first, last in pairs], np.float64)
    priors = np.log(lengths) - math.log(2.0) * np.arange(len(OWNS))[:, None]
    determinants = np.linalg.slogdet(covariances)[1][:, None]
    logs = priors - 0.5 * (determinants + np.log(squares) + freedom * np.log(variances))
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    ratio = float(shares.sum(axis=1) @ ratios)
    measured = np.bincount(probes, counts, count)[candidates].astype(np.float64)
    return Posterior(
        candidates=candidates,
        pairs=pairs,
        shares=shares.sum(axis=0),
        step=float((shares * steps).sum()),
        spread=math.sqrt(float((shares * variances).sum()) / freedom),
        gains=_worth(measured + 1.0, ratio) - _worth(measured, ratio),
    )


def _worth(rounds: Floats, ratio: float) -> Floats:
    """Return what so many rounds of each candidate are worth, in rounds of one without a difference of its own."""
    return np.asarray(rounds / (1.0 + ratio * rounds))
