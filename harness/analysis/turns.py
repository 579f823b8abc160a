"""Side effects of interleaving: checked in every interleaved run, on the log scale.

There are four checks. `alone`: the sequential samples at the end of each launch, against its turns. Per turn: the two
launches of one cell. Samples by their place in the turn, and by the cell measured just before: the rest of a sample's
log time beside its launch's mean and its turn's mean. And the CPU time of processes while other cells were timed.

The order in which each cell follows each other one equally often is from E. J. Williams, "Experimental designs balanced
for the estimation of residual effects of treatments", Australian Journal of Scientific Research A 2, 1949.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.analysis.cell_index import Lookup
from harness.analysis.moderation import Residual, moderate, residual
from harness.analysis.rounds import centre, taken
from harness.analysis.statistics import RESOLUTION, Estimate, Floats, half_widths, means, student
from harness.analysis.verdicts import shown_alpha
from harness.model.launch import Launch, Role
from harness.model.scenario import Cell

#: The level of what is found of place and predecessor. With as few turns as a run has it comes to about 1 % of runs in
#: which something is found where there is nothing (tests/analysis/test_turns.py).
ALPHA = 0.005
#: What is found of them is larger than this share of the margin: less moves no verdict.
SHARE = 1.0 / 3.0
#: Fewer turns, less one a block, show nothing of place and predecessor.
FEWEST_TURNS = 10
#: A sample counts as at most this multiple of its launch's median distance from its expected value.
FARTHEST = 5.0
#: A process that waits for its turn may use this share of a CPU.
BUSY = 0.01


@dataclass(frozen=True, slots=True)
class NonInterleavedRatio:
    """A comparison's ratio from sequential samples, relative to its interleaved ratio.

    `is_found`: the interval, at 1 - 0.05/m for m comparisons of the table, excludes 1.
    """

    cell: Cell
    other: Cell
    estimate: Estimate
    is_found: bool


@dataclass(frozen=True, slots=True)
class Deviation:
    """The ratio of sample time at one place of the turn (from 0), or after one cell, to sample time elsewhere.

    It is the largest over all places, or cells; found ones come first. `is_found`: the interval, at a joint level of
    99.5 %, excludes 1, and it is beyond a third of the margin.
    """

    at: int | Cell
    estimate: Estimate
    is_found: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """The share of a CPU that a cell's process used, at most, while others were timed."""

    cell: Cell
    share: float
    is_found: bool


@dataclass(frozen=True, slots=True)
class Turns:
    """The interleaving of a run, and the result of its checks.

    `launches` that count were interleaved, and `others` weren't; `turns` are their numbers of turns, smallest first. At
    most `alive` launches ran at a time, and the cells of a round were in at most `blocks` blocks. `alone` has every
    comparison with enough data. `scatter` is the standard deviation of the log ratio of two launches of one cell in one
    turn, and `correlation` the correlation of successive turns. `place` and `predecessor` are the largest deviations,
    and `waiting` is the cell that used most of a CPU between its turns; None without enough data.
    """

    launches: int
    others: int
    turns: Sequence[int]
    alive: int
    blocks: int
    alone: Sequence[NonInterleavedRatio]
    scatter: float | None
    correlation: float | None
    place: Deviation | None
    predecessor: Deviation | None
    waiting: Waiting | None


def turns(launches: Sequence[Launch], alone: Sequence[NonInterleavedRatio], margin: float) -> Turns | None:
    """What the launches that count and gave a number tell; `margin` is on the log scale. None where none took turns."""
    took = [launch for launch in launches if launch.places]
    if not took:
        return None
    together = _together(took)
    place, predecessor = _deviations(list(together.values()), margin)
    scatter, correlation = _per_turn(together.values())
    blocks: dict[tuple[str, int], set[int]] = defaultdict(set)
    for launch in took:
        blocks[launch.group, launch.round].add(launch.block)
    return Turns(
        launches=len(took),
        others=len(launches) - len(took),
        turns=sorted({len(launch.samples) for launch in took}),
        alive=max(map(len, together.values())),
        blocks=max(map(len, blocks.values())),
        alone=alone,
        scatter=scatter,
        correlation=correlation,
        place=place,
        predecessor=predecessor,
        waiting=_waiting(took),
    )


