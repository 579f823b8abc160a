"""Non-stationary steps: the time per step depends on the number of steps before it.

Neighboring samples of one launch are correlated, and the machine's speed changes slowly. So a test over samples can't
show that a step changes. Launches are fresh processes, so the test is over launches. Each launch gives one number: how
much slower its last samples are than its first samples. This number is the Theil-Sen slope (H. Theil, "A rank-invariant
method of linear and polynomial regression analysis", 1950; P. K. Sen, JASA 63, 1968). The slope is computed from ten
means of samples, so that a remainder of the warm-up has little effect.

A cell has a trend if two tests show one. First, a t test over launches shows that the mean of these numbers is beyond
the margin. Second, more pairs of a launch's ten means change in one direction than expected by chance (H. B. Mann,
"Nonparametric tests against trend", Econometrica 13, 1945; for several series R. M. Hirsch and J. R. Slack, Water
Resources Research 20, 1984). The second test is needed because three samples that each have one of two speeds may have
the same slope in three launches.

If the clock speed falls in every launch, as with CPU turbo or GPU boost, the time of every step changes. So the logs
minus the logs of the group's other cells must also show the trend: sample by sample if the cells are interleaved, and
otherwise part by part, separately for each round. Changes that all cells of a group have in common come from the
machine. An exception is a change by a factor of 2, which is too large for clock speeds.

If samples have CPU time, the CPU time is judged too, because it doesn't include contention. A trend of the CPU time
counts if the wall-clock time changes in the same direction, by more than the margin.

If there are too few launches for these tests, a cell has a trend in two cases. In the first case, its time per step
changes by a factor of 2, and nearly all pairs in each launch change in one direction. The probability of this by chance
must be below one in a million, or below the level of the tests above if there are at least three launches. In the
second case, samples are significantly slower than the warm-up's steps, by a factor of 1.5.

bench/simulation/trends.md has the rate of false trends.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from harness.analysis.distributions import Floats
from harness.analysis.rounds import compute_subtracted_share
from harness.analysis.sample_logs import (
    PARTS,
    LogsByLaunch,
    compute_logs,
    compute_relative_logs,
    divide_launches,
    find_cuts,
    group_by_size,
)
from harness.analysis.statistics import RESOLUTION, exp_limited, student, variance
from harness.analysis.step_ranges import count_before, find_sample_bounds
from harness.model.launch import Clock, Launch
from harness.model.scenario import Cell

#: The level of both tests. At this level, less than 1 % of the cells whose steps don't change get a trend, for every
#: simulated kind of interference (bench/simulation/trends.md).
ALPHA = 0.005

#: The fewest samples of a launch that is tested.
FEWEST_SAMPLES = 2

#: A change by this factor (log scale) is a trend even with few launches, under the two conditions below.
STRONG_CHANGE = math.log(2.0)
#: At most this share of the pairs of each launch's parts contradicts a strong change.
MOST_CONTRADICTIONS = 0.05
#: The largest probability of such pairs by chance, if there are fewer launches than FEWEST_LAUNCHES; otherwise ALPHA.
CHANCE_LEVEL, FEWEST_LAUNCHES = 1e-6, 3

#: In a group of at least this many cells, a trend of one cell can be distinguished from effects of the machine on all.
FEWEST_CELLS = 3

#: A step becomes slower if its samples are slower than the warm-up by more than this factor (log scale).
WARM_UP_GROWTH = math.log(1.5)


@dataclass(frozen=True, slots=True)
class TrendStage:
    """The time per step at one stage of a launch: `seconds` per step after `step` steps, as means over launches."""

    step: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The change of a step during measurement. `factor` is the time per step at the end over the time at the start.

    `stages` are in order. If all launches recorded the number of warm-up steps (`counted`), stages count these steps
    too. The first stage is the warm-up if samples are slower than the warm-up. `unsure`: the machine may be the cause,
    because the group has fewer than two other cells that would show this, and the change is below a factor of 2.
    """

    factor: float
    stages: Sequence[TrendStage]
    counted: bool
    unsure: bool = False


def find_trends(launches_by_cell: Mapping[Cell, Sequence[Launch]], margin: float) -> dict[Cell, Trend]:
    """Return the trend of each cell whose step changes by more than `margin` (log scale).

    `launches_by_cell` contains each cell's launches with a result.
    """
    groups: dict[str, dict[Cell, Sequence[Launch]]] = defaultdict(dict)
    for cell, launches in launches_by_cell.items():
        groups[launches[-1].group][cell] = launches
    trend_by_cell: dict[Cell, Trend] = {}
    for group in groups.values():  # one after the other, because the logs of all samples of a run use much memory
        trend_by_cell |= _find_group_trends(group, margin)
    return {cell: trend_by_cell[cell] for cell in launches_by_cell if cell in trend_by_cell}


