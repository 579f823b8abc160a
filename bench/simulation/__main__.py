"""`make simulate`, `make simulate ARGS="--tables 100"`: print the tables of docs/dev/validation/simulation.md."""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, replace
from functools import partial
from itertools import product
from typing import Any

from bench.simulation import percentiles
from bench.simulation.bias_tables import print_controls, print_interleaving
from bench.simulation.bisection import End, SearchKind, SearchResults, search
from bench.simulation.cases import Simulate, simulate_cases
from bench.simulation.growth import ALLOCATORS, CALLS, LEAK, least_squares, ours, simulate_growth
from bench.simulation.harness_rules import outcome
from bench.simulation.machine import Drift, Spread, Table, table
from bench.simulation.markdown import format_percent, print_table
from bench.simulation.nightly_tables import print_correlated, print_nights
from bench.simulation.other_rules import shares
from bench.simulation.settling import settled_share, suggestions
from bench.simulation.sharing import KINDS, LOADS, Shared, Varies, Wrong, simulate_launches, simulate_tables
from bench.simulation.stopping_tables import print_claims, print_continued, print_saved, print_stopping
from bench.simulation.trends import NOISES, Group, false_trends, in_turns, one_after_the_other, seen
from bench.simulation.verdict_tables import print_errors, print_kinds, print_mixtures, print_noises, print_power
from harness.analysis.quantities import PIECE, slope
from harness.model.scenario import PERCENTILES

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


def _print_growth(runs: int, seed: int) -> None:
    print("\n## Memory growth\n")
    margin = PIECE / float(CALLS[-1] / 2.0)
    rows = []
    for name, allocator in ALLOCATORS.items():
        for leak in (0.0, LEAK):
            ways = [
                simulate_growth(allocator, leak, 5, runs, seed, fit=fit, margin=margin)
                for fit in (ours, slope, least_squares)
            ]
            numbers = [text for way in ways for text in (f"{round(way.mean):,} B", format_percent(way.covered))]
            ours_too = [format_percent(ways[0].found), format_percent(ways[0].apart)]
            rows.append([name, f"{leak:,.0f} B", *numbers[:2], *ours_too, *numbers[2:]])
    heads = [
        "reported",
        "the interval contains it",
        "reported as growth",
        "control",
        "over all calls",
        "contains it",
        "by least squares",
        "contains it",
    ]
    print_table(["memory", "kept per call", *heads], rows)


def _print_percentiles(runs: int, seed: int) -> None:
    print("\n## Percentiles\n")
    rows = []
    for (name, machine), (of, share) in product(percentiles.MACHINES.items(), PERCENTILES.items()):
        found = [percentiles.coverage(machine, share, launches, runs, seed) for launches in (3, 5, 10)]
        ways = ([getattr(one, way) for one in found] for way in ("launches", "bootstrap"))
        rows.append([name, of, *(" / ".join(format_percent(share) for share in way) for way in ways)])
    heads = ["t interval, 3 / 5 / 10 launches", "bootstrap, 3 / 5 / 10 launches"]
    print_table(["machine", "of", *heads], rows)


def _print_settling(tables: int, seed: int) -> None:
    print("\n## Rounds to settle an unclear comparison\n")
    heads = ["comparisons", "variability of cells", "rounds", "unclear", "a number is reported", "this number settles"]
    kinds = product((Spread.EQUAL, Spread.UNEQUAL), (1, 13), (3, 5))
    rows = (_format_settling(*kind, tables, seed) for kind in kinds)
    print_table([*heads, "otherwise: probability reported", "200 rounds settle"], rows)


def _format_settling(spread: Spread, comparisons: int, rounds: int, tables: int, seed: int) -> list[str]:
    kind, count = Table(1, comparisons, 0.03, spread=spread), tables * 10 if comparisons == 1 else tables
    entries = suggestions(kind, rounds, count, within=math.log1p(0.12), seed=seed)
    numbers, others = (
        [entry for entry in entries if entry.is_number],
        [entry for entry in entries if not entry.is_number],
    )
    expected = sum(entry.probability for entry in others) / max(1, len(others))
    return [
        str(comparisons),
        "alike" if spread is Spread.EQUAL else "each cell differently (a third of that to three times as much)",
        str(rounds),
        f"{len(entries):,}",
        *map(format_percent, (len(numbers) / len(entries), settled_share(numbers), expected, settled_share(others))),
    ]


