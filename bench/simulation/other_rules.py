"""The rules of other tools on the same simulated machine, with two blocks of launches, one after the other.

Each launch gives `SAMPLES` samples with a standard deviation of 2 % around its mean. These rules treat all samples as
independent. pyperf uses Student's t test with pooled variance at 95 % (`pyperf compare_to`). asv uses the Mann-Whitney
U test at 0.002, and `asv compare` also requires that the ratio of the medians is beyond 1.1. Many CI jobs use a fixed
threshold for the ratio of means, here 7 %.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import mannwhitneyu, ttest_ind

from bench.simulation.harness_rules import outcome
from bench.simulation.machine import Drift, Floats, Table, blocks, table
from bench.simulation.markdown import format_percent, print_table

SAMPLES = 10
WITHIN = 0.02


def pyperf(one: Floats, other: Floats) -> bool:
    """Return whether Student's two-sample t test with pooled variance rejects equality, two-sided at 5 %."""
    return bool(ttest_ind(one, other).pvalue < 0.05)


def asv(one: Floats, other: Floats) -> bool:
    """Return whether the Mann-Whitney U test at 0.002 rejects equality, as asv requires."""
    return bool(mannwhitneyu(one, other).pvalue < 0.002)


def asv_compare(one: Floats, other: Floats) -> bool:
    """Return whether `asv compare` marks a difference by default: also, the ratio of the medians is beyond 1.1."""
    return asv(one, other) and abs(math.log(float(np.median(one) / np.median(other)))) > math.log(1.1)


def fixed(one: Floats, other: Floats) -> bool:
    """Return whether the ratio of the means is beyond 7 %."""
    return abs(math.log(float(one.mean() / other.mean()))) > math.log(1.07)


RULES: dict[str, Callable[[Floats, Floats], bool]] = {
    "Student's t over two blocks (pyperf)": pyperf,
    "Mann-Whitney at 0.002 over two blocks (asv)": asv,
    "the same, and medians beyond 1.1 (asv compare)": asv_compare,
    "a fixed threshold of 7 % over two blocks": fixed,
}


def shares(table: Table, rounds: int, trials: int, *, seed: int) -> dict[str, float]:
    """Return, for each rule, how often it reports a difference between two equal cells."""
    draw = np.random.default_rng(seed)
    called = dict.fromkeys(RULES, 0)
    for _ in range(trials):
        one, other = (_samples(centres, draw) for centres in blocks(table, rounds, draw))
        for name, rule in RULES.items():
            called[name] += rule(one, other)
    return {name: count / trials for name, count in called.items()}


def _samples(centres: Floats, draw: np.random.Generator) -> Floats:
    """Return the times of all samples of all launches, in units of a step's true time."""
    return np.exp((centres[:, None] + draw.normal(size=(centres.size, SAMPLES)) * WITHIN).ravel())


def print_other_rules(tables: int, seed: int) -> None:
    """Print the false alarms of each rule and of harness, for each drift."""
    print("\n## False alarms of other rules\n")
    rows: dict[str, list[str]] = {}
    for drift in Drift:
        kind = table(1, 0.02, drift=drift)
        for name, share in shares(kind, 10, tables, seed=seed).items():
            rows.setdefault(name, []).append(format_percent(share))
        (ours,) = outcome(kind, 10, tables, seed=seed).said
        rows.setdefault("interleaved rounds, interval beyond 3 % (harness)", []).append(
            format_percent(ours.any_different)
        )
    print_table(["rule", *(f"drift: {drift}" for drift in Drift)], [[name, *cells] for name, cells in rows.items()])
