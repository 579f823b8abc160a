"""Pairs of cells: the log ratios of the rounds that both have, and the possible errors of these ratios."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis import interleaving, work_equivalence
from harness.analysis.cell_index import Lookup
from harness.analysis.distributions import Floats
from harness.analysis.moderation import moderate
from harness.analysis.rounds import Series, series
from harness.analysis.statistics import Estimate, Interval, Logs, log_ratios, means
from harness.analysis.step_ranges import find_common_steps, restrict_steps
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class CellPair:
    """Two cells, and the log ratio of each round in which both have a result.

    `weight` is the variance of the log ratio if the variance of a launch is 1. `changes`: the steps of at least one
    cell are non-stationary. The ratio then uses only the range of `steps` that both cells have, if there is one.
    """

    cell: Cell
    other: Cell
    logs: Sequence[float]
    weight: float
    work: work_equivalence.WorkCheck
    changes: bool
    steps: Interval | None

    @property
    def is_judged(self) -> bool:
        """Whether the times of the pair get a verdict. The ratio doesn't affect this decision."""
        return len(self.logs) > 1 and not self.work.differs and not self.lacks_common_steps

    @property
    def lacks_common_steps(self) -> bool:
        """Whether the steps are non-stationary and the two cells have too few common steps."""
        return self.changes and self.steps is None


@dataclass(frozen=True, slots=True)
class PairFamily:
    """Pairs of cells, and the possible errors of those that are judged together.

    `candidates` are all pairs, with None if no round has a result of both cells. `judged` are those with a verdict.
    The other fields have an entry for each judged pair. `logs` are the moderated log ratios. `sequential_ratios` are
    the ratios of sequential samples divided by the interleaved ratios. `contention` is the possible error if CPU
    contention was subtracted, and `bias` the possible error in total; both are on the log scale and have shape (m,).
    """

    candidates: Sequence[CellPair | None]
    judged: Sequence[CellPair]
    logs: Logs
    sequential_ratios: Sequence[Estimate | None]
    contention: Floats
    bias: Floats


def make_family(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> PairFamily:
    """Return the pairs (cell, other) with their log ratios and possible errors."""
    candidates = make_pairs(pairs, lookup)
    judged = [pair for pair in candidates if pair and pair.is_judged]
    shifts = interleaving.compare_sequential([(pair.cell, pair.other) for pair in judged], lookup)
    # sequential samples are the last of a launch, so they can't check interleaving if steps are non-stationary
    sequential_ratios = [None if pair.changes else shift for pair, shift in zip(judged, shifts, strict=True)]
    sequential_bias = [
        abs(math.log(ratio.value)) if ratio and interleaving.is_bias(ratio) else 0.0 for ratio in sequential_ratios
    ]
    contention = np.array([lookup.contention(pair.cell, pair.other) for pair in judged], np.float64)
    # the two errors are independent of each other, so both may act in the same direction
    bias = contention + np.array(sequential_bias, np.float64)
    return PairFamily(candidates, judged, moderate_logs(judged, lookup), sequential_ratios, contention, bias)


def make_pairs(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> list[CellPair | None]:
    """Return the pairs (cell, other) with their log ratios; None if no round has a result of both cells."""
    return [_make_pair(cell, other, lookup) for cell, other in pairs]


def _make_pair(cell: Cell, other: Cell, lookup: Lookup) -> CellPair | None:
    if not log_ratios(lookup.series.get(cell, {}), lookup.series.get(other, {})):
        return None
    changes = cell in lookup.trends or other in lookup.trends
    steps = find_common_steps([*lookup.numbers[other], *lookup.numbers[cell]]) if changes else None
    values, other_values = select_pair(cell, other, steps, lookup)
    work_check = work_equivalence.compare(lookup.numbers[other], lookup.numbers[cell])
    return CellPair(
        cell, other, log_ratios(values, other_values), lookup.weight(cell, other), work_check, changes, steps
    )


def select_pair(cell: Cell, other: Cell, steps: Interval | None, lookup: Lookup) -> tuple[Series, Series]:
    """Return the launch means of two cells for a comparison. If `steps` is set, they cover only this range of steps."""
    if steps is None:
        return lookup.series[cell], lookup.series[other]
    launches = [*lookup.numbers[other], *lookup.numbers[cell]]
    # if the two cells are in different blocks, the control cell shows the difference between the blocks
    pair_series = series(restrict_steps(launches, steps), lookup.references)
    return pair_series[cell], pair_series[other]


def moderate_logs(family: Sequence[CellPair], lookup: Lookup) -> Logs:
    """Return the log ratios of pairs, with the moderated variances of moderation.py."""
    weights = np.array([pair.weight for pair in family], np.float64)
    residuals = [lookup.residual(pair.cell, pair.other) for pair in family]
    machines = [lookup.machine(pair.cell) for pair in family]
    return moderate(means([pair.logs for pair in family]), weights, residuals, machines)
