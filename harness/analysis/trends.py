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

docs/dev/validation/simulation-trends.md has the rate of false trends.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from harness.analysis.distributions import Floats
from harness.analysis.rounds import compute_subtracted_share
from harness.analysis.statistics import RESOLUTION, Interval, exp_limited, student, variance
from harness.analysis.work_equivalence import CALLED
from harness.model.launch import Launch, Sample, Samples
from harness.model.scenario import Cell

#: The level of both tests. At this level, less than 1 % of the cells whose steps don't change get a trend, for every
#: simulated kind of interference (docs/dev/validation/simulation-trends.md).
ALPHA = 0.005

#: PARTS: the number of parts into which a launch's samples are divided. FEWEST: the fewest samples of a launch that is
#: tested. FEWEST_IN_RANGE: the fewest samples in a range of steps for a comparison in this range.
PARTS, FEWEST, FEWEST_IN_RANGE = 10, 2, 3

#: A change by the factor STRONG_CHANGE (log scale) is a trend even with few launches, if at most the share
#: MOST_CONTRADICTIONS of the pairs of each launch's parts contradict it, and if the probability of such pairs by chance
#: is below CHANCE_LEVEL.
STRONG_CHANGE, MOST_CONTRADICTIONS, CHANCE_LEVEL = math.log(2.0), 0.05, 1e-6
#: With at least this many launches, it is enough if the probability is below ALPHA.
FEWEST_TESTED = 3

#: In a group of at least this many cells, a trend of one cell can be distinguished from effects of the machine on all.
FEWEST_CELLS = 3

#: A step becomes slower if its samples are slower than the warm-up by more than this factor (log scale).
WARM_UP_GROWTH = math.log(1.5)


# the function that returns the times of samples: wall-clock or CPU time
_Measure = Callable[[Samples], Sequence[float] | None]

# the logs of the time per step of each sample, by the `id` of the launch; launches that didn't record it are missing
_LogsByLaunch = Mapping[int, Floats]


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


def trends(numbers: Mapping[Cell, Sequence[Launch]], margin: float) -> dict[Cell, Trend]:
    """Return the trend of each cell whose step changes by more than `margin` (log scale).

    `numbers` contains each cell's launches with a result.
    """
    groups: dict[str, dict[Cell, Sequence[Launch]]] = defaultdict(dict)
    for cell, launches in numbers.items():
        groups[launches[-1].group][cell] = launches
    trend_by_cell: dict[Cell, Trend] = {}
    for group in groups.values():  # one after the other, because the logs of all samples of a run use much memory
        trend_by_cell |= _find_trends(group, margin)
    return {cell: trend_by_cell[cell] for cell in numbers if cell in trend_by_cell}


def _find_trends(numbers: Mapping[Cell, Sequence[Launch]], margin: float) -> dict[Cell, Trend]:
    usable_launches = [launch for launches in numbers.values() for launch in launches if len(launch.samples) >= FEWEST]
    logs = [_compute_logs(usable_launches, measure) for measure in (_get_seconds, _get_cpu_seconds)]
    relative_logs = [_compute_relative_logs(usable_launches, clock_logs) for clock_logs in logs]
    is_small = len({launch.cell for launch in usable_launches}) < FEWEST_CELLS
    return {
        cell: replace(trend, unsure=is_small and abs(math.log(trend.factor)) < STRONG_CHANGE)
        for cell, launches in numbers.items()
        if (trend := _find_trend(launches, logs, relative_logs, margin))
    }