def _find_group_trends(launches_by_cell: Mapping[Cell, Sequence[Launch]], margin: float) -> dict[Cell, Trend]:
    usable_launches = [launch for launches in launches_by_cell.values() for launch in _list_usable(launches)]
    logs = [compute_logs(usable_launches, clock) for clock in (Clock.WALL, Clock.CPU)]
    relative_logs = [compute_relative_logs(usable_launches, clock_logs) for clock_logs in logs]
    is_small = len({launch.cell for launch in usable_launches}) < FEWEST_CELLS
    return {
        cell: replace(trend, unsure=is_small and abs(math.log(trend.factor)) < STRONG_CHANGE)
        for cell, launches in launches_by_cell.items()
        if (trend := _find_trend(launches, logs, relative_logs, margin))
    }


def _list_usable(launches: Sequence[Launch]) -> list[Launch]:
    return [launch for launch in launches if len(launch.samples) >= FEWEST_SAMPLES]


def _find_trend(
    launches: Sequence[Launch], logs: Sequence[LogsByLaunch], relative_logs: Sequence[LogsByLaunch], margin: float
) -> Trend | None:
    tested_launches = _list_usable(launches)
    time, cpu = (
        _make_views(tested_launches, clock_logs, clock_relative)
        for clock_logs, clock_relative in zip(logs, relative_logs, strict=True)
    )
    is_changing = has_trend(time, margin)
    if time and not is_changing and not any(launch.places for launch in tested_launches):
        # clock speeds don't fall this much; for interleaved cells, load on the machine may have a larger effect
        is_changing = is_doubled(time[0])
    if cpu and not is_changing:
        # CPU time doesn't include contention; but its trend counts only together with a trend of the wall-clock time
        mean = fmean(compute_changes(time[0]))
        is_changing = has_trend(cpu, margin) and abs(mean) > margin and mean * fmean(compute_changes(cpu[0])) > 0.0
    warm_up = _find_warm_up_growth(tested_launches)
    if not is_changing and not warm_up:
        return None
    stages = [*([warm_up] if warm_up else []), *_average_stages(tested_launches)]
    factor = stages[-1].seconds / stages[0].seconds if warm_up else exp_limited(fmean(compute_changes(time[0])))
    return Trend(factor, stages, counted=all(count_before(launch) is not None for launch in tested_launches))


def _make_views(launches: Sequence[Launch], logs: LogsByLaunch, relative_logs: LogsByLaunch) -> list[list[Floats]]:
    """Return the logs of the launches' parts, and, if known, their logs relative to the group's other cells.

    An effect of the machine on all cells isn't a trend of one cell. But if only one cell changes, the other cells
    change relative to it. So a trend must be in both views. The result is empty if a launch has no data.
    """
    names = [id(launch) for launch in launches]
    if not names or not all(name in logs for name in names):
        return []
    views = [
        divide_launches([logs[name] for name in names]),
        [relative_logs[name] for name in names if name in relative_logs],
    ]
    return [view for view in views if view]


def has_trend(views: Sequence[Sequence[Floats]], margin: float) -> bool:
    """Return whether a step changes by more than `margin` (log scale), in the same direction in all views.

    A view has the logs of each launch's `parts`. The result is False without views, or if a view is empty.
    """
    directions = {_find_direction(view, margin) if view else 0 for view in views}
    return directions in ({1}, {-1})


def _find_direction(launches: Sequence[Floats], margin: float) -> int:
    """Return 1 if a step becomes slower by more than `margin`, -1 if it becomes faster, and 0 if neither is certain."""
    slopes = compute_changes(launches).tolist()
    is_significant = _is_beyond(slopes, margin) and count_falling_pairs(launches)[2] < ALPHA
    return (1 if fmean(slopes) > 0.0 else -1) if is_significant or is_doubled(launches) else 0


def is_doubled(launches: Sequence[Floats]) -> bool:
    """Return whether the time per step doubles or halves, and nearly all pairs of parts of each launch agree."""
    falling_pairs, pairs, probability = count_falling_pairs(launches)
    is_one_way = bool(
        np.all(falling_pairs <= MOST_CONTRADICTIONS * pairs)
        or np.all(pairs - falling_pairs <= MOST_CONTRADICTIONS * pairs)
    )
    is_large = abs(fmean(compute_changes(launches))) > STRONG_CHANGE
    return is_large and is_one_way and probability < (CHANCE_LEVEL if len(launches) < FEWEST_LAUNCHES else ALPHA)


def compute_changes(launches: Sequence[Floats]) -> Floats:
    """Return, for each launch, how much longer a step takes in the last part than in the first: the Theil-Sen slope.

    `launches` contains the logs of each launch's parts. The result is on the log scale.
    """
    slopes = np.empty(len(launches))
    for size, indexes in group_by_size(launches).items():
        earlier_parts, later_parts = _list_pairs(size)
        parts = np.array([launches[index] for index in indexes])
        rises = (parts[:, later_parts] - parts[:, earlier_parts]) / (later_parts - earlier_parts)
        slopes[indexes] = np.median(rises, axis=1) * (size - 1)
    return slopes


def _is_beyond(values: Sequence[float], margin: float) -> bool:
    """Return whether the mean of independent values is significantly beyond ± margin, at the level ALPHA."""
    count = len(values)
    if count < 2:
        return False
    error = math.sqrt(max(variance(values), RESOLUTION**2) / count)
    return abs(fmean(values)) - margin > student(count - 1, 1.0 - ALPHA) * error