def _print_trends(cells: int, seed: int) -> None:
    print("\n## Trends within a launch\n")
    counts, lengths = (1, 2, 3, 5, 10, 20), (3, 10, 30, 200)
    rows = [
        [
            noise,
            *(
                format_percent(max(false_trends(noise, n, length, cells, seed=seed) for length in lengths))
                for n in counts
            ),
        ]
        for noise in NOISES
    ]
    rows.append(
        [
            "turns on a machine that slows by 20 % in each round",
            *(format_percent(max(in_turns(0.2, n, length, cells, seed=seed) for length in lengths)) for n in counts),
        ]
    )
    print_table(["what the machine does", *(f"launches: {n}" for n in counts)], rows)
    print()
    kinds = list(product((0.1, 0.3, 1.0, 5.0), ("white", "drift of 10 %", "drift of 40 %")))
    rows = [
        [f"{growth:.0%}", noise, *(format_percent(seen(growth, noise, n, 30, cells // 4, seed=seed)) for n in counts)]
        for growth, noise in kinds
    ]
    print_table(["step gets slower by", "what the machine does", *(f"launches: {n}" for n in counts)], rows)
    print()
    rows = [
        [
            str(count),
            f"{falls:.0%}",
            *(format_percent(_simulate_falls(Group(count, falls), n, cells, seed)[0]) for n in (3, 5)),
        ]
        for count, falls in product((1, 2, 3, 6, 12), (0.04, 0.06, 0.20))
    ]
    print_table(["cells of the group", "the clock falls by", *(f"launches: {n}" for n in (3, 5))], rows)
    print()
    rows = []
    for (members, growing), falls, grows in product(
        ((1, 1), (2, 1), (3, 1), (3, 2), (6, 1), (6, 2)), (0.0, 0.06), (0.1, 0.2)
    ):
        pairs = [_simulate_falls(Group(members, falls, growing, grows), n, cells // 2, seed) for n in (3, 5)]
        shares = [format_percent(share) if members > growing else "-" for share, _ in pairs] + [
            format_percent(share) for _, share in pairs
        ]
        rows.append([f"{growing} of {members}", f"{grows:.0%}", f"{falls:.0%}", *shares])
    heads = [f"{which}: {n} launches" for which in ("unchanged cells marked", "marked") for n in (3, 5)]
    print_table(["cells that get slower", "by", "the clock falls by", *heads], rows)


def _simulate_falls(group: Group, launches: int, cells: int, seed: int) -> tuple[float, float]:
    """Return the shares of cells with a detected trend, from this total number of cells and 20 samples per launch."""
    return one_after_the_other(group, launches, 20, max(1, cells // group.cells), seed=seed)


def _print_sharing(launches: int, seed: int) -> None:
    print("\n## Accuracy of the CPU contention correction\n")
    rows = []
    for (step, kind), (load, others), turns in product(KINDS.items(), LOADS.items(), (12, 30)):
        figures = simulate_launches(kind, others, turns, launches, seed)
        by_clock = f"{figures.off_by_clock:+.1%} ± {figures.spread_by_clock:.1%}"
        judged = f"{figures.off:+.1%} ± {figures.spread:.1%}"
        rows.append([step, load, str(turns), by_clock, judged, f"{figures.least:+.1%} to {figures.most:+.1%}"])
    print_table(
        [
            "the step",
            "other processes",
            "turns",
            "error of the wall-clock time",
            "error of the corrected time",
            "subtracted too much",
        ],
        rows,
    )


def _print_contention(tables: int, seed: int) -> None:
    print("\n## A wrong correction for CPU contention\n")
    effects, sizes = (0.10, 0.20, 0.50), ((1, 3), (16, 3), (16, 5))
    kinds = [*product((0.1, 0.3, 0.5), [Varies.STEADY], Wrong, sizes)]
    kinds += product([0.3], [Varies.ROUNDS, Varies.LAUNCHES], Wrong, sizes[1:])
    rows = []
    for share, varies, wrong, (comparisons, rounds) in kinds:
        count = 4 * tables if comparisons == 1 else tables
        kind = table(comparisons, 0.02, turns=True)
        before, after, error = simulate_tables(kind, rounds, count, Shared(share, varies, wrong), effects, seed=seed)
        both = zip((*astuple(before)[:3], *before.found), (*astuple(after)[:3], *after.found), strict=True)
        shown = [f"{format_percent(one)} → {format_percent(two)}" for one, two in both]
        rows.append([f"{share:.0%}, {varies}", wrong, str(comparisons), str(rounds), format_percent(error), *shown])
    heads = [
        "CPU share lost",
        "what is subtracted",
        "comparisons",
        "rounds",
        "wider by",
        "false alarms",
        "wrong difference",
    ]
    print_table([*heads, "coverage", *(f"{effect:.0%} slower" for effect in effects)], rows)


def _print_other_rules(tables: int, seed: int) -> None:
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


def _print_searches(pool: ProcessPoolExecutor, trials: int, seed: int) -> None:
    print("\n## Bisection\n")
    releases, wheels = SearchKind(26, scanned=True), SearchKind(166)
    sizes = list(product((releases, wheels), (0.0, 0.05, 0.10, 0.50, 9.0), (0.01, 0.03, 0.06)))
    kinds = [replace(kind, step=math.log1p(step), spread=spread) for kind, step, spread in sizes]
    outcomes, plain = (pool.map(partial(search, trials=trials, seed=seed, plain=rounds), kinds) for rounds in (0, 5))
    heads = ["candidates", "step", "standard deviation of a round", *END_HEADS, "plain bisection: right"]
    rows = (
        [
            *_format_search(kind),
            f"{kind.spread:.0%}",
            *_format_ends(one),
            f"{format_percent(other.right)} in {_format_median(other.launches)}",
        ]
        for kind, one, other in zip(kinds, outcomes, plain, strict=True)
    )
    print_table(heads, rows)
    print()
    owns = [
        (label, replace(base, step=math.log1p(step), **dict(changes)))
        for base, step, (label, changes) in product(
            (releases, replace(releases, scanned=False)), (0.2, 0.1, 0.05), OWNS.items()
        )
    ]
    outcomes = pool.map(partial(search, trials=trials, seed=seed), [kind for _, kind in owns])
    rows = (
        [*_format_search(kind), label, *_format_ends(figures)]
        for (label, kind), figures in zip(owns, outcomes, strict=True)
    )
    print_table(["candidates", "step", "other differences", *END_HEADS], rows)


#: The headings of the columns that show how searches ended.
END_HEADS = ["right", "wrong", "right, with a warning", "wrong, with a warning", "refused", "rounds", "launches"]

#: Other differences between releases than the step, by name. Rounds have a standard deviation of 3 %.
OWNS: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "Student's t, 3 degrees of freedom": {"heavy": True},
    "each ± 1 % at random": {"own": 0.01},
    "each ± 2 % at random": {"own": 0.02},
    "a drift of 1 % each": {"own": 0.01, "drifts": True},
}


def _format_search(kind: SearchKind) -> list[str]:
    step = math.exp(kind.step)
    return [f"{kind.count}{', scanned' if kind.scanned else ''}", f"×{step:g}" if step >= 2.0 else f"{step - 1.0:.0%}"]


def _format_ends(figures: SearchResults) -> list[str]:
    return [
        *(format_percent(figures.ends[end]) for end in End),
        _format_median(figures.rounds),
        _format_median(figures.launches),
    ]


def _format_median(counts: Sequence[int]) -> str:
    """Format the median and the 95th percentile: `16 (37)`."""
    ordered = sorted(counts)
    return f"{ordered[len(ordered) // 2]} ({ordered[math.ceil(0.95 * len(ordered)) - 1]})"


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


def _print_sharing_parts(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    _print_sharing(4 * tables, seed)
    _print_contention(tables, seed)


def _make_single_part(function: Callable[[int, int], None], factor: int = 1) -> Part:
    """Return a part that needs no other processes, and simulates `factor` times as many trials."""
    return lambda pool, tables, seed: function(factor * tables, seed)


#: The parts by their names for `--only`, in the order in which they are printed.
PARTS: dict[str, Part] = {
    "errors": _make_table_part(print_errors),
    "kinds": _make_table_part(print_kinds),
    "noises": _make_table_part(print_noises),
    "looks": _print_looks,
    "claims": _make_table_part(print_claims),
    "power": _make_table_part(print_power),
    "mixtures": _make_table_part(print_mixtures),
    "nights": print_nights,
    "correlated": print_correlated,
    "searches": _print_searches,
    "turns": _make_single_part(print_interleaving),
    "sharing": _print_sharing_parts,
    "trends": _make_single_part(_print_trends, 4),
    "control": _make_single_part(print_controls, 4),
    "settling": _make_single_part(_print_settling),
    "others": _make_single_part(_print_other_rules),
    "growth": _make_single_part(_print_growth, 4),
    "percentiles": _make_single_part(_print_percentiles, 2),
}


if __name__ == "__main__":
    main()
