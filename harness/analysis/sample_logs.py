"""Logs of the time per step: of each sample of a launch, of the parts of a launch, and relative to other cells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.analysis.distributions import Floats
from harness.model.launch import Clock, Launch, Samples
from harness.model.scenario import Cell

#: The number of parts into which a launch's samples are divided.
PARTS = 10

# the logs of the time per step of each sample, by the `id` of the launch; launches that didn't record it are missing
LogsByLaunch = Mapping[int, Floats]


def group_by_size(launches: Sequence[Floats]) -> dict[int, list[int]]:
    """Return the indices of launches by their number of values."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for index, logs in enumerate(launches):
        by_size[logs.size].append(index)
    return by_size


def divide(logs: Floats, count: int = PARTS) -> Floats:
    """Divide a launch's samples (at least one) into `count` parts, and return the log of each part's seconds per step.

    `logs` has the log of the seconds per step of each sample; several launches have one row each. With fewer samples
    than `count`, each sample is a part.
    """
    starts, lengths = find_cuts(logs.shape[-1], min(count, logs.shape[-1]))
    first_logs = logs[..., :1]
    relative_times = np.exp(logs - first_logs)
    return np.asarray(np.log(np.add.reduceat(relative_times, starts, axis=-1) / lengths) + first_logs)


def divide_launches(launches: Sequence[Floats], count: int = PARTS) -> list[Floats]:
    """Return the logs of the parts of each launch (see `divide`)."""
    parts_by_index: dict[int, Floats] = {}
    for indexes in group_by_size(launches).values():
        parts_by_index |= zip(indexes, divide(np.array([launches[index] for index in indexes]), count), strict=True)
    return [parts_by_index[index] for index in range(len(launches))]


@lru_cache(maxsize=1024)
def find_cuts(size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide `size` samples into `count` parts, and return the start and the number of samples of each part."""
    ends = np.linspace(0.0, size, count + 1).round().astype(np.intp)
    return ends[:-1], np.diff(ends)


def compute_logs(launches: Iterable[Launch], clock: Clock) -> LogsByLaunch:
    """Return the log of the time per step of each sample, for launches that recorded the time of this clock."""
    by_length: dict[int, list[tuple[int, Samples, Sequence[float]]]] = defaultdict(list)
    for launch in launches:
        samples = Samples.of(launch.samples)
        lengths = samples.cpu_seconds if clock is Clock.CPU else samples.seconds
        if lengths is not None:
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


def compute_relative_logs(launches: Sequence[Launch], logs: LogsByLaunch) -> LogsByLaunch:
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
                by_launch |= zip(names, divide(rows - _compute_medians_of_others(rows, cells)), strict=True)
            continue
        counts = _count_parts(cells, sizes)
        for count in set(counts):
            indexes = [index for index, size in enumerate(sizes) if size >= count]
            rows = np.array(divide_launches([logs[names[index]] for index in indexes], count))
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