def count_falling_pairs(launches: Sequence[Floats]) -> tuple[Floats, Floats, float]:
    """Return each launch's number of falling pairs of parts, its number of pairs, and a probability.

    A pair of equal parts is half a falling pair. The probability is for a total number of falling pairs that is at
    least as extreme by chance alone (two-sided).
    """
    falling_pairs, pairs = np.empty(len(launches)), np.empty(len(launches))
    by_size = group_by_size(launches)
    for size, indexes in by_size.items():
        earlier_parts, later_parts = _list_pairs(size)
        logs = np.array([launches[place] for place in indexes])
        rises = np.sign(logs[:, later_parts] - logs[:, earlier_parts])
        falling_pairs[indexes] = (1.0 - rises).sum(axis=1) / 2.0
        pairs[indexes] = earlier_parts.size
    probabilities = _sum_inversions(tuple((size, len(indexes)) for size, indexes in by_size.items()))
    count = float(falling_pairs.sum())
    tail = math.ceil(min(count, probabilities.size - 1 - count))
    return falling_pairs, pairs, 2.0 * float(probabilities[: tail + 1].sum())


# cells with the same numbers of samples share a result, so a run usually needs one or two results
@lru_cache(maxsize=4)
def _sum_inversions(launches: tuple[tuple[int, int], ...]) -> Floats:
    """Return the probability of 0, 1, 2, … falling pairs in all launches of a cell together, in a random order.

    `launches` contains pairs: a number of parts, and the number of launches with this number of parts.
    """
    # the distribution of the sum, as a product of Fourier transforms: successive convolutions would take quadratic time
    size = sum(launch_count * (count * (count - 1) // 2) for count, launch_count in launches) + 1
    padded_size = 1 << size.bit_length()  # a transform of a length with large factors is slow
    spectrum = np.ones(padded_size // 2 + 1, np.complex128)
    for count, launch_count in launches:
        spectrum *= np.fft.rfft(_count_inversions(count), padded_size) ** launch_count
    return np.maximum(np.fft.irfft(spectrum, padded_size)[:size], 0.0)


@lru_cache(maxsize=PARTS)
def _list_pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all pairs of `count` parts: the indices of the earlier parts, and the indices of the later parts."""
    return np.triu_indices(count, 1)


@lru_cache(maxsize=PARTS)
def _count_inversions(count: int) -> Floats:
    """Return the probability of 0, 1, 2, … falling pairs among `count` values in a random order."""
    probabilities = np.ones(1)
    for size in range(2, count + 1):
        probabilities = np.convolve(probabilities, np.full(size, 1.0 / size))
    return probabilities


def _average_stages(launches: Sequence[Launch]) -> list[TrendStage]:
    """Return the time per step in each of at most ten parts of a launch: geometric means over launches."""
    count = min(PARTS, *(len(launch.samples) for launch in launches))
    middles, logs = [], []
    for launch in launches:
        starts, ends = find_sample_bounds(launch)
        first_samples, lengths = find_cuts(starts.size, count)
        middles.append((starts[first_samples] + ends[first_samples + lengths - 1]) / 2.0)
        remaining_share = 1.0 - compute_subtracted_share(launch)
        step_seconds = [remaining_share * sample.seconds / max(sample.steps, 1) for sample in launch.samples]
        logs.append(np.log(np.maximum(np.add.reduceat(step_seconds, first_samples) / lengths, 1e-300)))
    return [
        TrendStage(step, seconds)
        for step, seconds in zip(
            np.mean(middles, axis=0).tolist(), np.exp(np.maximum(np.mean(logs, axis=0), -700.0)).tolist(), strict=True
        )
    ]


def compute_warm_up_step(launch: Launch) -> float | None:
    """Return the seconds per step of the warm-up, if the launch recorded its number of steps."""
    seconds, steps = launch.phases.get("warm up"), launch.resources.get("warmup_steps")
    return seconds / steps if seconds and steps else None


def _find_warm_up_growth(launches: Sequence[Launch]) -> TrendStage | None:
    """Return the warm-up as a stage, if samples are slower than the warm-up by a factor of 1.5 or more.

    The stage has the step in the middle of the warm-up. The result is None if samples aren't significantly slower.
    Samples that are faster than the warm-up are normal, because a first call compiles.
    """
    warm_up_seconds = [step for launch in launches if (step := compute_warm_up_step(launch))]
    if not warm_up_seconds or len(warm_up_seconds) < len(launches):
        return None
    logs = [math.log(launch.mean / warm_up) for launch, warm_up in zip(launches, warm_up_seconds, strict=True)]
    if fmean(logs) < WARM_UP_GROWTH or not _is_beyond(logs, WARM_UP_GROWTH):
        return None
    middle_step = fmean(launch.resources["warmup_steps"] / 2.0 for launch in launches)
    # contention is only known for the samples
    uncontended_logs = (
        math.log(warm_up * (1.0 - compute_subtracted_share(launch)))
        for launch, warm_up in zip(launches, warm_up_seconds, strict=True)
    )
    return TrendStage(middle_step, exp_limited(fmean(uncontended_logs)))
