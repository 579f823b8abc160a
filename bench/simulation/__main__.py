"""`make simulate`, `make simulate ARGS="--tables 100"`: print the tables of bench/simulation/README.md."""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from bench.simulation.bias_tables import print_controls, print_interleaving
from bench.simulation.bisection import print_searches
from bench.simulation.cases import Simulate, simulate_cases
from bench.simulation.confirmations import print_confirmations
from bench.simulation.growth import print_growth
from bench.simulation.nightly_tables import print_correlated, print_nights
from bench.simulation.other_rules import print_other_rules
from bench.simulation.percentiles import print_percentiles
from bench.simulation.settling import print_settling
from bench.simulation.sharing import print_correction_errors, print_wrong_corrections
from bench.simulation.stopping_tables import print_claims, print_continued, print_saved, print_stopping
from bench.simulation.trends import print_trends
from bench.simulation.verdict_tables import print_errors, print_kinds, print_mixtures, print_noises, print_power

#: Prints one part, with a number of tables or trials and a seed.
Part = Callable[[ProcessPoolExecutor, int, int], None]


def main() -> None:
    """Simulate, and print all parts or one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", type=int, default=250, help="the number of tables of 16 comparisons per kind of machine"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, help="print only this part")
    arguments = parser.parse_args()
    tables, seed = arguments.tables, arguments.seed
    if not arguments.only:
        print(f"From `make simulate`: {tables} tables of 16 comparisons per kind, and more smaller tables.\n")
    with ProcessPoolExecutor() as pool:
        for name in [arguments.only] if arguments.only else PARTS:
            PARTS[name](pool, tables, seed)


def _make_table_part(*parts: Callable[[Simulate], None]) -> Part:
    """Return a part that simulates tables."""

    def part(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
        for section in parts:
            section(partial(simulate_cases, pool, tables, seed))

    return part


def _print_looks(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    print_stopping(partial(simulate_cases, pool, tables, seed))
    print_saved(pool, tables, seed)
    print_continued(pool, tables, seed)


def _print_contention(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    print_correction_errors(4 * tables, seed)
    print_wrong_corrections(tables, seed)


def _make_single_part(function: Callable[[int, int], None], factor: int = 1) -> Part:
    """Return a part that needs no other processes, and simulates `factor` times as many trials."""
    return lambda pool, tables, seed: function(factor * tables, seed)


#: The parts by their names for `--only`, in the order in which they are printed.
PARTS: dict[str, Part] = {
    "errors": _make_table_part(print_errors),
    "kinds": _make_table_part(print_kinds),
    "noises": _make_table_part(print_noises),
    "looks": _print_looks,
    "claims": print_claims,
    "power": _make_table_part(print_power),
    "mixtures": _make_table_part(print_mixtures),
    "nights": print_nights,
    "confirmations": lambda pool, tables, seed: print_confirmations(pool, 8 * tables, seed),
    "correlated": print_correlated,
    "searches": print_searches,
    "turns": _make_single_part(print_interleaving),
    "sharing": _print_contention,
    "trends": _make_single_part(print_trends, 4),
    "control": _make_single_part(print_controls, 4),
    "settling": _make_single_part(print_settling),
    "others": _make_single_part(print_other_rules),
    "growth": _make_single_part(print_growth, 4),
    "percentiles": _make_single_part(print_percentiles, 2),
}


if __name__ == "__main__":
    main()
