"""The comparison of two runs: each cell with a result in both, and the shift of all cells.

The launches of different days aren't paired, so a change is judged by Welch's interval (`statistics`). The margin and
the procedure over all cells are the same as for a table's comparisons (`verdicts`). Welch's interval includes the
variability within each run, but not the variability between days. The variability between days appears as a shift of
all cells, which is separated from changes of single cells.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
import numpy.typing as npt

from harness.analysis import work_equivalence
from harness.analysis.cell_index import Lookup
from harness.analysis.control import is_beyond
from harness.analysis.distributions import Floats
from harness.analysis.interference import ERROR, compute_possible_error
from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.rounds import series
from harness.analysis.run_differences import RunDifference, compare_machines, find_differences, same_software
from harness.analysis.statistics import (
    Estimate,
    Interval,
    Logs,
    combine,
    half_widths,
    means,
    medians,
    subtract,
    subtract_others,
)
from harness.analysis.step_ranges import find_common_steps, restrict_steps
from harness.analysis.verdicts import Judgement, Verdict, Withheld, judge, judgements, make_unjudged, margins
from harness.model.defaults import ALPHA
from harness.model.launch import BROKEN, Clock, Status
from harness.model.scenario import GROWTH, STEP, Cell

#: The smallest number of rounds in each run for verdicts of any kind. It is larger than for comparisons within a run,
#: because variances aren't moderated. With two or three rounds, a cell gets a verdict only if its change is certainly
#: beyond ×1.5.
FEWEST_ROUNDS = 4

#: The smallest number of cells for a common shift: the median of four other cells is valid even if one of them changed.
FEWEST_CELLS = 5


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell in both runs: `first` and `second` are its seconds per step.

    `change` is time(second) / time(first), above 1 if the second run is slower, with its verdict. `without_shift` is
    the change minus the shift of the other cells, or None if there is no shift, and for cells that aren't judged.
    `same_software`: environment, image and scenario are the same in both runs. If the step is non-stationary, `steps`
    is the range of steps in which the runs are compared, counted from the start of a launch.
    """

    cell: Cell
    first: Estimate
    second: Estimate
    change: Judgement
    without_shift: Judgement | None
    work: work_equivalence.WorkCheck
    same_software: bool
    steps: Interval | None = None


@dataclass(frozen=True, slots=True)
class Shift:
    """The median change of a number of `cells`, with its own 95 % interval.

    If `unchanged` is true, the software of these cells is the same in both runs, so the shift comes from the machine or
    from the measurement. Otherwise, the shift is computed from all cells with enough rounds, and the software may have
    contributed to it.
    """

    change: Judgement
    cells: int
    unchanged: bool


@dataclass(frozen=True, slots=True)
class UnpairedCell:
    """A cell with a result in only one run.

    `status` is the reason why it has no result in the other run; None if it wasn't requested there.
    """

    cell: Cell
    status: Status | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The comparison of two runs: `cells` have a result in both, and `only_first` and `only_second` in only one."""

    cells: Sequence[CellChange]
    shift: Shift | None
    only_first: Sequence[UnpairedCell]
    only_second: Sequence[UnpairedCell]

    @property
    def deciding(self) -> list[Verdict]:
        """The verdicts that a gate uses. A shift is subtracted first if the software can't have caused it."""
        is_corrected = self.shift is not None and self.shift.unchanged
        candidates = [cell.without_shift if is_corrected and cell.without_shift else cell.change for cell in self.cells]
        return [
            judgement.verdict
            for judgement in candidates
            if judgement.verdict and judgement.verdict is not Verdict.DIFFERENT_WORK
        ]

    @property
    def broken(self) -> list[Cell]:
        """Cells that had a result in the first run, and whose launches failed or were interrupted in the second run."""
        return [unpaired.cell for unpaired in self.only_first if unpaired.status in BROKEN | {Status.INTERRUPTED}]


