"""`make simulate`, or `make simulate ARGS="--tables 100"`: the tables of docs/simulation.md, as Markdown."""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from typing import Protocol

from bench.simulation.bisection import search
from bench.simulation.growth import ALLOCATORS, CALLS, LEAK, least_squares, ours, told
from bench.simulation.machine import Against, Drift, Mixture, Noise, Spread, Table, table
from bench.simulation.nights import (
    FIRST,
    NIGHTS,
    RULES,
    SOON,
    Kind,
    Whole,
    at_most,
    between,
    delays,
    false_count,
    whole,
)
from bench.simulation.others import shares
from bench.simulation.ours import MARGIN, Outcome, controls, edge, moved, outcome
from bench.simulation.settling import settled_share, suggestions
from bench.simulation.sharing import KINDS, LOADS, corrected
from bench.simulation.trends import NOISES, false_trends, in_turns, seen
from harness.analysis.quantities import PIECE, slope
from harness.analysis.sizing import CLAIM_PRECISION, FIRST_LOOK, FIRST_LOOK_AT_CLAIMS, FIRST_LOOK_AT_LARGE

SIGMAS = (0.01, 0.03, 0.10)
ROUNDS = (2, 3, 4, 5, 8, 20)
COMPARISONS = (1, 4, 16, 32, 128)
EFFECTS = (0.05, 0.10, 0.20)


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of table to simulate, and the true log-ratios to judge it with."""

    table: Table
    rounds: int
    effects: Sequence[float]
    precision: float | None = None
    first: int = FIRST_LOOK


class Simulate(Protocol):
    """Simulate all cases, `share` times as many tables as usual, with the seed that is so many `later`."""

    def __call__(self, cases: Sequence[Case], *, share: float = 1.0, later: int = 0) -> list[Outcome]:
        """What came of each."""
        ...


def main() -> None:
    """Simulate, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=250, help="how many tables of 16 comparisons of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("nights", "sharing", "kinds", "settling", "control"), help="that part alone")
    arguments = parser.parse_args()
    if arguments.only == "sharing":
        _sharing(4 * arguments.tables, arguments.seed)
        return
    if arguments.only == "settling":
        _settling(arguments.tables, arguments.seed)
        return
    if arguments.only == "control":
        _controls(4 * arguments.tables, arguments.seed)
        return
    with ProcessPoolExecutor() as pool:
        simulate = partial(_all, pool, arguments.tables, arguments.seed)
        if arguments.only == "kinds":
            _kinds_of_cells(simulate)
            return
        if arguments.only:
            _nights(pool, arguments.tables, arguments.seed)
            return
        print(f"From `make simulate`: {arguments.tables} tables of 16 comparisons of a kind, more of smaller ones.\n")
        _right(simulate)
        _kinds_of_cells(simulate)
        _noises(simulate)
        _stopping(simulate)
        _claims(simulate)
        _power(simulate)
        _mixtures(simulate)
        _nights(pool, arguments.tables, arguments.seed)
    _turns(arguments.tables, arguments.seed)
    _sharing(4 * arguments.tables, arguments.seed)
    _trends(4 * arguments.tables, arguments.seed)
    _controls(4 * arguments.tables, arguments.seed)
    _settling(arguments.tables, arguments.seed)
    _others(arguments.tables, arguments.seed)
    _growth(4 * arguments.tables, arguments.seed)
    _searches(4 * arguments.tables, arguments.seed)


def _all(
    pool: ProcessPoolExecutor, tables: int, seed: int, cases: Sequence[Case], *, share: float = 1.0, later: int = 0
) -> list[Outcome]:
    return list(pool.map(partial(_one, tables=tables * share, seed=seed + later), cases))


def _one(case: Case, tables: float, seed: int) -> Outcome:
    # a small table is quick and says little about coverage
    count = max(1, round(tables * {1: 4.0, 4: 2.0, 128: 0.5}.get(case.table.comparisons, 1.0)))
    return outcome(
        case.table, case.rounds, count, seed=seed, effects=case.effects, precision=case.precision, first=case.first
    )


