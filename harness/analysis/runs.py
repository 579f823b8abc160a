"""Two runs side by side: each cell that has a number in both, and what moved all of them.

The launches of different days are not paired, so a change is judged by Welch's interval (`welch`), against the same
margin and with the same procedure over all cells as a table's comparisons (`verdicts`). That interval knows how
launches scatter within each run. It does not know how one day differs from the next: that shows as a shift of all
cells, which is told apart from what moves some.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.analysis import work
from harness.analysis.comparisons import Withheld, lost_in
from harness.analysis.conditions import Difference, differences, machines, same_software
from harness.analysis.lookup import Lookup
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, combine, exp, interval
from harness.analysis.verdicts import ALPHA, FEWEST_ROUNDS, Verdict, half_widths, judge
from harness.analysis.welch import FEWEST_CELLS, Means, means, median, minus, minus_others
from harness.model.launch import BROKEN, Status
from harness.model.run import Run
from harness.model.scenario import Cell


@dataclass(frozen=True, slots=True)
class Judgement:
    """A ratio time(first) / time(second), above 1 when the second run is faster, and what is said of the second.

    The interval is the one that the verdict was taken from, `level` wide; where `verdict` is None, `withheld` says why.
    """

    ratio: Estimate
    level: float
    verdict: Verdict | None
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell in both runs: `first` and `second` are its seconds per step, `change` is the one against the other.

    `without_shift` is the change minus the other cells' shift; None without a shift, and where the cell is not judged.
    `same_software`: environment, image and scenario are the same in both runs.
    """

    cell: Cell
    first: Estimate
    second: Estimate
    change: Judgement
    without_shift: Judgement | None
    work: work.WorkCheck
    same_software: bool

    @property
    def judged(self) -> bool:
        """Whether its level was divided with the others'."""
        return self.change.withheld is not Withheld.FEW_ROUNDS and self.change.verdict is not Verdict.DIFFERENT_WORK


@dataclass(frozen=True, slots=True)
class Shift:
    """The median change of `cells` cells, with its own 95 % interval.

    `unchanged`: these are cells whose software is the same in both runs, so it was the machine, or how it was measured.
    Else they are all cells that are judged, and software may have moved them too.
    """

    change: Judgement
    cells: int
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Lone:
    """A cell with a number in one run only; `status` is why the other has none, None where it was not asked for."""

    cell: Cell
    status: Status | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What two runs say together: the cells in the first run's order, and those that only one of them has."""

    cells: Sequence[CellChange]
    shift: Shift | None
    only_first: Sequence[Lone]
    only_second: Sequence[Lone]

    @property
    def deciding(self) -> list[Verdict]:
        """What a gate looks at: the verdicts on times, without the shift where that is not the software's."""
        is_corrected = self.shift is not None and self.shift.unchanged
        given = [each.without_shift if is_corrected and each.without_shift else each.change for each in self.cells]
        return [each.verdict for each in given if each.verdict and each.verdict is not Verdict.DIFFERENT_WORK]

    @property
    def broken(self) -> list[Cell]:
        """Cells that had a number, and whose launches broke or were interrupted in the second run."""
        return [lone.cell for lone in self.only_first if lone.status in BROKEN | {Status.INTERRUPTED}]


@dataclass(frozen=True, slots=True)
class _Both:
    cell: Cell
    first: Sequence[float]
    second: Sequence[float]
    work: work.WorkCheck
    same_software: bool

    @property
    def rounds(self) -> int:
        return min(len(self.first), len(self.second))

    @property
    def judged(self) -> bool:
        """Whether it gets a verdict from its times: decided without looking at these."""
        return self.rounds >= FEWEST_ROUNDS and self.work.work is not work.Work.DIFFERENT


class Pair:
    """Two runs side by side, and what follows from them: each part computed once. `margin` is a share: 0.03 for 3 %."""

    def __init__(self, first: Results, second: Results, margin: float) -> None:
        self.first, self.second, self.margin = first, second, margin

    @cached_property
    def changes(self) -> Changes:
        """What the two say together."""
        return compare(self.first, self.second, self.margin)

    @cached_property
    def machines(self) -> list[Difference]:
        """The facts by which they are of different machines."""
        return machines(self.first.run, self.second.run)

    @cached_property
    def differences(self) -> list[Difference]:
        """Whatever else differs and may have moved the times."""
        return differences(self.first.run, self.second.run, (each.cell for each in self.changes.cells))


