"""Tables for runs that look at their results more than once: `--precision`, continued runs, and upstream claims."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from bench.simulation.cases import WORST, Case, Simulate, find_worst, list_spreads
from bench.simulation.harness_rules import MARGIN
from bench.simulation.looks import HEADLINE, at, simulate_continued, simulate_looks
from bench.simulation.machine import Against, Drift, Spread, Table, table
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.sizing import FIRST_LOOK_AT_CLAIMS, FIRST_LOOK_AT_LARGE
from harness.model.defaults import CLAIM_PRECISION


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
    print()
    kinds = list(product((0.01, 0.02, 0.03), (Spread.EQUAL, Spread.UNEQUAL), (0.01, 0.02)))
    rows = pool.map(partial(_format_saved, max(1, tables // 2), seed), kinds)
    heads = [
        "standard deviation of launches",
        "variability of cells",
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
    scatter = "alike" if spread is Spread.EQUAL else "each by its own"
    rounds = [f"{before:.1f}", format_percent(settled), f"{now:.1f}", format_percent(settled_now)]
    return [format_percent(sigma), scatter, f"± {format_percent(precision)}", *rounds]


#: The rounds after which a run's report is read. The run continues if a verdict is unclear.
READ = ((3, 8), (4, 10), (5, 10), (3, 4, 5, 6, 8, 10))


def print_continued(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print errors, coverage and power of runs that continue after somebody read their reports."""
    print("\n## Continued runs\n")
    kinds = list(product(READ, {1: (1, 1), 5: (1, 5), 13: (1, 13), 32: (8, 4)}.items()))
    rows = pool.map(partial(_format_continued, tables, seed), kinds)
    powers = [
        f"{difference:.0%} slower: {what}" for difference in (0.05, 0.10) for what in ("first", "last", "new run")
    ]
    heads = ["read after rounds", "comparisons", *WORST[:3], "intervals hold", "rounds", *powers]
    print_table(heads, rows)


def _format_continued(tables: int, seed: int, kind: tuple[Sequence[int], tuple[int, tuple[int, int]]]) -> list[str]:
    """Return wrong verdicts, coverage and rounds, each for the worst of three variabilities, and the power at 2 %."""
    looks, (comparisons, size) = kind
    count = max(1, round(tables * {1: 16.0, 5: 4.0}.get(comparisons, 2.0)))
    kinds = [*product((0.01, 0.02, 0.03), (0.0, MARGIN)), (0.02, at(0.05)), (0.02, at(0.10))]
    by_case = {
        (sigma, effect): simulate_continued(Table(*size, sigma, drift=Drift.PERIODIC), looks, count, effect, seed=seed)
        for sigma, effect in kinds
    }
    equal = max(figures.different for (_, effect), figures in by_case.items() if effect == 0.0)
    edges = [figures for (_, effect), figures in by_case.items() if effect == MARGIN]
    wrong = [equal, max(figures.same for figures in edges), max(figures.different for figures in edges)]
    rounds = sorted(figures.rounds for figures in by_case.values())
    powers = [by_case[0.02, at(difference)] for difference in (0.05, 0.10)]
    return [
        ", ".join(map(str, looks)),
        str(comparisons),
        *map(format_percent, wrong),
        format_percent(min(figures.together for figures in by_case.values())),
        f"{rounds[0]:.1f} to {rounds[-1]:.1f}",
        *(format_percent(share) for figures in powers for share in (figures.first, figures.settled, figures.new)),
    ]


def print_claims(simulate: Simulate) -> None:
    """Print the rounds and the coverage of runs for upstream claims."""
    print("\n## Stopping of claims\n")
    looks = (
        (FIRST_LOOK_AT_LARGE, CLAIM_PRECISION[1]),
        *((FIRST_LOOK_AT_CLAIMS, precision) for precision in (0.25, 0.1, 0.03)),
    )
    rows = [_format_claims(simulate, *look, sigma) for look, sigma in product(looks, (0.01, 0.03, 0.06, 0.10))]
    print_table(["precision", "first look", "standard deviation of launches", "rounds", "coverage"], rows)


def _format_claims(simulate: Simulate, first: int, precision: float, sigma: float) -> list[str]:
    """Return a row for at most thirty rounds of four launches each, one of which is compared with another."""
    cases = [
        Case(Table(1, 2, sigma, spread, drift, against=Against.ANOTHER, turns=True), 30, (0.0,), precision, first)
        for spread, drift in product((Spread.EQUAL, Spread.UNEQUAL), (Drift.NONE, Drift.PERIODIC))
    ]
    outcomes = simulate(cases, share=2.0)
    rounds, covered = sorted(figures.rounds for figures in outcomes), sorted(figures.coverage for figures in outcomes)
    ends = [f"{rounds[0]:.1f} to {rounds[-1]:.1f}", f"{format_percent(covered[0])} to {format_percent(covered[-1])}"]
    return [f"± {format_percent(precision)}", str(first), format_percent(sigma), *ends]