def _spreads(comparisons: int) -> list[tuple[Spread, bool]]:
    """How cells scatter, and whether their samples show it: all but the kinds, which have a table of their own."""
    several = [(Spread.GROUPS, True)] if comparisons > 1 else []
    return [(Spread.EQUAL, True), (Spread.UNEQUAL, True), (Spread.UNEQUAL, False), *several]


def _kinds(comparisons: int) -> list[Table]:
    """Every spread and drift; of comparisons without the reference, every spread."""
    return [
        table(comparisons, sigma, spread=spread, drift=drift, against=against, seen=seen)
        for sigma, (spread, seen) in product(SIGMAS, _spreads(comparisons))
        for against, drift in [*((Against.REFERENCE, each) for each in Drift), (Against.ANOTHER, Drift.PERIODIC)]
    ]


def _right(simulate: Simulate) -> None:
    print("## Errors and coverage\n")
    _print(["comparisons", "rounds", *WORST], (_right_row(simulate, *each) for each in product(COMPARISONS, ROUNDS)))


def _right_row(simulate: Simulate, comparisons: int, rounds: int) -> list[str]:
    cases = [Case(kind, rounds, (0.0, edge(rounds))) for kind in _kinds(comparisons)]
    return [str(comparisons), str(rounds), *_worst(simulate, cases, 0.5, 4.0)]


#: What `_worst` tells.
WORST = ("false alarms", "wrong `same`", "wrong difference", "coverage", "in the worst group")


def _worst(simulate: Simulate, cases: Sequence[Case], first: float, again: float) -> list[str]:
    """Of cases with equal cells and with a difference at the margin: the worst, looked for and then simulated anew.

    The worst of many would be worse than it is by chance alone.
    """
    found = simulate(cases, share=first)
    measures: list[Callable[[Outcome], float]] = [
        lambda each: -each.said[0].any_different,
        lambda each: -each.said[1].any_same,
        lambda each: -each.said[1].any_different,
        lambda each: each.coverage,
        lambda each: -each.coverage,
        lambda each: each.worst,
    ]
    worst = [min(range(len(cases)), key=lambda at, of=of: of(found[at])) for of in measures]  # type: ignore[misc]
    those = list(dict.fromkeys(worst))
    anew = dict(zip(those, simulate([cases[at] for at in those], share=again, later=1), strict=True))
    *wrong, low, high, group = (abs(of(anew[at])) for of, at in zip(measures, worst, strict=True))
    return [*map(_percent, wrong), " to ".join(map(_percent, sorted([low, high]))), _percent(group)]


def _kinds_of_cells(simulate: Simulate) -> None:
    print("\n## Some cells scatter far more than others\n")
    kinds = list(product((True, False), (3.0, 5.0, 10.0), (1, 4, 16, 128), (3, 5, 10, 20)))
    cases = [
        Case(kind, rounds, (0.0, edge(rounds)))
        for shown, loud, comparisons, rounds in kinds
        for against in Against
        for kind in [table(comparisons, 0.02, spread=Spread.KINDS, against=against, loud=loud, seen=shown)]
    ]
    found = simulate(cases, share=2.0)
    rows = []
    for (shown, loud, comparisons, rounds), *both in zip(kinds, found[::2], found[1::2], strict=True):
        worst = [
            max(each.said[0].any_different for each in both),
            max(each.said[1].any_same for each in both),
            max(each.said[1].any_different for each in both),
            min(each.coverage for each in both),
        ]
        samples = "and so do its samples" if shown else "its samples do not"
        rows.append([f"{loud:.0f} times, {samples}", str(comparisons), str(rounds), *map(_percent, worst)])
    _print(["one cell in three scatters by", "comparisons", "rounds", *WORST[:4]], rows)


