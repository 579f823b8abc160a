"""Tables of wrong verdicts, coverage and power, on many kinds of machines."""

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from bench.simulation.cases import WORST, Case, Simulate, find_least, find_worst, list_spreads
from bench.simulation.harness_rules import MARGIN, Outcome, edge
from bench.simulation.machine import UNEXPECTED, Against, Drift, Mixture, Spread, Table, table
from bench.simulation.markdown import format_percent, print_table

SIGMAS = (0.01, 0.03, 0.10)
ROUNDS = (2, 3, 4, 5, 8, 20)
COMPARISONS = (1, 4, 16, 32, 128)
EFFECTS = (0.05, 0.10, 0.20)


def _list_kinds(comparisons: int) -> list[Table]:
    """Return tables with each variability and drift, and without the baseline with each variability."""
    return [
        table(comparisons, sigma, spread=spread, drift=drift, against=against, seen=seen)
        for sigma, (spread, seen) in product(SIGMAS, list_spreads(comparisons))
        for against, drift in [*((Against.REFERENCE, kind) for kind in Drift), (Against.ANOTHER, Drift.PERIODIC)]
    ]


def print_errors(simulate: Simulate) -> None:
    """Print the worst errors and coverage for each number of comparisons and rounds."""
    print("## Errors and coverage\n")
    print_table(
        ["comparisons", "rounds", *WORST], (_format_errors(simulate, *case) for case in product(COMPARISONS, ROUNDS))
    )


def _format_errors(simulate: Simulate, comparisons: int, rounds: int) -> list[str]:
    cases = [Case(kind, rounds, (0.0, edge(rounds))) for kind in _list_kinds(comparisons)]
    return [str(comparisons), str(rounds), *find_worst(simulate, cases, 0.5, 4.0)]


def print_kinds(simulate: Simulate) -> None:
    """Print errors and coverage if every third cell varies much more than the others."""
    print("\n## Configurations with different variability\n")
    kinds = list(product((True, False), (3.0, 5.0, 10.0), (1, 4, 32), (3, 5, 10)))
    cases = [
        Case(kind, rounds, (0.0, edge(rounds)))
        for shown, loud, comparisons, rounds in kinds
        for against in Against
        for kind in [table(comparisons, 0.02, spread=Spread.KINDS, against=against, loud=loud, seen=shown)]
    ]
    outcomes = simulate(cases, share=2.0)
    rows = []
    for (shown, loud, comparisons, rounds), *both in zip(kinds, outcomes[::2], outcomes[1::2], strict=True):
        worst = [
            max(figures.said[0].any_different for figures in both),
            max(figures.said[1].any_same for figures in both),
            max(figures.said[1].any_different for figures in both),
            min(figures.coverage for figures in both),
        ]
        samples = "for its launches and its samples" if shown else "for its launches only"
        rows.append(
            [f"{loud:.0f} times as much, {samples}", str(comparisons), str(rounds), *map(format_percent, worst)]
        )
    print_table(["standard deviation of every third cell", "comparisons", "rounds", *WORST[:4]], rows)


def print_noises(simulate: Simulate) -> None:
    """Print the worst errors and coverage for each noise that the statistics don't expect."""
    print("\n## Launches that aren't normally distributed\n")
    heads = [*WORST[:3], "own intervals", "own intervals, noisier cell", "all shown intervals contain their true ratio"]
    print_table(["noise", *heads], ([name, *_format_noise(simulate, changes)] for name, changes in UNEXPECTED.items()))


def _format_noise(simulate: Simulate, changes: Mapping[str, Any]) -> list[str]:
    """Return the worst values over 1 to 32 comparisons and three to five rounds.

    `3.0 % (1, 5)` is the value for one comparison and five rounds. True differences at the margin are simulated in both
    directions, because some noise isn't symmetric.
    """
    cases = [
        Case(table(comparisons, **{"sigma": 0.03, **changes}), rounds, (0.0, MARGIN, -MARGIN))
        for comparisons, rounds in product((1, 4, 16, 32), (3, 4, 5))
    ]
    measures: list[Callable[[Outcome], float]] = [
        lambda figures: -figures.said[0].any_different,
        lambda figures: -max(verdicts.any_same for verdicts in figures.said[1:]),
        lambda figures: -max(verdicts.any_different for verdicts in figures.said[1:]),
        lambda figures: figures.coverage,
        lambda figures: figures.worst,
        lambda figures: figures.together,
    ]
    extremes = find_least(simulate, cases, 0.5, 2.0, measures)
    shown = [f"{format_percent(abs(value))} ({case.table.comparisons}, {case.rounds})" for value, case in extremes]
    return [text if place != 4 or changes.get("spread") is Spread.ONE else "" for place, text in enumerate(shown)]


def print_power(simulate: Simulate) -> None:
    """Print how often differences of each size are found."""
    print("\n## Power\n")
    effects = (*(-math.log1p(effect) for effect in EFFECTS), 0.0)
    cases = [
        Case(table(comparisons, sigma, drift=Drift.LINEAR), rounds, effects)
        for comparisons, sigma, rounds in product((1, 16, 128), (0.01, 0.02, 0.03, 0.05, 0.10), (3, 5, 8, 20))
    ]
    rows = [
        [
            str(case.table.comparisons),
            format_percent(case.table.sigma),
            str(case.rounds),
            f"± {format_percent(math.expm1(figures.half))}",
            *(format_percent(verdicts.different) for verdicts in figures.said[:-1]),
            format_percent(figures.said[-1].same),
            format_percent(figures.lost),
        ]
        for case, figures in zip(cases, simulate(cases), strict=True)
    ]
    heads = ["comparisons", "standard deviation of launches", "rounds", "own 95 % interval"]
    print_table(
        [*heads, *(f"{effect:.0%} slower" for effect in EFFECTS), "equal: `same`", "control withholds all verdicts"],
        rows,
    )


def print_mixtures(simulate: Simulate) -> None:
    """Print errors and coverage if some launches are slower."""
    print("\n## One-sided mixtures\n")
    kinds = list(product(((0.5, 0.08), (0.2, 0.08), (0.1, 0.3)), (1, 4, 32), (3, 5, 8, 12, 20)))
    cases = [
        Case(table(comparisons, 0.005, mixture=Mixture(*mixture)), rounds, (0.0, MARGIN, -MARGIN))
        for mixture, comparisons, rounds in kinds
    ]
    rows = []
    for ((share, slower), comparisons, rounds), figures in zip(kinds, simulate(cases), strict=True):
        equal, *at_edge = figures.said
        wrong = (max(verdicts.any_same for verdicts in at_edge), max(verdicts.any_different for verdicts in at_edge))
        shown = map(format_percent, (equal.any_different, *wrong, figures.coverage, figures.outlying))
        rows.append([f"{share:.0%}", f"{slower:.0%}", str(comparisons), str(rounds), *shown])
    print_table(["launches that are slower", "by", "comparisons", "rounds", *WORST[:4], "report shows outliers"], rows)
