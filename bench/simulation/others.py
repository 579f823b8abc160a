"""The rules of other tools, on the same simulated machine: two blocks, one after the other.

Each launch gives `SAMPLES` samples that scatter by 2 % around its centre, and these rules take every sample for an
independent one. pyperf calls two results different by Student's t test with pooled variance at 95 % (`pyperf
compare_to`); asv by the Mann-Whitney U test at 0.002, where the ratio of the medians is beyond 1.1 as well for `asv
compare` to mark it; and many a CI job by a ratio of means beyond a fixed threshold, here 7 %.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import mannwhitneyu, ttest_ind

from bench.simulation.machine import Floats, Table, blocks

SAMPLES = 10
WITHIN = 0.02


def pyperf(one: Floats, other: Floats) -> bool:
    """Student's two-sample t test with pooled variance, two-sided at 5 %."""
    return bool(ttest_ind(one, other).pvalue < 0.05)


def asv(one: Floats, other: Floats) -> bool:
    """Mann-Whitney at 0.002: what asv calls statistically significant."""
    return bool(mannwhitneyu(one, other).pvalue < 0.002)


def asv_compare(one: Floats, other: Floats) -> bool:
    """The same, and the medians' ratio beyond 1.1 as well: what `asv compare` marks by default."""
    return asv(one, other) and abs(math.log(float(np.median(one) / np.median(other)))) > math.log(1.1)


def fixed(one: Floats, other: Floats) -> bool:
    """A ratio of means beyond 7 %."""
    return abs(math.log(float(one.mean() / other.mean()))) > math.log(1.07)


RULES: dict[str, Callable[[Floats, Floats], bool]] = {
    "Student's t over two blocks (pyperf)": pyperf,
    "Mann-Whitney at 0.002 over two blocks (asv)": asv,
    "the same, and medians beyond 1.1 (asv compare)": asv_compare,
    "a fixed threshold of 7 % over two blocks": fixed,
}


def shares(table: Table, rounds: int, trials: int, *, seed: int) -> dict[str, float]:
    """By rule, how often it calls two cells different."""
    draw = np.random.default_rng(seed)
    called = dict.fromkeys(RULES, 0)
    for _ in range(trials):
        one, other = (_samples(centres, draw) for centres in blocks(table, rounds, draw))
        for name, rule in RULES.items():
            called[name] += rule(one, other)
    return {name: count / trials for name, count in called.items()}


def _samples(centres: Floats, draw: np.random.Generator) -> Floats:
    """Seconds of every sample of every launch, in units of a step's true time."""
    return np.exp((centres[:, None] + draw.normal(size=(centres.size, SAMPLES)) * WITHIN).ravel())
