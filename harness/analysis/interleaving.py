"""Side effects of interleaving, checked in every interleaved run.

In some turns, a launch takes several samples in succession. The first sample is interleaved. During the others, the
process has the caches for itself, and the machine is in nearly the same state. `compare_sequential` compares them, on
the log scale. If the cells of a round affect each other, the two differ. Earlier versions compared all interleaved
samples with samples at the end of a launch, which mainly showed the machine's drift. `Waiting` describes a process that
used the CPU while other processes were timed.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from harness.analysis.cell_index import Lookup
from harness.analysis.moderation import Residual, moderate, residual
from harness.analysis.rounds import compute_subtracted_share
from harness.analysis.statistics import Estimate, half_widths, means
from harness.analysis.verdicts import compute_shown_alpha
from harness.model.launch import Launch, Sample
from harness.model.scenario import Cell

#: The largest share of a CPU that a process may use while it waits for its turn.
MAX_WAITING_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class NonInterleavedRatio:
    """A comparison's ratio from samples in succession, divided by its interleaved ratio.

    `is_found`: the ratios differ significantly. The interval at the level 1 - 0.05/m, for m comparisons of the table,
    excludes 1.
    """

    cell: Cell
    other: Cell
    estimate: Estimate
    is_found: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """The largest share of a CPU that a cell's process used while it waited and other cells were timed."""

    cell: Cell
    share: float
    is_found: bool


@dataclass(frozen=True, slots=True)
class Interleaving:
    """The interleaving of a run, and the result of its checks.

    `launches` is the number of interleaved launches, and `others` is the number of other launches. Only launches that
    count are included. `turns` contains the numbers of turns that occur, smallest first. At most `alive` launches ran
    at the same time, and the cells of a round were in at most `blocks` blocks. `alone` has every comparison with enough
    sequential samples. `waiting` is the cell that used the largest share of a CPU between its turns; None if unknown.
    """

    launches: int
    others: int
    turns: Sequence[int]
    alive: int
    blocks: int
    alone: Sequence[NonInterleavedRatio]
    waiting: Waiting | None


def describe_interleaving(
    launches: Sequence[Launch], sequential_ratios: Sequence[NonInterleavedRatio]
) -> Interleaving | None:
    """Describe the interleaving of the launches that count. Return None if no launch was interleaved."""
    interleaved_launches = [launch for launch in launches if launch.places]
    if not interleaved_launches:
        return None
    launches_by_block = Counter((launch.group, launch.round, launch.block) for launch in interleaved_launches)
    blocks_by_round = Counter((group, number) for group, number, _ in launches_by_block)
    return Interleaving(
        launches=len(interleaved_launches),
        others=len(launches) - len(interleaved_launches),
        turns=sorted({len(launch.samples) for launch in interleaved_launches}),
        alive=max(launches_by_block.values()),
        blocks=max(blocks_by_round.values()),
        alone=sequential_ratios,
        waiting=_find_waiting_cell(interleaved_launches),
    )


