"""Ranges of steps: the steps of each sample, and launches restricted to the steps that all of them measured.

Cells whose time per step depends on the number of steps before it (trends.py) are compared in such a range.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from harness.analysis.distributions import Floats
from harness.analysis.rounds import compute_subtracted_share
from harness.analysis.statistics import RESOLUTION, Interval
from harness.analysis.work_equivalence import CALLED
from harness.model.launch import Launch, Sample

#: The fewest samples in a range of steps for a comparison in this range.
FEWEST_SAMPLES = 3


def count_before(launch: Launch) -> float | None:
    """Return the number of steps before a launch's first sample; None if it wasn't recorded."""
    count = launch.resources.get("warmup_steps")
    if count is not None:
        return count
    called_steps = launch.fingerprint.get(CALLED)
    measured_steps = launch.steps + sum(sample.steps for sample in launch.alone)
    if isinstance(called_steps, int) and called_steps >= measured_steps:
        return float(called_steps - measured_steps)
    return None


def find_sample_bounds(launch: Launch) -> tuple[Floats, Floats]:
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
    starts, ends = find_sample_bounds(launch)
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
    bounds = [find_sample_bounds(launch) for launch in launches]
    steps = Interval(max(float(starts[0]) for starts, _ in bounds), min(float(ends[-1]) for _, ends in bounds))
    has_enough = all(compute_within(launch, steps)[1] >= FEWEST_SAMPLES - 1e-9 for launch in launches)
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