def _find_trend(
    launches: Sequence[Launch], logs: Sequence[_LogsByLaunch], relative_logs: Sequence[_LogsByLaunch], margin: float
) -> Trend | None:
    tested_launches = [launch for launch in launches if len(launch.samples) >= FEWEST]
    time, cpu = (
        _make_views(tested_launches, clock_logs, clock_relative)
        for clock_logs, clock_relative in zip(logs, relative_logs, strict=True)
    )
    is_changing = changes(time, margin)
    if time and not is_changing and not any(launch.places for launch in tested_launches):
        # clock speeds don't fall this much; for interleaved cells, load on the machine may have a larger effect
        is_changing = is_doubled(time[0])
    if cpu and not is_changing:
        # CPU time doesn't include contention; but its trend counts only together with a trend of the wall-clock time
        mean = fmean(change(time[0]))
        is_changing = changes(cpu, margin) and abs(mean) > margin and mean * fmean(change(cpu[0])) > 0.0
    warm_up = _find_warm_up_growth(tested_launches)
    if not is_changing and not warm_up:
        return None
    stages = _average_stages(tested_launches)
    if warm_up:
        steps, seconds = warm_up
        stages = [TrendStage(steps, seconds), *stages]
    factor = stages[-1].seconds / stages[0].seconds if warm_up else exp_limited(fmean(change(time[0])))
    return Trend(factor, stages, counted=all(count_before(launch) is not None for launch in tested_launches))


def _make_views(launches: Sequence[Launch], logs: _LogsByLaunch, relative_logs: _LogsByLaunch) -> list[list[Floats]]:
    """Return the logs of the launches' parts, and, if known, their logs relative to the group's other cells.

    An effect of the machine on all cells isn't a trend of one cell. But if only one cell changes, the other cells
    change relative to it. So a trend must be in both views. The result is empty if a launch has no data.
    """
    names = [id(launch) for launch in launches]
    if not names or not all(name in logs for name in names):
        return []
    views = [_divide([logs[name] for name in names]), [relative_logs[name] for name in names if name in relative_logs]]
    return [view for view in views if view]


def changes(views: Sequence[Sequence[Floats]], margin: float) -> bool:
    """Return whether a step changes by more than `margin` (log scale), in the same direction in all views.

    A view has the logs of each launch's `parts`. The result is False without views, or if a view is empty.
    """
    directions = {_find_direction(view, margin) if view else 0 for view in views}
    return directions in ({1}, {-1})


def _find_direction(launches: Sequence[Floats], margin: float) -> int:
    """Return 1 if a step becomes slower by more than `margin`, -1 if it becomes faster, and 0 if neither is certain."""
    slopes = change(launches).tolist()
    is_significant = _is_beyond(slopes, margin) and _count_falling_pairs(launches)[2] < ALPHA
    return (1 if fmean(slopes) > 0.0 else -1) if is_significant or is_doubled(launches) else 0


def is_doubled(launches: Sequence[Floats]) -> bool:
    """Return whether the time per step doubles or halves, and nearly all pairs of parts of each launch agree."""
    falling_pairs, pairs, probability = _count_falling_pairs(launches)
    is_one_way = bool(
        np.all(falling_pairs <= MOST_CONTRADICTIONS * pairs)
        or np.all(pairs - falling_pairs <= MOST_CONTRADICTIONS * pairs)
    )
    is_large = abs(fmean(change(launches))) > STRONG_CHANGE
    return is_large and is_one_way and probability < (CHANCE_LEVEL if len(launches) < FEWEST_TESTED else ALPHA)


def change(launches: Sequence[Floats]) -> Floats:
    """Return, for each launch, how much longer a step takes in the last part than in the first: the Theil-Sen slope.

    `launches` contains the logs of each launch's parts. The result is on the log scale.
    """
    slopes = np.empty(len(launches))
    for size, indexes in _group_by_size(launches).items():
        earlier_parts, later_parts = _list_pairs(size)
        parts = np.array([launches[index] for index in indexes])
        rises = (parts[:, later_parts] - parts[:, earlier_parts]) / (later_parts - earlier_parts)
        slopes[indexes] = np.median(rises, axis=1) * (size - 1)
    return slopes