def compare_sequential(pairs: Sequence[tuple[Cell, Cell]], lookup: Lookup) -> list[Estimate | None]:
    """Return, for each pair (cell, other), its sequential ratio divided by its interleaved ratio; None if unknown.

    Each launch has the shift d, the mean over its long turns of log(seconds of later samples / seconds of the first
    sample, per step). Each round has the difference between the mean d of the cell's launches and the mean d of the
    other cell's launches. The result is the mean over rounds (at least two), with its t interval at the level
    1 - 0.05/m for m pairs with data. As in the comparison itself, the variance is moderated with the residual variance
    of the group.
    """
    cells = dict.fromkeys(cell for pair in pairs for cell in pair)
    shifts = {cell: _find_shifts(lookup.numbers.get(cell, ())) for cell in cells}
    rounds = [sorted(shifts[cell].keys() & shifts[other].keys()) for cell, other in pairs]
    indexes = [index for index, common_rounds in enumerate(rounds) if len(common_rounds) > 1]
    family = [(*pairs[index], rounds[index]) for index in indexes]
    ratios: list[Estimate | None] = [None] * len(pairs)
    if not family:
        return ratios
    logs = means(
        [
            [fmean(shifts[cell][number]) - fmean(shifts[other][number]) for number in common_rounds]
            for cell, other, common_rounds in family
        ]
    )
    weights = [
        fmean(1.0 / len(shifts[cell][number]) + 1.0 / len(shifts[other][number]) for number in common_rounds)
        for cell, other, common_rounds in family
    ]
    groups = {
        group: _compute_shift_residual(group, lookup) for group in {lookup.groups.get(cell, "") for cell, *_ in family}
    }
    residuals = [groups[lookup.groups.get(cell, "")] for cell, *_ in family]
    logs = moderate(logs, np.array(weights), residuals, [lookup.machine(cell) for cell, *_ in family])
    halves = half_widths(logs, compute_shown_alpha(len(family)))
    for index, mean, half in zip(indexes, logs.mean.tolist(), halves.tolist(), strict=True):
        ratios[index] = Estimate.from_log(mean, len(rounds[index]), half)
    return ratios


def is_bias(shift: Estimate | None) -> bool:
    """Return whether the sequential ratio differs from the interleaved one: the interval excludes 1."""
    return bool(shift and shift.interval and 1.0 not in shift.interval)


def _find_shifts(launches: Iterable[Launch]) -> dict[int, list[float]]:
    """Return the shifts of launches by round, without launches that have no sequential samples."""
    by_round: dict[int, list[float]] = defaultdict(list)
    for launch in launches:
        shift = _compute_shift(launch)
        if shift is not None:
            by_round[launch.round].append(shift)
    return by_round


def _compute_shift(launch: Launch) -> float | None:
    """Return the mean over a launch's long turns of log(later seconds per step / first seconds per step), or None.

    If there was contention, CPU times are compared instead, if they are known. The contention of single samples isn't.
    """
    later_samples: dict[int, list[Sample]] = defaultdict(list)
    for index, sample in zip(launch.follows, launch.alone, strict=False):
        later_samples[index].append(sample)
    pairs = [(launch.samples[index], samples) for index, samples in later_samples.items()]
    every = [sample for first, later in pairs for sample in (first, *later)]
    uses_cpu_seconds = compute_subtracted_share(launch) > 0.0 and all(sample.cpu_seconds for sample in every)

    def compute_rate(samples: Sequence[Sample]) -> float:
        seconds = ((sample.cpu_seconds or 0.0) if uses_cpu_seconds else sample.seconds for sample in samples)
        return math.fsum(seconds) / max(1, sum(sample.steps for sample in samples))

    rates = [(compute_rate([first]), compute_rate(later)) for first, later in pairs]
    logs = [math.log(later / first) for first, later in rates if min(first, later) > 0.0]
    return fmean(logs) if logs else None


def _compute_shift_residual(group: str, lookup: Lookup) -> Residual | None:
    """Return the residual variance of the shifts of a group's launches."""
    cells = [cell for cell, name in lookup.groups.items() if name == group]
    points = [
        (cell, number, shift)
        for cell in cells
        for number, shifts in _find_shifts(lookup.numbers.get(cell, ())).items()
        for shift in shifts
    ]
    return residual(*map(list, zip(*points, strict=True))) if points else None


def _find_waiting_cell(launches: Iterable[Launch]) -> Waiting | None:
    """Return the cell that used the largest share of a CPU between its turns; None if unknown."""
    shares = [
        (launch.resources["between_cpu_seconds"] / seconds, launch.cell)
        for launch in launches
        if (seconds := launch.resources.get("between_seconds")) and "between_cpu_seconds" in launch.resources
    ]
    share, cell = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    return Waiting(cell, share, share > MAX_WAITING_SHARE) if cell else None