def _noises(simulate: Simulate) -> None:
    print("\n## Launches that are not normal\n")
    kinds = list(product([each for each in Noise if each is not Noise.NORMAL], (1, 4, 16, 128), (3, 5, 20)))
    cases = [
        Case(table(comparisons, 0.02, drift=Drift.LINEAR, noise=noise), rounds, (0.0, edge(rounds)))
        for noise, comparisons, rounds in kinds
    ]
    rows = []
    for (noise, comparisons, rounds), found in zip(kinds, simulate(cases), strict=True):
        equal, at_edge = found.said
        shown = (equal.any_different, at_edge.any_same, at_edge.any_different, found.coverage)
        rows.append([noise, str(comparisons), str(rounds), *map(_percent, shown)])
    _print(["launches", "comparisons", "rounds", *WORST[:4]], rows)


def _stopping(simulate: Simulate) -> None:
    print("\n## Stopping by width\n")
    heads = ["comparisons", "spread of launches", "rounds", *WORST]
    _print(heads, (_stopping_row(simulate, *each) for each in product((1, 4, 16, 128), (0.01, 0.02, 0.03, 0.05))))


def _stopping_row(simulate: Simulate, comparisons: int, sigma: float) -> list[str]:
    cases = [
        Case(table(comparisons, sigma, spread=spread, drift=drift, seen=seen), 60, (0.0, MARGIN), 0.02)
        for (spread, seen), drift in product(_spreads(comparisons), (Drift.STEPS, Drift.PERIODIC))
    ]
    rounds = [each.rounds for each in simulate(cases, share=0.05)]
    worst = _worst(simulate, cases, 0.25, 1.0)
    return [str(comparisons), _percent(sigma), f"{min(rounds):.0f} to {max(rounds):.0f}", *worst]


def _claims(simulate: Simulate) -> None:
    print("\n## Stopping of claims\n")
    looks = ((FIRST_LOOK_AT_LARGE, CLAIM_PRECISION[1]), *((FIRST_LOOK_AT_CLAIMS, each) for each in (0.25, 0.1, 0.03)))
    rows = [_claims_row(simulate, *look, sigma) for look, sigma in product(looks, (0.01, 0.03, 0.06, 0.10))]
    _print(["precision", "first look", "spread of launches", "rounds", "coverage"], rows)


def _claims_row(simulate: Simulate, first: int, precision: float, sigma: float) -> list[str]:
    """Four launches a round, of which one is compared with another, of at most thirty."""
    cases = [
        Case(Table(1, 2, sigma, spread, drift, against=Against.ANOTHER, turns=True), 30, (0.0,), precision, first)
        for spread, drift in product((Spread.EQUAL, Spread.UNEQUAL), (Drift.NONE, Drift.PERIODIC))
    ]
    found = simulate(cases, share=2.0)
    rounds, covered = sorted(each.rounds for each in found), sorted(each.coverage for each in found)
    ends = [f"{rounds[0]:.1f} to {rounds[-1]:.1f}", f"{_percent(covered[0])} to {_percent(covered[-1])}"]
    return [f"± {_percent(precision)}", str(first), _percent(sigma), *ends]


def _power(simulate: Simulate) -> None:
    print("\n## Power\n")
    effects = (*(-math.log1p(effect) for effect in EFFECTS), 0.0)
    cases = [
        Case(table(comparisons, sigma, drift=Drift.LINEAR), rounds, effects)
        for comparisons, sigma, rounds in product((1, 16, 128), (0.01, 0.02, 0.03, 0.05, 0.10), (3, 5, 8, 20))
    ]
    rows = [
        [
            str(case.table.comparisons),
            _percent(case.table.sigma),
            str(case.rounds),
            f"± {_percent(math.expm1(found.half))}",
            *(_percent(each.different) for each in found.said[:-1]),
            _percent(found.said[-1].same),
            _percent(found.lost),
        ]
        for case, found in zip(cases, simulate(cases), strict=True)
    ]
    heads = ["comparisons", "spread of launches", "rounds", "own 95 % interval"]
    _print([*heads, *(f"{effect:.0%} slower" for effect in EFFECTS), "equal: `same`", "all lost to the control"], rows)