def alone(pairs: Sequence[tuple[Cell, Cell]], found: Lookup) -> list[Estimate | None]:
    """Return for each pair (cell, other) its sequential ratio relative to its interleaved ratio; None if unknown.

    Each launch has d = log(seconds per step alone / interleaved), and each round the mean d of the cell's launches
    minus the mean d of the other cell's. The result is the mean over rounds (at least two) with its t interval at 1 -
    0.05/m for m pairs with data. The variance is moderated with the residual of the group's d, as for the comparison.
    """
    cells = dict.fromkeys(cell for pair in pairs for cell in pair)
    shifts = {cell: _shifts(found.numbers.get(cell, ())) for cell in cells}
    rounds = [sorted(shifts[cell].keys() & shifts[other].keys()) for cell, other in pairs]
    can_tell = [index for index, both in enumerate(rounds) if len(both) > 1]
    family = [(*pairs[index], rounds[index]) for index in can_tell]
    told: list[Estimate | None] = [None] * len(pairs)
    if not family:
        return told
    logs = means([[fmean(shifts[a][r]) - fmean(shifts[b][r]) for r in both] for a, b, both in family])
    weights = [fmean(1.0 / len(shifts[a][r]) + 1.0 / len(shifts[b][r]) for r in both) for a, b, both in family]
    groups = {group: _residual(group, found) for group in {found.groups.get(a, "") for a, *_ in family}}
    residuals = [groups[found.groups.get(a, "")] for a, *_ in family]
    logs = moderate(logs, np.array(weights), residuals, [found.machine(a) for a, *_ in family])
    halves = half_widths(logs, shown_alpha(len(family)))
    for index, mean, half in zip(can_tell, logs.mean.tolist(), halves.tolist(), strict=True):
        told[index] = Estimate.from_log(mean, len(rounds[index]), half)
    return told


def is_bias(shift: Estimate | None) -> bool:
    """Return whether the sequential ratio differs from the interleaved one: the interval excludes 1."""
    return bool(shift and shift.interval and 1.0 not in shift.interval)


def _shifts(launches: Iterable[Launch]) -> dict[int, list[float]]:
    """Return log(seconds per step alone / interleaved) of each launch with both, by round."""
    found: dict[int, list[float]] = defaultdict(list)
    for launch in launches:
        shift = _shift(launch)
        if shift is not None:
            found[launch.round].append(shift)
    return found


def _shift(launch: Launch) -> float | None:
    """Return log(seconds per step alone / interleaved), of CPU time if there was contention and CPU time is known."""
    steps = sum(sample.steps for sample in launch.alone)
    lengths = [sample.seconds for sample in launch.alone]
    there = centre(launch)
    if taken(launch):
        # contention is known for all samples together, not for the sequential ones
        own = [sample.cpu_seconds or 0.0 for sample in launch.samples]
        own_alone = [sample.cpu_seconds or 0.0 for sample in launch.alone]
        if all(own) and all(own_alone):
            lengths, there = own_alone, math.fsum(own) / launch.steps
    seconds = math.fsum(lengths)
    return math.log(seconds / steps / there) if steps and seconds > 0.0 else None


def _residual(group: str, found: Lookup) -> Residual | None:
    """Return the residual variance of the shifts of a group's launches."""
    cells = [cell for cell, of in found.groups.items() if of == group]
    made = [
        (cell, number, shift)
        for cell in cells
        for number, each in _shifts(found.numbers.get(cell, ())).items()
        for shift in each
    ]
    return residual(*map(list, zip(*made, strict=True))) if made else None


def _together(took: Iterable[Launch]) -> dict[tuple[str, int, int], list[Launch]]:
    """Return the launches that ran interleaved, by group, round and block."""
    found: dict[tuple[str, int, int], list[Launch]] = defaultdict(list)
    for launch in took:
        found[launch.group, launch.round, launch.block].append(launch)
    return found


def _per_turn(blocks: Iterable[Sequence[Launch]]) -> tuple[float | None, float | None]:
    """Return standard deviation and lag-1 correlation of the log ratio of a cell's two launches per turn.

    Both are pooled over rounds, without the mean difference of a round's launches.
    """
    squares = products = freedom = 0.0
    for block in blocks:
        controls = [each for each in block if each.role is Role.CONTROL]
        firsts = [each for each in block for other in controls if each.role is Role.MEASURE and each.cell == other.cell]
        if not firsts:
            continue
        rates, _ = _log_rates([firsts[0], controls[0]])
        away = rates[1] - rates[0]
        if away.size > 1:
            away = away - away.mean()
            squares += float(away @ away)
            products += float(away[1:] @ away[:-1])
            freedom += away.size - 1.0
    if not freedom:
        return None, None
    return math.sqrt(squares / freedom), products / squares if squares else 0.0


