"""Kinds of tables to simulate, and the worst results among them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from bench.simulation.harness_rules import Outcome, outcome
from bench.simulation.machine import Spread, Table
from bench.simulation.markdown import format_percent
from harness.analysis.looks import FIRST_LOOK


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of table to simulate, and the true log ratios of its comparisons (`effects`)."""

    table: Table
    rounds: int
    effects: Sequence[float]
    precision: float | None = None
    first: int = FIRST_LOOK
    settles: bool = False


class Simulate(Protocol):
    """Simulates cases, with `share` times the usual number of tables, and with the seed plus `later`."""

    def __call__(self, cases: Sequence[Case], *, share: float = 1.0, later: int = 0) -> list[Outcome]:
        """Return the outcome of each case."""
        ...


def simulate_cases(
    pool: ProcessPoolExecutor, tables: int, seed: int, cases: Sequence[Case], *, share: float = 1.0, later: int = 0
) -> list[Outcome]:
    """Return the outcome of each case, simulated by the processes of a pool."""
    return list(pool.map(partial(_simulate_case, tables=tables * share, seed=seed + later), cases))


def _simulate_case(case: Case, tables: float, seed: int) -> Outcome:
    # a small table is quick, but it has few comparisons to estimate the coverage
    count = max(1, round(tables * {1: 4.0, 4: 2.0, 128: 0.5}.get(case.table.comparisons, 1.0)))
    return outcome(
        case.table,
        case.rounds,
        count,
        seed=seed,
        effects=case.effects,
        precision=case.precision,
        first=case.first,
        settles=case.settles,
    )


def list_spreads(comparisons: int) -> list[tuple[Spread, bool]]:
    """Return the kinds of variability of cells, and whether their samples show it. KINDS has a separate part."""
    several = [(Spread.GROUPS, True)] if comparisons > 1 else []
    return [(Spread.EQUAL, True), (Spread.UNEQUAL, True), (Spread.UNEQUAL, False), *several]


#: The names of the results of `find_worst`.
WORST = ("false alarms", "wrong `same`", "wrong difference", "coverage", "in the worst group")


def find_worst(simulate: Simulate, cases: Sequence[Case], first: float, again: float) -> list[str]:
    """Return the worst value of each of WORST, over cases with equal cells and with a difference at the margin."""
    measures: list[Callable[[Outcome], float]] = [
        lambda figures: -figures.said[0].any_different,
        lambda figures: -figures.said[1].any_same,
        lambda figures: -figures.said[1].any_different,
        lambda figures: figures.coverage,
        lambda figures: -figures.coverage,
        lambda figures: figures.worst,
    ]
    extremes = find_least(simulate, cases, first, again, measures)
    *wrong, low, high, group = (abs(value) for value, _ in extremes)
    return [*map(format_percent, wrong), " to ".join(map(format_percent, sorted([low, high]))), format_percent(group)]


def find_least(
    simulate: Simulate,
    cases: Sequence[Case],
    first: float,
    again: float,
    measures: Sequence[Callable[[Outcome], float]],
) -> list[tuple[float, Case]]:
    """Return, for each measure, the case with the lowest value, and the measure's value in a second simulation of it.

    Without the second simulation, the lowest of many values would be too low just by chance.
    """
    outcomes = simulate(cases, share=first)
    worst = [min(range(len(cases)), key=lambda at, function=measure: function(outcomes[at])) for measure in measures]  # type: ignore[misc]
    those = list(dict.fromkeys(worst))
    anew = dict(zip(those, simulate([cases[at] for at in those], share=again, later=1), strict=True))
    return [(measure(anew[at]), cases[at]) for measure, at in zip(measures, worst, strict=True)]