@dataclass(frozen=True, slots=True)
class _MatchedCell:
    cell: Cell
    first: Sequence[float]
    second: Sequence[float]
    work: work_equivalence.WorkCheck
    same_software: bool
    changes: bool
    steps: Interval | None

    @property
    def rounds(self) -> int:
        return min(len(self.first), len(self.second))

    @property
    def judged(self) -> bool:
        """Whether the cell gets a verdict from its times. The times themselves don't affect this decision."""
        return self.rounds > 1 and not self.work.differs and not self.lacks_common_steps

    @property
    def is_steady(self) -> bool:
        """Whether the cell can be used for the shift."""
        return self.judged and self.rounds >= FEWEST_ROUNDS

    @property
    def lacks_common_steps(self) -> bool:
        """Whether the step changes while it is measured, and the runs have too few common steps."""
        return self.changes and self.steps is None


class Pair:
    """Two compared runs, `first` and `second`. Each property is computed at first access. `margin` is a share."""

    def __init__(self, first: Results, second: Results, margin: float) -> None:
        self.first, self.second, self.margin = first, second, margin

    @property
    def clock(self) -> Clock:
        """The clock of both runs: wall-clock time or CPU time."""
        return self.first.run.plan.clock

    @cached_property
    def changes(self) -> Changes:
        """The comparison of the times of both runs."""
        return compare(self.first, self.second, self.margin)

    @cached_property
    def others(self) -> dict[str, Changes]:
        """The comparisons of the other quantities in the first run's scenarios, except memory growth."""
        names = dict.fromkeys(quantity for scenario in self.first.run.scenarios for quantity in scenario.quantities)
        by_quantity = {name: compare(self.first, self.second, self.margin, name) for name in names if name != GROWTH}
        return {quantity: changes for quantity, changes in by_quantity.items() if changes.cells}

    @cached_property
    def machines(self) -> list[RunDifference]:
        """The facts in which the runs' machines differ."""
        return compare_machines(self.first.run, self.second.run)

    @cached_property
    def differences(self) -> list[RunDifference]:
        """The other differences between the runs, which may have changed the times."""
        return find_differences(self.first.run, self.second.run, (cell.cell for cell in self.changes.cells))


def compare(first: Results, second: Results, margin: float, quantity: str = STEP) -> Changes:
    """Return every cell with a result in both runs, with verdicts that are judged together.

    For a `quantity` other than the time per step, only cells whose scenario compares it are returned. `margin` is a
    share: 0.03 for 3 %. Cells aren't judged if they have one round in a run, did different work, or have non-stationary
    steps without common steps. The shift also excludes cells with fewer than four rounds in a run. Such cells get a
    verdict only if the difference is certainly beyond ×1.5.
    """
    index, other_index = first.found_of(quantity), second.found_of(quantity)
    scenario_names = {scenario.name for scenario in first.run.scenarios if quantity in (STEP, *scenario.quantities)}
    cells = [
        cell
        for cell in index.cells
        if cell.scenario in scenario_names and cell in index.series and cell in other_index.series
    ]
    matched_cells = [
        _match_cell(cell, index, other_index, same_software(cell, first.run, second.run)) for cell in cells
    ]
    family = [pair for pair in matched_cells if pair.judged]
    log_margin = math.log1p(margin)
    is_withheld = is_beyond([index.control, other_index.control], log_margin)
    differences = _compute_differences(family)
    bias = np.array([_combine_errors(pair.cell, index, other_index) for pair in family])
    judged_changes = _judge_changes(family, differences, log_margin, bias, is_withheld=is_withheld)
    base, is_unchanged = _choose_base(family)
    without_shift = (
        _judge_changes(family, subtract_others(differences, base), log_margin, bias, is_withheld=is_withheld)
        if base.size
        else {}
    )
    return Changes(
        cells=[
            CellChange(
                cell=pair.cell,
                first=combine(list(index.series[pair.cell].values())),
                second=combine(list(other_index.series[pair.cell].values())),
                change=_adapt_verdict(judged_changes.get(pair.cell) or _make_unjudged(pair), quantity),
                without_shift=(
                    _adapt_verdict(without_shift[pair.cell], quantity) if pair.cell in without_shift else None
                ),
                work=pair.work,
                same_software=pair.same_software,
                steps=pair.steps,
            )
            for pair in matched_cells
        ],
        shift=_compute_shift(differences, base, family, is_unchanged, log_margin) if base.size else None,
        only_first=_make_unpaired(index, other_index),
        only_second=_make_unpaired(other_index, index),
    )