def _group_by_size(launches: Sequence[Floats]) -> dict[int, list[int]]:
    """Return the indices of launches by their number of values."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for index, logs in enumerate(launches):
        by_size[logs.size].append(index)
    return by_size


def parts(logs: Floats, count: int = PARTS) -> Floats:
    """Divide a launch's samples (at least one) into `count` parts, and return the log of each part's seconds per step.

    `logs` has the log of the seconds per step of each sample; several launches have one row each. With fewer samples
    than `count`, each sample is a part.
    """
    starts, lengths = _find_cuts(logs.shape[-1], min(count, logs.shape[-1]))
    first_logs = logs[..., :1]
    relative_times = np.exp(logs - first_logs)
    return np.asarray(np.log(np.add.reduceat(relative_times, starts, axis=-1) / lengths) + first_logs)


def _divide(launches: Sequence[Floats], count: int = PARTS) -> list[Floats]:
    """Return the `parts` of each launch."""
    parts_by_index: dict[int, Floats] = {}
    for indexes in _group_by_size(launches).values():
        parts_by_index |= zip(indexes, parts(np.array([launches[index] for index in indexes]), count), strict=True)
    return [parts_by_index[index] for index in range(len(launches))]


@lru_cache(maxsize=1024)
def _find_cuts(size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide `size` samples into `count` parts, and return the start and the number of samples of each part."""
    ends = np.linspace(0.0, size, count + 1).round().astype(np.intp)
    return ends[:-1], np.diff(ends)


def _is_beyond(values: Sequence[float], margin: float) -> bool:
    """Return whether the mean of independent values is significantly beyond ± margin, at the level ALPHA."""
    count = len(values)
    if count < 2:
        return False
    error = math.sqrt(max(variance(values), RESOLUTION**2) / count)
    return abs(fmean(values)) - margin > student(count - 1, 1.0 - ALPHA) * error


def _count_falling_pairs(launches: Sequence[Floats]) -> tuple[Floats, Floats, float]:
    """Return each launch's number of falling pairs of parts, its number of pairs, and a probability.

    A pair of equal parts is half a falling pair. The probability is for a total number of falling pairs that is at
    least as extreme by chance alone (two-sided).
    """
    falling_pairs, pairs = np.empty(len(launches)), np.empty(len(launches))
    by_size = _group_by_size(launches)
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


def _get_seconds(samples: Samples) -> Sequence[float]:
    return samples.seconds


def _get_cpu_seconds(samples: Samples) -> Sequence[float] | None:
    return samples.cpu_seconds


def _compute_logs(launches: Iterable[Launch], measure: _Measure) -> _LogsByLaunch:
    """Return the log of the time per step of each sample, by the id of the launch.

    Launches that didn't record this time are missing.
    """
    by_length: dict[int, list[tuple[int, Samples, Sequence[float]]]] = defaultdict(list)
    for launch in launches:
        samples = Samples.of(launch.samples)
        if (lengths := measure(samples)) is not None:
            by_length[len(samples)].append((id(launch), samples, lengths))
    logs: dict[int, Floats] = {}
    for entries in by_length.values():
        steps = np.maximum(np.array([samples.steps for _, samples, _ in entries]), 1)
        # a coarse clock may measure no time in a sample, and 0 has no log
        rows = np.log(np.maximum(np.array([lengths for *_, lengths in entries]) / steps, 1e-300))
        is_recorded = ~np.isnan(rows).any(axis=1)
        logs |= {
            name: row for (name, *_), row, is_complete in zip(entries, rows, is_recorded, strict=True) if is_complete
        }
    return logs