def _log_rates(block: Sequence[Launch]) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Log seconds per step, of shape (launches, turns), of the turns of which all of the launches have a sample; these.

    A sample without a step, or of which the clock showed nothing, has no log.
    """
    count = min(min(len(launch.samples), len(launch.places)) for launch in block)
    rates = np.array([[each.seconds / (each.steps or math.inf) for each in x.samples[:count]] for x in block])
    kept = np.flatnonzero((rates > 0.0).all(axis=0))
    return np.asarray(np.log(rates[:, kept]), np.float64), kept


@dataclass(frozen=True, slots=True)
class _Table:
    """One block's samples, each of shape (launches, turns): log seconds per step, place, and the cell before (or None).

    Only turns of which all of the launches have a sample.
    """

    round: int
    logs: Floats
    places: npt.NDArray[np.intp]
    before: npt.NDArray[np.object_]


def _table(block: Sequence[Launch]) -> _Table:
    logs, kept = _log_rates(block)
    places = np.array([[launch.places[turn] for turn in kept] for launch in block], np.intp)
    before = np.full(logs.shape, None, np.object_)
    for turn, column in enumerate(places.T.tolist()):
        cells = {place: launch.cell for place, launch in zip(column, block, strict=True)}
        before[:, turn] = [cells.get(place - 1) for place in column]
    return _Table(block[0].round, logs, places, before)


def _deviations(blocks: Iterable[Sequence[Launch]], margin: float) -> tuple[Deviation | None, Deviation | None]:
    """The largest by place, and by predecessor.

    What is looked at is what is left of log times beside the means of their launch and of their turn, by least squares:
    first each place by itself, then each predecessor beside all places. Within a turn that is not independent, so the
    standard error is clustered by turn: √(Σ (Σ z·r)²) / Σ z², the inner sum over a turn's samples, where z is what is
    left of being there, and r of the log time. (K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using
    generalized linear models", Biometrika 73, 1986.)
    """
    tables = [table for block in blocks if len(block) > 1 and (table := _table(block)).logs.shape[1] > 1]
    fits = [fit for fit in _fits(tables) if fit[-1] >= FEWEST_TURNS] if tables else []
    found: list[tuple[bool, float, Deviation]] = []
    for where, slope, error, freedom in fits:
        half = student(freedom, 1.0 - ALPHA / len(fits)) * error
        is_found = abs(slope) > max(half, SHARE * margin)
        estimate = Estimate.from_log(slope, len({table.round for table in tables}), half)
        found.append((is_found, abs(slope) + half, Deviation(where, estimate, is_found)))

    def largest(kind: type) -> Deviation | None:
        of_kind = [each for each in found if isinstance(each[-1].at, kind)]
        return max(of_kind, key=lambda each: each[:2])[-1] if of_kind else None

    return largest(int), largest(Cell)


def _fits(tables: Sequence[_Table]) -> Iterator[tuple[int | Cell, float, float, float]]:
    """By place, and by predecessor beside all places: the slope, its standard error, and its degrees of freedom."""

    def left(values: Iterable[npt.NDArray[Any]]) -> Floats:
        return np.concatenate([_left(each).ravel() for each in values])

    sizes = [table.logs.shape for table in tables]
    starts = np.cumsum([0, *(turns for _, turns in sizes[:-1])])
    # the block of each sample, and its turn among those of all blocks
    block = np.repeat(np.arange(len(tables)), [launches * turns for launches, turns in sizes])
    turn = np.concatenate([np.tile(np.arange(n) + at, of) for (of, n), at in zip(sizes, starts, strict=True)])
    turns = np.array([n for _, n in sizes])
    logs = np.concatenate([_held(_left(table.logs)).ravel() for table in tables])
    places = {place: None for table in tables for place in table.places.ravel().tolist()}
    at = np.array([left(table.places == place for table in tables) for place in places])
    for place, z in zip(places, at, strict=True):
        yield place, *_fit(z, logs, block, turn, turns)
    logs = logs - at.T @ np.linalg.lstsq(at.T, logs, rcond=None)[0]
    for cell in {cell: None for table in tables for cell in table.before.ravel().tolist() if cell}:
        z = left(table.before == cell for table in tables)
        yield cell, *_fit(z - at.T @ np.linalg.lstsq(at.T, z, rcond=None)[0], logs, block, turn, turns)


def _left(values: npt.NDArray[Any]) -> Floats:
    """What is left beside the means of rows and of columns."""
    of_rows, of_columns = values.mean(axis=1, keepdims=True), values.mean(axis=0, keepdims=True)
    return np.asarray(values - of_rows - of_columns + values.mean(), np.float64)


def _held(left: Floats) -> Floats:
    """Return the same, limited to a multiple of the median distance of a launch's samples.

    A sample that was held up by something else shows nothing about its place, and a few of them would dominate.
    """
    most = FARTHEST * np.median(np.abs(left), axis=1, keepdims=True)
    return np.clip(left, -most, most)


def _fit(
    z: Floats, values: Floats, block: npt.NDArray[np.intp], turn: npt.NDArray[np.intp], turns: npt.NDArray[np.intp]
) -> tuple[float, float, float]:
    """Return the slope of `values` on `z`, its standard error, and its degrees of freedom: turns minus blocks.

    Only blocks in which z varies count. The freedom is 0 if it varies nowhere.
    """
    size = float(z @ z)
    if size < RESOLUTION:
        return 0.0, 0.0, 0.0
    slope = float(z @ values) / size
    tells = np.bincount(block, z**2, len(turns)) > RESOLUTION
    freedom = float(turns[tells].sum() - tells.sum())
    scores = np.bincount(turn, z * (values - slope * z))
    return slope, math.sqrt(float(scores @ scores) * turns[tells].sum() / freedom) / size, freedom


def _waiting(took: Iterable[Launch]) -> Waiting | None:
    """The cell with the largest share of a CPU between its turns."""
    shares = [
        (launch.resources["between_cpu_seconds"] / seconds, launch.cell)
        for launch in took
        if (seconds := launch.resources.get("between_seconds")) and "between_cpu_seconds" in launch.resources
    ]
    share, cell = max(shares, key=lambda each: each[0], default=(0.0, None))
    return Waiting(cell, share, share > BUSY) if cell else None
