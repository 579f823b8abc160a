"""Tables for runs that look at their results more than once: `--precision`, continued runs, and upstream claims."""

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from bench.simulation.cases import WORST, Case, Simulate, find_worst, list_spreads
from bench.simulation.harness_rules import MARGIN
from bench.simulation.looks import HEADLINE, at, simulate_claims, simulate_continued, simulate_looks
from bench.simulation.machine import Against, Drift, Spread, Table, table
from bench.simulation.markdown import format_percent, print_table
from harness.model.issues import parse
from harness.model.scenario import Claim, ClaimSide


def print_stopping(simulate: Simulate) -> None:
    """Print the worst errors and coverage of runs with `--precision`."""
    print("\n## Stopping with `--precision`\n")
    heads = ["comparisons", "standard deviation of launches", "rounds", *WORST]
    print_table(
        heads, (_format_stopping(simulate, *kind) for kind in product((1, 4, 16, 128), (0.01, 0.02, 0.03, 0.05)))
    )


def _format_stopping(simulate: Simulate, comparisons: int, sigma: float) -> list[str]:
    cases = [
        Case(table(comparisons, sigma, spread=spread, drift=drift, seen=seen), 60, (0.0, MARGIN), 0.02, settles=True)
        for (spread, seen), drift in product(list_spreads(comparisons), (Drift.STEPS, Drift.PERIODIC))
    ]
    rounds = [figures.rounds for figures in simulate(cases, share=0.05)]
    worst = find_worst(simulate, cases, 0.25, 1.0)
    return [str(comparisons), format_percent(sigma), f"{min(rounds):.0f} to {max(rounds):.0f}", *worst]


def print_saved(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print how many rounds a run needs if it also looks at verdicts, and not only at the widths of intervals."""
    print("\n## Rounds that early verdicts save\n")
    kinds = list(product((0.01, 0.02, 0.03), (Spread.EQUAL, Spread.UNEQUAL), (0.01, 0.02)))
    rows = pool.map(partial(_format_saved, max(1, tables // 2), seed), kinds)
    heads = [
        "standard deviation of launches",
        "variability of configurations",
        "precision",
        "rounds, by width alone",
        "settled",
        "rounds",
        "settled",
    ]
    print_table(heads, rows)


def _format_saved(tables: int, seed: int, kind: tuple[float, Spread, float]) -> list[str]:
    sigma, spread, precision = kind
    shape = Table(3, 4, sigma, spread, Drift.PERIODIC)
    before, settled, now, settled_now = simulate_looks(shape, 60, tables, -HEADLINE, precision, seed=seed)
    scatter = "equal" if spread is Spread.EQUAL else "unequal"
    rounds = [f"{before:.1f}", format_percent(settled), f"{now:.1f}", format_percent(settled_now)]
    return [format_percent(sigma), scatter, f"± {format_percent(precision)}", *rounds]


#: The rounds after which a run's report is read. The run continues if a verdict is unclear.
READ = ((3, 8), (4, 10), (5, 10), (3, 4, 5, 6, 8, 10))


def print_continued(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print errors, coverage and power of runs that continue after somebody read their reports."""
    print("\n## Continued runs\n")
    sizes = {"1": (1, 1), "5": (1, 5), "13": (1, 13), "32": (8, 4), "32, `--unsettled`": (8, 4)}
    kinds = list(product(READ, sizes.items()))
    rows = pool.map(partial(_format_continued, tables, seed), kinds)
    powers = [
        f"{difference:.0%} slower: {what}" for difference in (0.05, 0.10) for what in ("first", "last", "new run")
    ]
    heads = ["read after rounds", "comparisons", *WORST[:3], "intervals hold", "rounds", *powers]
    print_table(heads, rows)


def _format_continued(tables: int, seed: int, kind: tuple[Sequence[int], tuple[str, tuple[int, int]]]) -> list[str]:
    """Return wrong verdicts, coverage and rounds, each for the worst of three variabilities, and the power at 2 %."""
    looks, (comparisons, size) = kind
    unsettled = "unsettled" in comparisons
    count = max(1, round(tables * {"1": 16.0, "5": 4.0}.get(comparisons, 2.0)))
    kinds = [*product((0.01, 0.02, 0.03), (0.0, MARGIN)), (0.02, at(0.05)), (0.02, at(0.10))]
    by_case = {
        (sigma, effect): simulate_continued(
            Table(*size, sigma, drift=Drift.PERIODIC), looks, count, effect, unsettled=unsettled, seed=seed
        )
        for sigma, effect in kinds
    }
    equal = max(figures.different for (_, effect), figures in by_case.items() if effect == 0.0)
    edges = [figures for (_, effect), figures in by_case.items() if effect == MARGIN]
    wrong = [equal, max(figures.same for figures in edges), max(figures.different for figures in edges)]
    rounds = sorted(figures.rounds for figures in by_case.values())
    powers = [by_case[0.02, at(difference)] for difference in (0.05, 0.10)]
    return [
        ", ".join(map(str, looks)),
        comparisons,
        *map(format_percent, wrong),
        format_percent(min(figures.together for figures in by_case.values())),
        f"{rounds[0]:.1f} to {rounds[-1]:.1f}",
        *(format_percent(share) for figures in powers for share in (figures.first, figures.settled, figures.new)),
    ]


#: The smallest ratios of simulated claims. The largest is twice as large.
CLAIMED = (1.1, 1.5, 2.9, 3.0)


def print_claims(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print the wrong outcomes and the rounds of runs for upstream claims."""
    print("\n## Stopping of claims\n")
    kinds = list(product(CLAIMED, (0.01, 0.03, 0.06, 0.10)))
    rows = pool.map(partial(_format_claims, 2 * tables, seed), kinds)
    truths = ("1.03×", "at the bound", "the smallest claimed ratio")
    heads = [f"{truth}: {what}" for truth in truths for what in ("wrong", "clear", "rounds")]
    print_table(["claimed", "standard deviation of launches", *heads], rows)


def _format_claims(tables: int, seed: int, kind: tuple[float, float]) -> list[str]:
    """Return a row for at most thirty rounds of four launches each, one of which is compared with another."""
    low, sigma = kind
    claim = Claim(
        issue=parse("T#1"), reported="", worse=ClaimSide("tf2.1"), better=ClaimSide("tf2.0"), ratio=(low, 2 * low)
    )
    shown = [f"{low}×", format_percent(sigma)]
    for effect in (MARGIN, (math.log(low) + MARGIN) / 2.0, math.log(low)):
        runs = [
            simulate_claims(
                Table(1, 2, sigma, spread, drift, against=Against.ANOTHER, turns=True),
                claim,
                30,
                tables,
                effect,
                seed=seed,
            )
            for spread, drift in product((Spread.EQUAL, Spread.UNEQUAL), (Drift.NONE, Drift.PERIODIC))
        ]
        rounds, clear = sorted(run.rounds for run in runs), min(run.clear for run in runs)
        shown += [format_percent(max(run.wrong for run in runs)), format_percent(clear)]
        shown.append(f"{rounds[0]:.1f} to {rounds[-1]:.1f}")
    return shown
