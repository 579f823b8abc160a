"""Sizing of a run: the warm-up and measurement time of a group's launches.

The pilots determine the lengths of the warm-up and the measurement, once for the whole run.

A launch needs seconds before its first sample, so more samples cost less than more launches. But samples only reduce
the variance within a launch. Beyond some number of samples, the variance between launches is larger. The best number of
samples in a launch is n = √(cost of a launch / cost of a sample · variance within / variance between launches):
T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, section 6 (their r, for two levels).
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.analysis.rounds import compute_mean, find_granted_share, has_mean
from harness.model.defaults import MEASURE, WARMUP
from harness.model.launch import USUAL_TURNS, Launch, Role, Sampling
from harness.model.scenario import Cell

#: ASSUMED_DEVIATION: the standard deviation between launches of a cell, as a share (1 to 2 % if pinned to a core).
#: WEIGHT: the assumption has the weight of this number of launch pairs, and the pilots' pairs are added to it.
ASSUMED_DEVIATION, WEIGHT = 0.02, 4

#: The assumed standard deviation between interleaved launches of a cell, as a share. More turns don't reduce it.
INTERLEAVED_DEVIATION = 0.012

#: The smallest and the largest number of turns that a pilot suggests.
TURNS = (10, 60)

#: A truncation is as good as the best one if its marginal standard error is at most this factor times the best.
ERROR_TOLERANCE = 1.05

#: The fewest samples for a trend or a variance. Of three samples, the last two are often equal.
FEWEST_SAMPLES = 4

#: Lengths are rounded up to a multiple of this, in seconds, because a pilot isn't more precise.
MULTIPLE = 0.05

#: The number of single steps that a launch measures for percentiles, so that ten are above p99. Long steps are fewer,
#: because the measurement time is at most the upper end of MEASURE.
STEPS = 1000


@dataclass(frozen=True, slots=True)
class PilotEstimate:
    """The lengths that the pilot of one cell suggests: in seconds, and as a number of turns if interleaved."""

    warmup: float
    measure: float
    turns: int


def samplings(
    planned: Sampling, groups: Iterable[str], launches: Iterable[Launch], single_steps: Collection[str] = ()
) -> dict[str, Sampling]:
    """Return each group's sampling: the planned one, in which the run's pilots determine the lengths that are open.

    Compared cells are measured in the same way, so a group gets the longest length that any of its pilots suggests. The
    variance between launches is estimated from all groups. If no pilot has a result, the shortest lengths are used. An
    interleaved plan gets the number of turns at which one more turn is as useful, for its time, as one more launch. A
    turn has one sample. Launches that aren't pilots are ignored.

    The lengths in the plan are for whole CPUs, like a suite's budget. Under a quota of 50 %, they are twice as long, so
    that a launch executes the same number of steps.

    In the groups `single_steps`, each sample is one step, for percentiles. The measurement time is then long enough for
    STEPS steps, within MEASURE.
    """
    launches = list(launches)
    planned = _lengthen(planned, 1.0 / find_granted_share(launches))
    if not planned.is_open:
        return {group: _use_single_steps(planned) if group in single_steps else planned for group in groups}
    pilots = [
        launch for launch in launches if launch.role is Role.PILOT and has_mean(launch) and not launch.fixes_calls
    ]
    variance = _estimate_between(pilots)
    estimates: dict[str, list[PilotEstimate]] = defaultdict(list)
    for pilot in pilots:
        estimates[pilot.group].append(suggest_lengths(pilot, variance))
    by_group = {group: _fill(planned, estimates[group]) for group in groups}
    for group in by_group.keys() & set(single_steps):
        slowest_step = max((compute_mean(pilot) for pilot in pilots if pilot.group == group), default=0.0)
        measure_seconds = _clamp(max(by_group[group].measure_seconds or 0.0, STEPS * slowest_step), MEASURE)
        is_fixed = planned.measure_seconds is not None
        by_group[group] = _use_single_steps(
            by_group[group] if is_fixed else replace(by_group[group], measure_seconds=measure_seconds)
        )
    return by_group


def _use_single_steps(sampling: Sampling) -> Sampling:
    return replace(sampling, calls_per_sample=1, turns=None)


def _lengthen(planned: Sampling, factor: float) -> Sampling:
    if factor == 1.0:
        return planned
    return replace(
        planned,
        warmup_seconds=None if planned.warmup_seconds is None else factor * planned.warmup_seconds,
        measure_seconds=None if planned.measure_seconds is None else factor * planned.measure_seconds,
        turns=planned.turns and math.ceil(factor * planned.turns),
    )


def _fill(planned: Sampling, estimates: Sequence[PilotEstimate]) -> Sampling:
    suggestion = PilotEstimate(
        warmup=max((estimate.warmup for estimate in estimates), default=WARMUP[0]),
        measure=max((estimate.measure for estimate in estimates), default=MEASURE[0]),
        turns=max((estimate.turns for estimate in estimates), default=USUAL_TURNS),
    )
    return replace(
        planned,
        warmup_seconds=suggestion.warmup if planned.warmup_seconds is None else planned.warmup_seconds,
        measure_seconds=suggestion.measure if planned.measure_seconds is None else planned.measure_seconds,
        turns=suggestion.turns if planned.turns and planned.measure_seconds is None else planned.turns,
    )


def suggest_lengths(pilot: Launch, launch_variance: float) -> PilotEstimate:
    """Return the lengths that a pilot suggests. `launch_variance` is the variance of the logs of launch means."""
    step_seconds = [sample.seconds / sample.steps for sample in pilot.samples]
    warmup_count = count_settled(step_seconds)
    warmup = pilot.phases.get("warm up", 0.0) + sum(sample.seconds for sample in pilot.samples[:warmup_count])
    steady_seconds = step_seconds[warmup_count:]
    mean = statistics.fmean(sample.seconds for sample in pilot.samples[warmup_count:])
    launch_cost = max(pilot.seconds - sum(sample.seconds for sample in pilot.samples), mean)
    count = math.sqrt(launch_cost / mean * _estimate_within(steady_seconds) / launch_variance)
    min_turns, max_turns = TURNS
    # a turn contains at least a sample and an untimed call
    turn_seconds = mean * (1.0 + 1.0 / (pilot.calls_per_sample or 1))
    turns = math.sqrt(launch_cost / turn_seconds * _estimate_from_neighbors(steady_seconds)) / INTERLEAVED_DEVIATION
    return PilotEstimate(
        _clamp(warmup, WARMUP), _clamp(count * mean, MEASURE), min(max_turns, max(min_turns, math.ceil(turns)))
    )


def count_settled(step_seconds: Sequence[float]) -> int:
    """Return the number of samples at the start that belong to the warm-up, at most half of them.

    This is the marginal standard error rule (MSER) of K. P. White, "An effective truncation heuristic for bias
    reduction in simulation output", Simulation 69(6), 1997: omit the first d samples, and choose d to minimize
    Σ (x - mean)² / (n - d)² over the other samples. Here, d is the smallest number whose standard error is at most 5 %
    above the minimum. It is 0 if there are fewer than four samples.
    """
    if len(step_seconds) < FEWEST_SAMPLES:
        return 0
    # pvariance is exact: for equal times it is always 0, without a rounding error that could decide
    errors = [
        statistics.pvariance(step_seconds[omitted_count:]) / (len(step_seconds) - omitted_count)
        for omitted_count in range(len(step_seconds) // 2 + 1)
    ]
    smallest = min(errors)
    return next(omitted_count for omitted_count, error in enumerate(errors) if error <= ERROR_TOLERANCE**2 * smallest)


def _estimate_within(step_seconds: Sequence[float]) -> float:
    """Return the variance of a sample, as a share of the squared mean.

    The method of Kalibera and Jones needs independent samples, but neighboring samples of one process are usually
    correlated. So the result is at least the estimate from batch means: with √n batches of b samples, b times the
    variance of the batches' means.
    """
    if len(step_seconds) < FEWEST_SAMPLES:
        return 0.0
    mean = statistics.fmean(step_seconds)
    size = math.isqrt(len(step_seconds))
    batches = [
        statistics.fmean(step_seconds[start : start + size]) for start in range(0, len(step_seconds) - size + 1, size)
    ]
    return max(statistics.variance(step_seconds), size * statistics.variance(batches)) / mean**2


def _estimate_from_neighbors(step_seconds: Sequence[float]) -> float:
    """Return the variance of a sample as a share of the squared mean, from differences of neighboring samples.

    The result is half the mean squared difference of successive samples (J. von Neumann et al., "The mean square
    successive difference", Annals of Mathematical Statistics 12, 1941). This estimate excludes slow changes of the
    machine, which affect all interleaved cells.
    """
    if len(step_seconds) < FEWEST_SAMPLES:
        return 0.0
    squares = [(current - previous) ** 2 for previous, current in itertools.pairwise(step_seconds)]
    return statistics.fmean(squares) / 2.0 / statistics.fmean(step_seconds) ** 2


def _estimate_between(pilots: Sequence[Launch]) -> float:
    """Return the variance between launches, from the assumed variance and from cells with two pilots."""
    logs_by_cell: dict[tuple[str, Cell], list[float]] = defaultdict(list)
    for launch in pilots:
        logs_by_cell[launch.group, launch.cell].append(math.log(compute_mean(launch)))
    variances = [statistics.variance(logs) for logs in logs_by_cell.values() if len(logs) > 1]
    return (WEIGHT * ASSUMED_DEVIATION**2 + math.fsum(variances)) / (WEIGHT + len(variances))


def _clamp(seconds: float, bounds: tuple[float, float]) -> float:
    minimum, maximum = bounds
    return min(maximum, max(minimum, round(math.ceil(seconds / MULTIPLE - 1e-9) * MULTIPLE, 2)))