def _mixtures(simulate: Simulate) -> None:
    print("\n## One-sided mixtures\n")
    kinds = list(product((0.05, 0.10, 0.20), (0.1, 0.3), (3, 5, 8, 20)))
    cases = [Case(table(4, 0.02, mixture=Mixture(share, slower)), rounds, ()) for share, slower, rounds in kinds]
    rows = [
        [_percent(share), _percent(slower), str(rounds), _percent(found.coverage), _percent(found.outlying)]
        for (share, slower, rounds), found in zip(kinds, simulate(cases), strict=True)
    ]
    _print(["launches that are slower", "by", "rounds", "coverage", "report says outliers"], rows)


def _growth(runs: int, seed: int) -> None:
    print("\n## Memory growth\n")
    margin = PIECE / float(CALLS[-1] / 2.0)
    rows = []
    for name, allocator in ALLOCATORS.items():
        for leak in (0.0, LEAK):
            ways = [
                told(allocator, leak, 5, runs, seed, fit=fit, margin=margin) for fit in (ours, slope, least_squares)
            ]
            numbers = [text for way in ways for text in (f"{round(way.mean):,} B", _percent(way.covered))]
            ours_too = [_percent(ways[0].found), _percent(ways[0].apart)]
            rows.append([name, f"{leak:,.0f} B", *numbers[:2], *ours_too, *numbers[2:]])
    heads = [
        "told",
        "its interval holds it",
        "called growth",
        "control",
        "of all calls",
        "holds it",
        "by least squares",
        "holds it",
    ]
    _print(["memory", "kept a call", *heads], rows)


def _controls(tables: int, seed: int) -> None:
    print("\n## The control\n")
    shifts = (0.0, 0.05, 0.10)
    rows = []
    for (groups, others), sigma, rounds in product(((1, 1), (1, 4), (3, 4)), (0.01, 0.025, 0.05), (2, 3, 4, 5)):
        kind = Table(groups, others, sigma, drift=Drift.LINEAR)
        found = controls(kind, rounds, tables, [math.log1p(each) for each in shifts], seed=seed)
        wide = [f"± {_percent(math.expm1(found.half))}", _percent(math.expm1(found.least)), _percent(found.checked)]
        launched = f"{groups} of {others + 2} launches"
        shown = (_percent(found.coverage), *wide, *map(_percent, found.lost))
        rows.append([launched, _percent(sigma), str(rounds), *shown])
    heads = ["groups", "spread of launches", "rounds", "coverage", "interval", "least bias", "a check"]
    _print([*heads, *(f"{shift:.0%} slower" for shift in shifts)], rows)


def _settling(tables: int, seed: int) -> None:
    print("\n## What would settle it\n")
    heads = ["comparisons", "cells scatter", "rounds", "unclear", "a number is told", "that settles"]
    kinds = product((Spread.EQUAL, Spread.UNEQUAL), (1, 13), (3, 5))
    rows = (_settling_row(*kind, tables, seed) for kind in kinds)
    _print([*heads, "otherwise: probability told", "200 rounds settle"], rows)


def _settling_row(spread: Spread, comparisons: int, rounds: int, tables: int, seed: int) -> list[str]:
    kind, count = Table(1, comparisons, 0.03, spread=spread), tables * 10 if comparisons == 1 else tables
    found = suggestions(kind, rounds, count, within=math.log1p(0.12), seed=seed)
    numbers, others = [each for each in found if each.is_number], [each for each in found if not each.is_number]
    told = sum(each.probability for each in others) / max(1, len(others))
    return [
        str(comparisons),
        "alike" if spread is Spread.EQUAL else "each by a third to three times as much",
        str(rounds),
        f"{len(found):,}",
        *map(_percent, (len(numbers) / len(found), settled_share(numbers), told, settled_share(others))),
    ]


