"""Comparisons of memory growth: differences of the bytes that each call retains, and their verdicts."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from harness.analysis import work_equivalence
from harness.analysis.cell_index import Lookup
from harness.analysis.comparisons import Compared, control_of_growth, is_beyond, make_compared, settlings
from harness.analysis.pairs import CellPair
from harness.analysis.quantities import PIECE, calls_looked_at, growths
from harness.analysis.statistics import Difference, Interval, means
from harness.analysis.verdicts import (
    Judgement,
    Verdict,
    Withheld,
    compute_shown_alpha,
    judge,
    list_deciding,
)
from harness.model.defaults import FEWEST_ROUNDS
from harness.model.scenario import Cell


def compare_growth(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> list[Compared | None]:
    """Return the comparison of memory growth of each pair, judged together; None if no round has both cells.

    `ratio` is a Difference: the bytes that each call of `cell` retains, minus the bytes that each call of `other`
    retains. Its interval is a t interval of the paired differences. Each pair has its own variance, because cells that
    leak vary more than cells that don't. The margin is PIECE divided by the number of calls in the later half of a
    launch. If the memory growth of the control cell differs by more than the margin, the verdict is withheld.
    """
    candidates = [_make_growth_pair(cell, other, lookup) for cell, other in pairs]
    family = [pair for pair in candidates if pair and pair.is_judged]
    logs = means([pair.logs for pair in family])
    growth_margins = np.array([_compute_growth_margin(pair, lookup) for pair in family])
    shares = np.array([lookup.look(pair.cell).share for pair in family], np.float64)
    judged = judge(logs, growth_margins, shares=shares)
    cells = [pair.cell for pair in family]
    rounds_needed = settlings(logs, judged.alpha, growth_margins, cells, lookup, shown=1.0 - judged.levels)
    deciding = list_deciding(logs, judged, float)
    results = []
    for index, pair in enumerate(family):
        mean, half_width = float(logs.mean[index]), float(judged.half[index])
        difference = Difference(mean, len(pair.logs), Interval(mean - half_width, mean + half_width))
        withheld = _find_reason_to_withhold(pair, float(growth_margins[index]), lookup)
        verdict, interval = (None, None) if withheld else (judged.verdicts[index], deciding[index])
        judgement = Judgement(difference, float(judged.levels[index]), verdict, withheld, interval)
        results.append(make_compared(pair, judgement, lookup, rounds_needed[index]))
    judged_results = iter(results)
    return [
        None
        if pair is None
        else next(judged_results)
        if pair.is_judged
        else _make_unjudged_growth(pair, len(family), lookup)
        for pair in candidates
    ]


def _find_reason_to_withhold(pair: CellPair, margin: float, lookup: Lookup) -> Withheld | None:
    if len(pair.logs) < FEWEST_ROUNDS:
        return Withheld.FEW_ROUNDS
    return Withheld.CONTROL if is_beyond(control_of_growth(pair.cell, lookup), margin) else None


def _make_growth_pair(cell: Cell, other: Cell, lookup: Lookup) -> CellPair | None:
    """Return the pair with differences in memory growth, one per round, instead of log ratios."""
    growth, other_growth = (growths(lookup.numbers.get(side, ())) for side in (cell, other))
    differences = [growth[number] - other_growth[number] for number in sorted(growth.keys() & other_growth.keys())]
    if not differences:
        return None
    work_check = work_equivalence.compare(lookup.numbers[other], lookup.numbers[cell])
    return CellPair(cell, other, differences, lookup.weight(cell, other), work_check, changes=False, steps=None)


def _compute_growth_margin(pair: CellPair, lookup: Lookup) -> float:
    """Return the memory growth, in bytes per call, that can occur without a leak.

    The result is PIECE divided by the number of calls in the later half of the launch with the fewest calls.
    """
    launches = [*lookup.numbers[pair.cell], *lookup.numbers[pair.other]]
    return PIECE / max(1.0, min(calls_looked_at(launch) for launch in launches if launch.memory))


def _make_unjudged_growth(pair: CellPair, family_size: int, lookup: Lookup) -> Compared:
    level = 1.0 - compute_shown_alpha(family_size) * lookup.look(pair.cell).share
    mean = fmean(pair.logs)
    verdict, withheld = (Verdict.DIFFERENT_WORK, None) if pair.work.differs else (None, Withheld.FEW_ROUNDS)
    return make_compared(pair, Judgement(Difference(mean, len(pair.logs)), level, verdict, withheld), lookup)
