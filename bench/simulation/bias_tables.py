"""Tables of the bias that the checks of a run find: the A/A control, and the check of interleaving."""

import math
from itertools import product

from bench.simulation.harness_rules import simulate_bias, simulate_controls
from bench.simulation.machine import Drift, Table, table
from bench.simulation.markdown import format_percent, print_table


def print_controls(tables: int, seed: int) -> None:
    """Print how exact the A/A control is, and how often a bias withholds the verdicts."""
    print("\n## A/A control\n")
    shifts = (0.0, 0.05, 0.10)
    rows = []
    for (groups, others), sigma, rounds in product(((1, 1), (1, 4), (3, 4)), (0.01, 0.025, 0.05), (2, 3, 4, 5)):
        kind = Table(groups, others, sigma, drift=Drift.LINEAR)
        checks = simulate_controls(kind, rounds, tables, [math.log1p(shift) for shift in shifts], seed=seed)
        wide = [
            f"± {format_percent(math.expm1(checks.half))}",
            format_percent(math.expm1(checks.least)),
            format_percent(checks.checked),
        ]
        launched = f"{groups} of {others + 2} launches"
        shown = (format_percent(checks.coverage), *wide, *map(format_percent, checks.lost))
        rows.append([launched, format_percent(sigma), str(rounds), *shown])
    heads = ["groups", "standard deviation of launches", "rounds", "coverage", "interval", "least bias", "a check"]
    print_table([*heads, *(f"{shift:.0%} slower" for shift in shifts)], rows)


def print_interleaving(tables: int, seed: int) -> None:
    """Print how often interleaving causes wrong verdicts, and how often its check finds the bias."""
    print("\n## Bias from interleaving\n")
    rows = []
    for comparisons, bias, alone, rounds in product((1, 16), (0.0, 0.03, 0.06, 0.10), (0.02, 0.05), (3, 5, 10)):
        kind = table(comparisons, 0.02, drift=Drift.PERIODIC, turns=True)
        figures = simulate_bias(kind, rounds, tables, math.log1p(bias), alone=alone, seed=seed)
        shown = (figures.wrong, figures.unchecked, figures.found)
        rows.append(
            [str(comparisons), format_percent(bias), format_percent(alone), str(rounds), *map(format_percent, shown)]
        )
    heads = [
        "comparisons",
        "interleaving changes a cell by",
        "standard deviation alone",
        "rounds",
        "wrong verdicts",
        "without the check",
    ]
    print_table([*heads, "bias found"], rows)