def _turns(tables: int, seed: int) -> None:
    print("\n## Turns\n")
    rows = []
    for comparisons, bias, alone, rounds in product((1, 16), (0.0, 0.03, 0.06, 0.10), (0.02, 0.05), (3, 5, 10)):
        kind = table(comparisons, 0.02, drift=Drift.PERIODIC, turns=True)
        found = moved(kind, rounds, tables, math.log1p(bias), alone=alone, seed=seed)
        shown = (found.wrong, found.unchecked, found.found)
        rows.append([str(comparisons), _percent(bias), _percent(alone), str(rounds), *map(_percent, shown)])
    heads = ["comparisons", "turns move a cell by", "spread alone", "rounds", "wrong verdicts", "without the check"]
    _print([*heads, "bias found"], rows)


def _trends(cells: int, seed: int) -> None:
    print("\n## Steps that change\n")
    counts, lengths = (1, 2, 3, 5, 10, 20), (3, 10, 30, 200)
    rows = [
        [noise, *(_percent(max(false_trends(noise, n, each, cells, seed=seed) for each in lengths)) for n in counts)]
        for noise in NOISES
    ]
    rows.append(
        [
            "turns on a machine that slows by 20 % in each round",
            *(_percent(max(in_turns(0.2, n, each, cells, seed=seed) for each in lengths)) for n in counts),
        ]
    )
    _print(["what the machine does", *(f"launches: {n}" for n in counts)], rows)
    print()
    kinds = list(product((0.1, 0.3, 1.0, 5.0), ("white", "drift of 10 %", "drift of 40 %")))
    rows = [
        [f"{growth:.0%}", noise, *(_percent(seen(growth, noise, n, 30, cells // 4, seed=seed)) for n in counts)]
        for growth, noise in kinds
    ]
    _print(["step grows by", "what the machine does", *(f"launches: {n}" for n in counts)], rows)


def _sharing(launches: int, seed: int) -> None:
    print("\n## What others take of the CPU\n")
    rows = []
    for (step, kind), (load, others), turns in product(KINDS.items(), LOADS.items(), (12, 30)):
        found = corrected(kind, others, turns, launches, seed)
        by_clock = f"{found.off_by_clock:+.1%} ± {found.spread_by_clock:.1%}"
        judged = f"{found.off:+.1%} ± {found.spread:.1%}"
        rows.append([step, load, str(turns), by_clock, judged, f"{found.least:+.1%} to {found.most:+.1%}"])
    _print(["the step", "others", "turns", "off by the clock", "off as it is judged", "taken off too much"], rows)


def _others(tables: int, seed: int) -> None:
    print("\n## False alarms of other rules\n")
    rows: dict[str, list[str]] = {}
    for drift in Drift:
        kind = table(1, 0.02, drift=drift)
        for name, share in shares(kind, 10, tables, seed=seed).items():
            rows.setdefault(name, []).append(_percent(share))
        (ours,) = outcome(kind, 10, tables, seed=seed).said
        rows.setdefault("interleaved rounds, interval beyond 3 % (harness)", []).append(_percent(ours.any_different))
    _print(["rule", *(f"drift: {drift}" for drift in Drift)], [[name, *cells] for name, cells in rows.items()])


def _searches(trials: int, seed: int) -> None:
    print("\n## A search for a step\n")
    plain = (1, 3, 5)
    heads = ["candidates", "step", "a round's spread", "right", "wrong", "rounds", "candidates measured"]
    rows = []
    for count, step, spread in product((26, 166), (0.05, 0.10, 0.50, 9.0), (0.01, 0.03, 0.06)):
        found = search(count, math.log1p(step), spread, trials, seed=seed)
        others = [search(count, math.log1p(step), spread, trials, seed=seed, plain=each) for each in plain]
        shown = f"×{1.0 + step:g}" if step >= 1.0 else f"{step:.0%}"
        taken = [f"{found.rounds:.0f}", f"{found.candidates:.0f}"]
        bisected = [f"{_percent(each.right)} in {each.rounds:.0f}" for each in others]
        rows.append(
            [str(count), shown, f"{spread:.0%}", _percent(found.right), _percent(found.wrong), *taken, *bisected]
        )
    _print([*heads, *(f"plain, rounds a probe: {each}" for each in plain)], rows)


def _nights(pool: ProcessPoolExecutor, tables: int, seed: int) -> None:
    print("\n## Nights\n")
    heads = ["nights", "years of series", "false suspicions", "false alarms", "suspected within 5 nights", "confirmed"]
    _print([*heads, "one issue", "edits"], _whole_rows(pool, max(1, 3 * tables // 50), seed))
    print()
    trials = {name: max(1, tables // 12 if "otava" in name else 4 * tables // 5) for name in RULES}
    kinds = [*((kind, 0.05, 1.0) for kind in (Kind.STILL, Kind.DRIFT, Kind.SPIKES, Kind.HOSTS))]
    kinds += [(Kind.DRIFT, 0.05, 2.0), (Kind.DRIFT, 0.10, 2.0)]
    heads = [f"{step:.0%}, {kind}{', twice the noise' if noise > 1.0 else ''}" for kind, step, noise in kinds]
    rows = ([name, *(_found_cell(pool, name, trials[name], seed, of) for of in kinds)] for name in RULES)
    _print(["rule", *heads], rows)
    print()
    _print(["rule", "of", *Kind], _false_rows(pool, trials, seed))


def _whole_rows(pool: ProcessPoolExecutor, histories: int, seed: int) -> Iterator[list[str]]:
    made = {kind: pool.map(partial(whole, kind, seed), range(histories)) for kind in Kind}
    for kind, each in made.items():
        of = Whole(*(sum(values) for values in zip(*map(astuple, each), strict=True)))
        shares = [_of(count, of.changes) for count in (of.soon, of.confirmed, of.alarmed)]
        yield [kind, f"{of.years:.0f}", str(of.false_suspicions), str(of.false_alarms), *shares, str(of.edits)]


def _of(count: int, all_: int) -> str:
    """`58 of 60 (88 to 100 %)`."""
    low, high = between(count, all_)
    return f"{count} of {all_} ({100.0 * low:.0f} to {100.0 * high:.0f} %)"


def _chunks(trials: int) -> list[range]:
    return [range(first, min(first + 20, trials)) for first in range(0, trials, 20)]


def _false_rows(pool: ProcessPoolExecutor, trials: Mapping[str, int], seed: int) -> Iterator[list[str]]:
    for name in RULES:
        years = trials[name] * (NIGHTS - FIRST) / 365.0
        for of in ("ratios",) if name == "harness" else ("times", "ratios"):
            told = {kind: pool.map(partial(false_count, name, of, kind, seed), _chunks(trials[name])) for kind in Kind}
            counts = [sum(each) for each in told.values()]
            yield [name, of, *(f"{count / years:.2f} (at most {at_most(count) / years:.2f})" for count in counts)]


def _found_cell(pool: ProcessPoolExecutor, name: str, trials: int, seed: int, of: tuple[Kind, float, float]) -> str:
    found = [each for part in pool.map(partial(delays, name, of, seed), _chunks(trials)) for each in part]
    told = sorted(each for each in found if each is not None)
    soon = _of(sum(each <= SOON for each in told), trials)
    return f"{soon}, {len(told)} ever ({told[len(told) // 2] if told else '-'})"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _print(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(heads)} |\n| {' | '.join('---' for _ in heads)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