def compare(first: Results, second: Results, margin: float) -> Changes:
    """Every cell of two runs, the verdicts judged together.

    `margin` is a share: 0.03 for 3 %. Cells with fewer than four rounds in a run, and those that did different work,
    are not judged and are in no shift.
    """
    found = one, other = first.found, second.found
    both = [
        _both(cell, first.run, second.run, found) for cell in one.cells if cell in one.series and cell in other.series
    ]
    family = [each for each in both if each.judged]
    log_margin = math.log1p(margin)
    differences = _differences(family)
    changed = _judgements(family, differences, found, log_margin)
    base, unchanged = _base(family)
    moved = _judgements(family, minus_others(differences, base), found, log_margin) if base else {}
    return Changes(
        cells=[
            CellChange(
                cell=each.cell,
                first=combine(list(one.series[each.cell].values())),
                second=combine(list(other.series[each.cell].values())),
                change=changed.get(each.cell) or _unjudged(each),
                without_shift=moved.get(each.cell),
                work=each.work,
                same_software=each.same_software,
            )
            for each in both
        ],
        shift=_shift(differences.take(base), family, unchanged, log_margin) if base else None,
        only_first=_lone(one, other),
        only_second=_lone(other, one),
    )


def _both(cell: Cell, first: Run, second: Run, found: tuple[Lookup, Lookup]) -> _Both:
    one, other = found
    return _Both(
        cell=cell,
        first=[math.log(centre) for centre in one.series[cell].values()],
        second=[math.log(centre) for centre in other.series[cell].values()],
        work=work.compare(one.numbers[cell], other.numbers[cell]),
        same_software=same_software(cell, first, second),
    )


def _differences(cells: Sequence[_Both]) -> Means:
    """log(time(first) / time(second)) of each."""
    return minus(means([each.first for each in cells]), means([each.second for each in cells]))


def _base(family: Sequence[_Both]) -> tuple[list[int], bool]:
    """The cells that a shift is taken from: those with the same software, else all; none of too few."""
    unchanged = [index for index, each in enumerate(family) if each.same_software]
    if len(unchanged) >= FEWEST_CELLS:
        return unchanged, True
    return (list(range(len(family))) if len(family) >= FEWEST_CELLS else []), False


def _judgements(
    family: Sequence[_Both], differences: Means, found: tuple[Lookup, Lookup], margin: float
) -> dict[Cell, Judgement]:
    judged = judge(differences.logs, margin)
    judgements = {}
    for index, each in enumerate(family):
        mean, half, verdict = float(differences.mean[index]), float(judged.half[index]), judged.verdicts[index]
        lost = any(lost_in(run.control, verdict, mean, half, margin) for run in found)
        ratio = Estimate(exp(mean), each.rounds, interval(mean, half))
        level = 1.0 - float(judged.alpha[index])
        withheld = Withheld.CONTROL if lost else None
        judgements[each.cell] = Judgement(ratio, level, None if lost else verdict, withheld)
    return judgements


def _unjudged(each: _Both) -> Judgement:
    """Its 95 % interval, where both runs have two rounds, and why there is no verdict on its times."""
    if each.rounds > 1:
        difference = _differences([each])
        mean, half = float(difference.mean[0]), float(half_widths(difference.logs, ALPHA)[0])
        ratio = Estimate(exp(mean), each.rounds, interval(mean, half))
    else:
        mean = math.fsum(each.first) / len(each.first) - math.fsum(each.second) / len(each.second)
        ratio = Estimate(exp(mean), each.rounds)
    if each.work.work is work.Work.DIFFERENT:
        return Judgement(ratio, 1.0 - ALPHA, Verdict.DIFFERENT_WORK)
    return Judgement(ratio, 1.0 - ALPHA, None, Withheld.FEW_ROUNDS)


def _shift(base: Means, family: Sequence[_Both], unchanged: bool, margin: float) -> Shift:
    shift = median(base)
    judged = judge(shift.logs, margin)
    mean, half = float(shift.mean[0]), float(judged.half[0])
    ratio = Estimate(exp(mean), min(each.rounds for each in family), interval(mean, half))
    return Shift(Judgement(ratio, 1.0 - ALPHA, judged.verdicts[0]), base.mean.size, unchanged)


def _lone(one: Lookup, other: Lookup) -> list[Lone]:
    return [Lone(cell, other.status(cell)) for cell in one.cells if cell in one.series and cell not in other.series]
