"""Tables of regression alerts over years of nightly runs, which are independent or correlated."""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from functools import partial

import numpy as np

from bench.simulation.correlated import (
    COMPARED,
    COURSES,
    OTHERS,
    SERIES,
    Course,
    false_suspicions,
    found_after,
    inflations,
    rates,
)
from bench.simulation.correlated import shares as found_shares
from bench.simulation.markdown import print_table
from bench.simulation.nights import FIRST, NIGHTS, RULES, SOON, Kind, at_most, between, delays, false_count
from bench.simulation.whole_nights import Whole, whole


def print_nights(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print the results of whole histories, and how often each rule finds a step or reports a false alarm."""
    print("\n## Nightly runs\n")
    heads = [
        "nightly runs",
        "years of series",
        "false suspicions",
        "false alarms",
        "suspected within 5 nightly runs",
        "confirmed",
    ]
    print_table([*heads, "one issue", "edits"], _make_whole_rows(pool, max(1, 3 * tables // 50), seed))
    print()
    trials = {name: max(1, tables // 12 if "otava" in name else 4 * tables // 5) for name in RULES}
    kinds = [*((kind, 0.05, 1.0) for kind in (Kind.STILL, Kind.DRIFT, Kind.SPIKES, Kind.HOSTS))]
    kinds += [(Kind.DRIFT, 0.05, 2.0), (Kind.DRIFT, 0.10, 2.0)]
    heads = [f"{step:.0%}, {kind}{', twice the noise' if noise > 1.0 else ''}" for kind, step, noise in kinds]
    rows = ([name, *(_format_found(pool, name, trials[name], seed, kind) for kind in kinds)] for name in RULES)
    print_table(["rule", *heads], rows)
    print()
    print_table(["rule", "of", *Kind], _make_false_rows(pool, trials, seed))


def _make_whole_rows(pool: ProcessPoolExecutor, histories: int, seed: int) -> Iterator[list[str]]:
    by_kind = {kind: pool.map(partial(whole, kind, seed), range(histories)) for kind in Kind}
    for kind, wholes in by_kind.items():
        whole_sum = Whole(*(sum(values) for values in zip(*map(astuple, wholes), strict=True)))
        shares = [
            _format_share(count, whole_sum.changes)
            for count in (whole_sum.soon, whole_sum.confirmed, whole_sum.alarmed)
        ]
        yield [
            kind,
            f"{whole_sum.years:.0f}",
            str(whole_sum.false_suspicions),
            str(whole_sum.false_alarms),
            *shares,
            str(whole_sum.edits),
        ]


def _format_share(count: int, all_: int) -> str:
    """Format a count and the 95 % interval of its share: `58 of 60 (88 to 100 %)`."""
    low, high = between(count, all_)
    return f"{count} of {all_} ({100.0 * low:.0f} to {100.0 * high:.0f} %)"


def _split(trials: int) -> list[range]:
    return [range(first, min(first + 20, trials)) for first in range(0, trials, 20)]


def _make_false_rows(pool: ProcessPoolExecutor, trials: Mapping[str, int], seed: int) -> Iterator[list[str]]:
    for name in RULES:
        years = trials[name] * (NIGHTS - FIRST) / 365.0
        for series in ("ratios",) if name == "harness" else ("times", "ratios"):
            by_kind = {
                kind: pool.map(partial(false_count, name, series, kind, seed), _split(trials[name])) for kind in Kind
            }
            counts = [sum(parts) for parts in by_kind.values()]
            yield [name, series, *(f"{count / years:.2f} (at most {at_most(count) / years:.2f})" for count in counts)]


def _format_found(pool: ProcessPoolExecutor, name: str, trials: int, seed: int, case: tuple[Kind, float, float]) -> str:
    all_delays = [nights for part in pool.map(partial(delays, name, case, seed), _split(trials)) for nights in part]
    ordered = sorted(nights for nights in all_delays if nights is not None)
    soon = _format_share(sum(nights <= SOON for nights in ordered), trials)
    return f"{soon}, {len(ordered)} ever ({ordered[len(ordered) // 2] if ordered else '-'})"


def print_correlated(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    """Print false suspicions and found steps if successive nightly runs are correlated."""
    print("\n### Correlated nightly runs\n")
    # otava takes long
    months = {name: max(1, tables // 4 if "otava" in name else 2 * tables) for name in COMPARED}
    rows = {}
    for course in [*COURSES, *OTHERS]:
        suspicions = {
            name: pool.map(partial(false_suspicions, name, course, seed), _split(trials))
            for name, trials in months.items()
        }
        rows[str(course)] = {name: rates(sum(counts), months[name]) for name, counts in suspicions.items()}
    heads = ["nightly runs", "rule", *(f"{count:,} series" for count in SERIES), "months of a series per suspicion"]
    ours = list(COMPARED)[:2]
    print_table(heads, ([label, name, *cells[name]] for label, cells in rows.items() for name in ours))
    print()
    # the counts of each rule for the largest number of series
    print_table(
        ["nightly runs", *COMPARED], ([label, *(row[-2] for row in cells.values())] for label, cells in rows.items())
    )

    def found(case: Course, step: float) -> list[str]:
        by_name = {
            name: pool.map(partial(found_after, name, case, step, seed), _split(max(1, min(tables, trials))))
            for name, trials in months.items()
        }
        return [found_shares([nights for part in parts for nights in part]) for parts in by_name.values()]

    for step in (0.05, 0.10):
        print()
        print_table([f"+{step:.0%}", *COMPARED], ([str(kind), *found(kind, step)] for kind in COURSES))
    print()
    lengths = (9, 13, 20, 30, 60, 365)
    heads = ["lag-1 correlation", "factor", *(f"{nights} nightly runs" for nights in lengths)]
    print_table(heads, _make_inflation_rows(lengths, tables, seed))


def _make_inflation_rows(lengths: Sequence[int], trials: int, seed: int) -> Iterator[list[str]]:
    """Yield rows with the right factor for errors, and the median and the 90th percentile of the estimated factors."""
    for correlation in (0.0, 0.5, 0.8):
        quantiles = [np.quantile(inflations(correlation, nights, trials, seed), (0.5, 0.9)) for nights in lengths]
        needed = math.sqrt((1.0 + correlation) / (1.0 - correlation))
        yield [f"{correlation:g}", f"{needed:.1f}", *(f"{median:.1f} ({most:.1f})" for median, most in quantiles)]
