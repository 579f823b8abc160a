"""Confirmations of changes that a history suspects: simulated rounds, decided by the code of harness."""

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean

import numpy as np

from bench.simulation.bisection import Machine, SearchKind
from bench.simulation.markdown import format_percent, print_table
from harness.analysis.results import Results
from harness.history.confirm import decide_finding
from harness.model.defaults import CONFIRM_ROUNDS, MARGIN, MOST_CONFIRM_ROUNDS
from harness.paired.comparison import PairedRun
from harness.paired.measurement import PairedMeasurement

#: The looks of a confirmation.
LOOKS = range(CONFIRM_ROUNDS, MOST_CONFIRM_ROUNDS + 1, CONFIRM_ROUNDS)

#: The names of the simulated sides.
BEFORE, AFTER = "0", "1"


def print_confirmations(pool: ProcessPoolExecutor, trials: int, seed: int) -> None:
    """Print the decisions of confirmations that are continued until they are clear."""
    print("\n## Confirmations\n")
    kinds = list(product((0.01, 0.02, 0.03, 0.05, 0.08), (1.0, 1.0 + MARGIN, 1.05)))
    rows = (
        [f"{100.0 * deviation:.0f} %", f"{ratio:.3f}×", *_format_decisions(results)]
        for (deviation, ratio), results in zip(
            kinds, pool.map(partial(_confirm_all, trials=trials, seed=seed), kinds), strict=True
        )
    )
    print_table(["standard deviation of a round", "true ratio", "confirmed", "refuted", "rounds"], rows)


def _format_decisions(results: list[tuple[bool | None, int]]) -> Iterator[str]:
    yield from (format_percent(fmean(decision is expected for decision, _ in results)) for expected in (True, False))
    yield f"{fmean(rounds for _, rounds in results):.1f}"


def _confirm_all(kind: tuple[float, float], *, trials: int, seed: int) -> list[tuple[bool | None, int]]:
    """Return the decisions on suspected slowdowns, and the numbers of rounds after which they were clear.

    `kind` has the standard deviation of a round, and the true ratio.
    """
    deviation, ratio = kind
    draw = np.random.default_rng(seed)
    return [confirm(Machine(SearchKind(2, math.log(ratio), deviation), draw)) for _ in range(trials)]


def confirm(machine: Machine) -> tuple[bool | None, int]:
    """Return the decision on a suspected slowdown of 5 %, and the number of rounds after which it was clear."""

    def measure(rounds: int, earlier: PairedRun | None) -> PairedRun:
        run = machine.measure("pair", [BEFORE, AFTER], rounds, earlier)
        looks = [{"all": look} for look in LOOKS if look < rounds]
        return replace(run, results=Results(replace(run.results.run, looks=looks), run.results.launches))

    def judge(run: PairedRun) -> tuple[bool | None, bool]:
        comparison = run.compare(AFTER, BEFORE)
        assert comparison
        decision = decide_finding(comparison.step, comparison.low, comparison.high, 1.05, MARGIN)
        return decision, decision is not None

    measurement = PairedMeasurement(LOOKS, measure, judge)
    while measurement.more:
        measurement.look()
    return measurement.result, measurement.rounds
