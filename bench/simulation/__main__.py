"""`make simulate`, or `make simulate ARGS="--tables 100"`: the tables of docs/simulation.md, as Markdown."""

import argparse
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from bench.simulation.machine import Drift, Mixture, Spread, Table, table
from bench.simulation.others import shares
from bench.simulation.ours import MARGIN, Outcome, controls, outcome

SIGMAS = (0.01, 0.02, 0.05, 0.10)
ROUNDS = (4, 5, 8, 20)
COMPARISONS = (1, 4, 16, 32, 128)
EFFECTS = (0.05, 0.10, 0.20)


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of table to simulate."""

    table: Table
    rounds: int
    precision: float | None = None


def main() -> None:
    """Simulate, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500, help="how many tables of 16 comparisons of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        simulate = partial(_all, pool, arguments.tables, arguments.seed)
        print(
            f"From `make simulate`: {arguments.tables} tables of 16 comparisons of each kind, more of smaller ones.\n"
        )
        _right(simulate)
        _stopping(simulate)
        _power(simulate)
        _mixtures(simulate)
    _controls(arguments.tables, arguments.seed)
    _others(arguments.tables, arguments.seed)


def _all(pool: ProcessPoolExecutor, tables: int, seed: int, cases: Sequence[Case]) -> list[Outcome]:
    return list(pool.map(_one, cases, [tables] * len(cases), [seed] * len(cases), chunksize=4))


def _one(case: Case, tables: int, seed: int) -> Outcome:
    # a small table is quick and says little about coverage; one that is looked at round by round takes long
    share = {1: 8.0, 4: 4.0, 128: 0.5}.get(case.table.comparisons, 1.0)
    if case.precision is not None:
        share = {1: 2.0, 4: 1.0, 128: 0.25}.get(case.table.comparisons, 0.5)
    return outcome(case.table, case.rounds, max(1, round(tables * share)), seed=seed, precision=case.precision)


def _kinds(comparisons: int, effect: float = 0.0) -> list[Table]:
    """Every spread and drift."""
    return [
        table(comparisons, sigma, spread=spread, drift=drift, effect=effect)
        for sigma, spread, drift in product(SIGMAS, Spread, Drift)
    ]


def _right(simulate: partial[list[Outcome]]) -> None:
    print("## Errors and coverage, the worst of 32 kinds of machine\n")
    rows = []
    for comparisons, rounds in product(COMPARISONS, ROUNDS):
        equal = simulate([Case(kind, rounds) for kind in _kinds(comparisons)])
        edge = simulate([Case(kind, rounds) for kind in _kinds(comparisons, MARGIN)])
        rows.append([str(comparisons), str(rounds), *_worst(equal, edge)])
    _print(["comparisons", "rounds", "false alarms", "wrong `same`", "coverage"], rows)


def _worst(equal: Sequence[Outcome], edge: Sequence[Outcome]) -> list[str]:
    coverage = [each.coverage for each in [*equal, *edge]]
    return [
        _percent(max(each.false_alarms for each in equal)),
        _percent(max(each.false_same for each in edge)),
        f"{_percent(min(coverage))} to {_percent(max(coverage))}",
    ]


def _stopping(simulate: partial[list[Outcome]]) -> None:
    print("\n## Stopping by width: `--precision 2% --rounds 60`, the worst of 8 machines\n")
    rows = []
    for comparisons, sigma in product(COMPARISONS, (0.01, 0.02, 0.03, 0.05)):
        kinds = [table(comparisons, sigma, spread=spread, drift=drift) for spread, drift in product(Spread, Drift)]
        equal = simulate([Case(kind, 60, 0.02) for kind in kinds])
        edge = simulate([Case(replace(kind, effect=MARGIN), 60, 0.02) for kind in kinds])
        rounds = [each.rounds for each in equal]
        rows.append(
            [str(comparisons), _percent(sigma), f"{min(rounds):.0f} to {max(rounds):.0f}", *_worst(equal, edge)]
        )
    _print(["comparisons", "spread of launches", "rounds", "false alarms", "wrong `same`", "coverage"], rows)


def _power(simulate: partial[list[Outcome]]) -> None:
    print("\n## Power: how often a true difference is called `slower`, and equal cells `same`\n")
    rows = []
    for comparisons, sigma, rounds in product((1, 16, 128), (0.01, 0.02, 0.03, 0.05, 0.10), (5, 8, 20)):
        kind = table(comparisons, sigma, drift=Drift.LINEAR)
        found = simulate([Case(replace(kind, effect=-math.log1p(effect)), rounds) for effect in EFFECTS])
        (equal,) = simulate([Case(kind, rounds)])
        rows.append(
            [
                str(comparisons),
                _percent(sigma),
                str(rounds),
                f"± {_percent(math.expm1(equal.half))}",
                *(_percent(each.found) for each in found),
                _percent(equal.same),
            ]
        )
    heads = ["comparisons", "spread of launches", "rounds", "own 95 % interval"]
    _print([*heads, *(f"{effect:.0%} slower" for effect in EFFECTS), "equal: `same`"], rows)


def _mixtures(simulate: partial[list[Outcome]]) -> None:
    print("\n## One-sided mixtures: some launches of a cell are slower, spread of the others 2 %\n")
    rows = []
    for share, slower, rounds in product((0.05, 0.10, 0.20), (0.1, 0.3), (5, 8, 20)):
        (found,) = simulate([Case(table(4, 0.02, mixture=Mixture(share, slower)), rounds)])
        rows.append(
            [_percent(share), _percent(slower), str(rounds), _percent(found.coverage), _percent(found.outlying)]
        )
    _print(["launches that are slower", "by", "rounds", "coverage", "report says outliers"], rows)


def _controls(tables: int, seed: int) -> None:
    print("\n## The control: how often its interval reaches beyond 3 %, and lies wholly beyond it\n")
    rows = []
    for (groups, others), sigma, rounds in product(((1, 1), (3, 2), (16, 8)), (0.01, 0.02, 0.05, 0.10), (5, 20)):
        reaches, beyond = controls(Table(groups, others, sigma, drift=Drift.LINEAR), rounds, tables, seed=seed)
        rows.append([str(groups), _percent(sigma), str(rounds), _percent(reaches), _percent(beyond)])
    _print(["groups", "spread of launches", "rounds", "reaches beyond", "lies beyond"], rows)


def _others(tables: int, seed: int) -> None:
    print("\n## False alarms of other rules: two equal cells, 10 launches each, spread of launches 2 %\n")
    rows: dict[str, list[str]] = {}
    for drift in Drift:
        kind = table(1, 0.02, drift=drift)
        for name, share in shares(kind, 10, tables, seed=seed).items():
            rows.setdefault(name, []).append(_percent(share))
        ours = outcome(kind, 10, tables, seed=seed)
        rows.setdefault("interleaved rounds, interval beyond 3 % (harness)", []).append(_percent(ours.false_alarms))
    _print(["rule", *(f"drift: {drift}" for drift in Drift)], [[name, *cells] for name, cells in rows.items()])


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _print(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(heads)} |\n| {' | '.join('---' for _ in heads)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