def _compute_relative_logs(launches: Sequence[Launch], logs: _LogsByLaunch) -> _LogsByLaunch:
    """Return, by the id of a launch, the logs of its parts minus the median of the other cells' logs.

    Only launches of rounds with other cells are included. In interleaved launches of a block, samples with the same
    number are measured under the same conditions of the machine. For sequential launches, only effects that repeat in
    each launch are comparable. Each round has its own median. So the median's error differs between rounds, and the
    error of the test includes it.
    """
    blocks: dict[tuple[str, int, int, int], list[Launch]] = defaultdict(list)
    for launch in launches:
        if id(launch) in logs:
            block_number = launch.block if launch.places else -1
            blocks[launch.group, launch.round, launch.attempt, block_number].append(launch)
    by_launch: dict[int, Floats] = {}
    for block in blocks.values():
        cells, names = [launch.cell for launch in block], [id(launch) for launch in block]
        sizes = [logs[name].size for name in names]
        if len(set(cells)) == 1:
            continue
        if block[0].places:
            # interleaved launches are excluded if one of them didn't get all of its turns
            if len(set(sizes)) == 1:
                rows = np.array([logs[name] for name in names])
                by_launch |= zip(names, parts(rows - _compute_medians_of_others(rows, cells)), strict=True)
            continue
        counts = _count_parts(cells, sizes)
        for count in set(counts):
            indexes = [index for index, size in enumerate(sizes) if size >= count]
            rows = np.array(_divide([logs[names[index]] for index in indexes], count))
            relative_rows = rows - _compute_medians_of_others(rows, [cells[index] for index in indexes])
            by_launch |= {
                names[index]: row for index, row in zip(indexes, relative_rows, strict=True) if counts[index] == count
            }
    return by_launch


def _count_parts(cells: Sequence[Cell], sizes: Sequence[int]) -> list[int]:
    """Return the number of parts of each launch: at most as many as the longest launch of the other cells has."""
    sizes_by_cell: dict[Cell, int] = {}
    for cell, size in zip(cells, sizes, strict=True):
        sizes_by_cell[cell] = max(size, sizes_by_cell.get(cell, 0))
    second_longest, longest_size = sorted(sizes_by_cell.values())[-2:]
    return [
        min(PARTS, size, second_longest if sizes_by_cell[cell] == longest_size else longest_size)
        for cell, size in zip(cells, sizes, strict=True)
    ]


