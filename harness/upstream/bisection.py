"""Where among ordered candidates a quantity steps, from paired rounds that are noisy: a Bayesian search.

Candidates are numbered in order, and one step lies between two neighbours. A paired round tells the difference of a
candidate and another that was measured beside it, the log of their ratio (or their plain difference, where a ratio
makes no sense). For a step of size d between the candidates k and k + 1 it is x d plus noise, where x is 1 if the first
lies beyond the step and the other before it, -1 the other way round, and 0 if both lie on one side.

d and the variance of the noise are unknown, and integrated over in closed form: d with a flat prior, the variance with
a scaled inverse chi-squared one that is worth `PRIOR` rounds (A. Gelman et al., "Bayesian Data Analysis", 3rd edition,
2013, sections 3.2 and 14.2). With n rounds, S = sum x y, X = sum x^2 and R = sum y^2 - S^2 / X that leaves

    p(k | rounds) ~ p(k) X^(-1/2) (PRIOR spread^2 + R)^(-(PRIOR + n - 1) / 2)

Which candidate tells most: the answer of a probe is whether it lies beyond the step, so with equal noise everywhere it
is the one whose chance of that is nearest to one half, the posterior's median (R. Waeber, P. I. Frazier and S. G.
Henderson, "Bisection search with noisy responses", SIAM Journal on Control and Optimization 51, 2013).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.statistics import LEVEL, Floats

#: Before any was seen, rounds scatter by this on the log scale, and that counts for as much as so many rounds.
SPREAD, PRIOR = 0.03, 3.0

#: A probe has as many rounds as make the step so many times as large as their mean's error, and no more than so many.
CLEAR, MOST_ROUNDS = 3.0, 3


@dataclass(frozen=True, slots=True)
class Round:
    """One paired round: `value` is what candidate `probe` has beyond candidate `fixed`, on the scale of the search."""

    fixed: int
    probe: int
    value: float


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is known of the step: `pairs` are known neighbours, and `shares`, which add up to 1, how likely each has it.

    Between the two of a pair lie only candidates that nothing can be known of. `step` is the step's size and `spread` a
    round's standard deviation, both the means over all pairs. `candidates` are those that can be measured.
    """

    candidates: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    shares: Floats
    step: float
    spread: float

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
        # a stable sort: of equals the one in the middle, and then the earlier
        middle = np.abs(np.arange(beyond.size) - (beyond.size - 1) / 2.0)
        order = np.lexsort((middle, np.abs(beyond - 0.5).round(9)))
        return [self.candidates[1 + int(at)] for at in order[:count]]

    def rounds(self) -> int:
        """How many rounds the next probe is worth: until its mean tells the step from noise, and three at most."""
        if self.step == 0.0:
            return MOST_ROUNDS
        wanted = (CLEAR * self.spread / abs(self.step)) ** 2
        return max(1, min(MOST_ROUNDS, math.ceil(wanted)))


def posterior(
    count: int, rounds: Sequence[Round], unknown: Collection[int] = (), *, spread: float = SPREAD
) -> Posterior:
    """What paired rounds tell of a step among `count` candidates, of which `unknown` cannot be measured.

    `spread` is what rounds scatter by, as far as that is known beforehand. Every place is as likely before; one beside
    unknown candidates counts for all the places that it stands for. Raises ValueError where the ends are unknown, or
    were not measured: without them nothing is known of the step.
    """
    candidates = [each for each in range(count) if each not in unknown]
    if count < 2 or candidates[:1] != [0] or candidates[-1:] != [count - 1]:
        raise ValueError("the ends of a search are two, and both can be measured")
    pairs = list(pairwise(candidates))
    known = [each for each in rounds if each.probe in candidates and each.fixed in candidates]
    values = np.array([each.value for each in known], np.float64)
    places = np.array([last for _, last in pairs])[:, None]
    probes, fixed = (np.array([getattr(each, name) for each in known]) for name in ("probe", "fixed"))
    # of shape (pairs, rounds)
    x = (probes >= places).astype(np.float64) - (fixed >= places)
    squares = (x**2).sum(axis=1)
    if not values.size or not squares.all():
        raise ValueError("the ends were not measured")
    steps = x @ values / squares
    rest = ((values - x * steps[:, None]) ** 2).sum(axis=1)
    freedom = PRIOR + values.size - 1.0
    variance = PRIOR * spread**2 + rest
    places_each = np.array([last - first for first, last in pairs], np.float64)
    logs = np.log(places_each) - 0.5 * np.log(squares) - 0.5 * freedom * np.log(variance)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    return Posterior(
        candidates=candidates,
        pairs=pairs,
        shares=shares,
        step=float(shares @ steps),
        spread=math.sqrt(float(shares @ (variance / freedom))),
    )