def _adapt_verdict(judgement: Judgement, quantity: str) -> Judgement:
    """Return the judgement with a verdict that suits the quantity: `less` instead of `faster` if it isn't a time."""
    if is_time(quantity) or not judgement.verdict:
        return judgement
    return replace(judgement, verdict=judgement.verdict.of_amounts)


def _match_cell(cell: Cell, index: Lookup, other_index: Lookup, has_same_software: bool) -> _MatchedCell:
    launches = [index.numbers[cell], other_index.numbers[cell]]
    changes = cell in index.trends or cell in other_index.trends
    series_of_runs = [index.series[cell], other_index.series[cell]]
    steps = find_common_steps([*launches[0], *launches[1]]) if changes else None
    if steps:
        references = (index.references, other_index.references)
        series_of_runs = [
            series(restrict_steps(side, steps), control_logs)[cell]
            for side, control_logs in zip(launches, references, strict=True)
        ]
    return _MatchedCell(
        cell=cell,
        first=[math.log(seconds) for seconds in series_of_runs[0].values()],
        second=[math.log(seconds) for seconds in series_of_runs[1].values()],
        work=work_equivalence.compare(*launches),
        same_software=has_same_software,
        changes=changes,
        steps=steps,
    )


def _compute_differences(cells: Sequence[_MatchedCell]) -> Logs:
    """Return log(time(second) / time(first)) of each cell."""
    return subtract(means([pair.second for pair in cells]), means([pair.first for pair in cells]))


def _choose_base(family: Sequence[_MatchedCell]) -> tuple[npt.NDArray[np.intp], bool]:
    """Return the indices of the cells that define the shift, and whether their software is the same in both runs.

    Cells with the same software are used if there are enough of them, otherwise all cells; empty if there are too few.
    """
    steady_cells = np.flatnonzero([pair.is_steady for pair in family])
    unchanged_cells = np.flatnonzero([pair.is_steady and pair.same_software for pair in family])
    if unchanged_cells.size >= FEWEST_CELLS:
        return unchanged_cells, True
    return steady_cells if steady_cells.size >= FEWEST_CELLS else steady_cells[:0], False


def _combine_errors(cell: Cell, index: Lookup, other_index: Lookup) -> float:
    """Return the possible error of the log ratio of a cell in two runs, from contention in either run."""
    loss, other_loss = (fmean(lookup.losses(cell).values() or [0.0]) for lookup in (index, other_index))
    # two runs have different load, so a difference between their losses isn't an error of the subtraction
    return compute_possible_error(loss, other_loss, ERROR)


def _judge_changes(
    family: Sequence[_MatchedCell], differences: Logs, margin: float, bias: Floats, *, is_withheld: bool
) -> dict[Cell, Judgement]:
    rounds = [pair.rounds for pair in family]
    judged_family = judge(differences, margins(np.array(rounds), margin, FEWEST_ROUNDS), bias)
    outcomes = judgements(differences, judged_family, rounds, is_withheld, FEWEST_ROUNDS)
    return {pair.cell: judgement for pair, judgement in zip(family, outcomes, strict=True)}


def _make_unjudged(pair: _MatchedCell) -> Judgement:
    """Return the cell's change without a verdict: its 95 % interval if both runs have two rounds, and the reason."""
    half_width = float(half_widths(_compute_differences([pair]), ALPHA)[0]) if pair.rounds > 1 else None
    difference = fmean(pair.second) - fmean(pair.first)
    reason = Withheld.TREND if pair.lacks_common_steps else Withheld.FEW_ROUNDS
    return make_unjudged(difference, half_width, pair.rounds, 1.0 - ALPHA, different_work=pair.work.differs, why=reason)


def _compute_shift(
    differences: Logs, base: npt.NDArray[np.intp], family: Sequence[_MatchedCell], is_unchanged: bool, margin: float
) -> Shift:
    shift, rounds = medians(differences, [base]), min(family[index].rounds for index in base)
    (change,) = judgements(shift, judge(shift, margin), [rounds], lost=False)
    return Shift(change, base.size, is_unchanged)


def _make_unpaired(index: Lookup, other_index: Lookup) -> list[UnpairedCell]:
    return [
        UnpairedCell(cell, other_index.status(cell))
        for cell in index.cells
        if cell in index.series and cell not in other_index.series
    ]