def _compute_medians_of_others(logs: Floats, cells: Sequence[Cell]) -> Floats:
    """Return, for each row and column, the median of that column over the rows of the other cells (at least one)."""
    sorted_logs = np.sort(logs, axis=0)
    # without a value, the larger values are one place lower
    lower, upper = (
        np.where(logs > sorted_logs[index], sorted_logs[index], sorted_logs[index + 1])
        for index in ((len(cells) - 2) // 2, (len(cells) - 1) // 2)
    )
    medians = np.asarray((lower + upper) / 2.0)
    for cell, launches in Counter(cells).items():
        if launches > 1:
            is_own = np.array([other == cell for other in cells])
            medians[is_own] = np.median(logs[~is_own], axis=0)
    return medians


def count_before(launch: Launch) -> float | None:
    """Return the number of steps before a launch's first sample; None if it wasn't recorded."""
    count = launch.resources.get("warmup_steps")
    if count is not None:
        return count
    called_steps = launch.fingerprint.get(CALLED)
    measured_steps = launch.steps + sum(sample.steps for sample in launch.alone)
    return (
        float(called_steps - measured_steps)
        if isinstance(called_steps, int) and called_steps >= measured_steps
        else None
    )


def spans(launch: Launch) -> tuple[Floats, Floats]:
    """Return the number of steps before the start and before the end of each sample, including the warm-up.

    If the launch didn't record its warm-up steps, they aren't counted.
    """
    steps = np.array([sample.steps for sample in launch.samples], np.float64)
    # each turn starts with untimed steps
    untimed = launch.resources.get("between_steps", 0.0) / max(1, steps.size)
    # the samples in `alone` follow their sample
    later = np.zeros(steps.size)
    np.add.at(later, list(launch.follows), [sample.steps for sample in launch.alone[: len(launch.follows)]])
    ends = (count_before(launch) or 0.0) + np.cumsum(steps + untimed) + np.cumsum(later) - later
    return ends - steps, ends


def compute_within(launch: Launch, steps: Interval) -> tuple[float, float]:
    """Return the seconds per step in a range of steps, and the number of samples in it.

    The range counts steps from the start of the launch. Only the part of a sample inside the range counts. The seconds
    are NaN if no sample is in the range.
    """
    starts, ends = spans(launch)
    covered_steps = np.clip(np.minimum(ends, steps.high) - np.maximum(starts, steps.low), 0.0, None)
    seconds = np.array([sample.seconds / max(sample.steps, 1) for sample in launch.samples])
    total = float(covered_steps.sum())
    samples = float((covered_steps / np.maximum(ends - starts, 1.0)).sum())
    return (float(covered_steps @ seconds) / total if total else math.nan), samples


def find_common_steps(launches: Sequence[Launch]) -> Interval | None:
    """Return the range of steps that all launches (at least one) measured, counted from the start of a launch.

    The result is None if a launch has fewer than three samples in the range, or didn't record its number of warm-up
    steps.
    """
    if any(count_before(launch) is None for launch in launches):
        return None
    all_spans = [spans(launch) for launch in launches]
    steps = Interval(max(float(starts[0]) for starts, _ in all_spans), min(float(ends[-1]) for _, ends in all_spans))
    has_enough = all(compute_within(launch, steps)[1] >= FEWEST_IN_RANGE - 1e-9 for launch in launches)
    return steps if has_enough else None


def restrict_steps(launches: Sequence[Launch], steps: Interval) -> list[Launch]:
    """Return the launches, each with a single sample that has the time per step in the range `steps`."""
    restricted_launches = []
    for launch in launches:
        seconds, _ = compute_within(launch, steps)
        count = max(1, round(steps.high - steps.low))
        # contention is subtracted here, because one sample can't show it; a coarse clock may measure no time
        length = max(seconds * (1.0 - compute_subtracted_share(launch)), RESOLUTION) * count
        # contention isn't subtracted again from a sample whose CPU time equals its wall-clock time
        restricted_launches.append(replace(launch, samples=[Sample(length, count, length)]))
    return restricted_launches


def _average_stages(launches: Sequence[Launch]) -> list[TrendStage]:
    """Return the time per step in each of at most ten parts of a launch: geometric means over launches."""
    count = min(PARTS, *(len(launch.samples) for launch in launches))
    middles, logs = [], []
    for launch in launches:
        starts, ends = spans(launch)
        edges = np.linspace(0.0, starts.size, count + 1).round().astype(np.intp)
        middles.append([float(starts[start] + ends[end - 1]) / 2.0 for start, end in pairwise(edges)])
        remaining_share = 1.0 - compute_subtracted_share(launch)
        step_seconds = [remaining_share * sample.seconds / max(sample.steps, 1) for sample in launch.samples]
        logs.append(np.log(np.maximum(np.add.reduceat(step_seconds, edges[:-1]) / np.diff(edges), 1e-300)))
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


def _find_warm_up_growth(launches: Sequence[Launch]) -> tuple[float, float] | None:
    """Return the warm-up as a stage, if samples are slower than the warm-up by a factor of 1.5 or more.

    The result is the step in the middle of the warm-up, and its seconds per step; None if samples aren't significantly
    slower. Samples that are faster than the warm-up are normal, because a first call compiles.
    """
    warm_up_seconds = [step for launch in launches if (step := compute_warm_up_step(launch))]
    if not warm_up_seconds or len(warm_up_seconds) < len(launches):
        return None
    logs = [math.log(launch.mean / warm_up) for launch, warm_up in zip(launches, warm_up_seconds, strict=True)]
    if fmean(logs) < WARM_UP_GROWTH or not _is_beyond(logs, WARM_UP_GROWTH):
        return None
    middle_step = fmean(launch.resources["warmup_steps"] / 2.0 for launch in launches)
    # contention is only known for the samples
    return middle_step, exp_limited(
        fmean(
            math.log(warm_up * (1.0 - compute_subtracted_share(launch)))
            for launch, warm_up in zip(launches, warm_up_seconds, strict=True)
        )
    )
