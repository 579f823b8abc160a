"""Quantities other than the time per step: a phase, a percentile, peak memory, memory growth, or the number of traces.

A launch has one value of each quantity. For a positive quantity, `launches_of` returns launches whose only sample is
that value, so that series, control, moderation, verdicts and tables work as for times. Memory growth may be zero or
negative, so it isn't compared as a ratio: its estimates and differences are on a linear scale.

A launch's memory growth is the slope of the process's memory over the later half of its calls. In the first half,
memory pools fill. The slope is the Theil-Sen slope, the median of the slopes between all pairs of points (H. Theil, "A
rank-invariant method of linear and polynomial regression analysis", Proceedings of the KNAW 53, 1950; P. K. Sen,
"Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968). Memory that is allocated only once,
such as a thread's arena, changes a least squares slope by up to 1.5 times its size divided by the number of calls. It
hardly changes the median. bench/simulation/trends.md compares the two slopes.
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.analysis.distribution import Quantity, quantile
from harness.analysis.printed import unit_of
from harness.analysis.statistics import Difference, Interval, student, variance
from harness.model.defaults import LEVEL
from harness.model.launch import Clock, Launch, Role, Sample, Status
from harness.model.numbers import is_number
from harness.model.scenario import GROWTH, OWN, PEAK, PERCENTILES, PRINTED, STEP, TRACES, WHOLE
from harness.model.texts import format_plain

#: The smallest change of memory that counts as growth, in bytes, over the later half of a launch's calls. The kernel
#: counts memory in pages of 4 KiB, when they are first touched. Even a process that retains nothing grew by 8 to 20 KiB
#: in this time, including the kit's own records (TensorFlow 2.0, 2.2 and 2.21, 100 to 300 calls).
PIECE = 32 * 1024

#: A percentile is near a jump if it changes by more than this factor when its rank changes by two standard errors.
JUMP = 1.25


def kind(quantity: str) -> Quantity:
    """Return the unit of a quantity, which determines how it is formatted."""
    units = {STEP: Quantity.STEP, PEAK: Quantity.BYTES, GROWTH: Quantity.BYTES, TRACES: Quantity.COUNT}
    return Quantity.COUNT if quantity.startswith(PRINTED) else units.get(quantity, Quantity.SECONDS)


def is_time(quantity: str) -> bool:
    """Return whether the quantity is a time, so that values are faster or slower."""
    return kind(quantity) in (Quantity.STEP, Quantity.SECONDS)


def value(quantity: str, launch: Launch, clock: Clock = Clock.WALL) -> float | None:
    """Return the launch's value of a quantity other than the time per step; None if it wasn't recorded.

    The value is in seconds or bytes, or is a count.
    """
    match quantity:
        case "peak memory":
            return launch.resources.get("max_rss_bytes")
        case "memory growth":
            return growth(launch)
        case "traces":
            return _convert_number(launch.observations.get(TRACES))
    if quantity.startswith(PRINTED):
        return _convert_number(launch.observations.get(quantity))
    if quantity in PERCENTILES:
        # CPU contention isn't subtracted: it is known for all steps together, not for the slowest steps
        seconds = sorted(_list_single_steps(launch, clock))
        return None if explain_no_percentile(quantity, launch, clock) else quantile(seconds, PERCENTILES[quantity])
    return (launch.phases_cpu if clock is Clock.CPU else launch.phases).get(quantity)


def is_near_jump(quantity: str, launches: Iterable[Launch]) -> bool:
    """Return whether a percentile of single steps is near a jump between fast and slow steps in most launches.

    Launches then have either the fast or the slow value by chance, and a t interval of a few launches is too narrow.
    """
    share, factors = PERCENTILES[quantity], []
    for launch in launches:
        seconds = sorted(_list_single_steps(launch, Clock.WALL))
        if seconds:
            error = 2.0 * math.sqrt(share * (1.0 - share) / len(seconds))
            factors.append(quantile(seconds, min(1.0, share + error)) / quantile(seconds, max(0.0, share - error)))
    return bool(factors) and statistics.median(factors) > JUMP


def explain_no_percentile(quantity: str, launch: Launch, clock: Clock = Clock.WALL) -> str:
    """Return why a launch doesn't have the percentile `quantity`, as a sentence; empty if it has.

    A percentile of means over several steps isn't a percentile of steps. If there are fewer steps than 1 / (1 - share),
    the percentile would be an extrapolation beyond the slowest step.
    """
    steps_per_sample = max((sample.steps for sample in launch.samples), default=0)
    if steps_per_sample > 1:
        return f"Percentiles need single steps, but a sample of this launch has {steps_per_sample:,} steps."
    needed_steps = round(1.0 / (1.0 - PERCENTILES[quantity]))
    steps = len(_list_single_steps(launch, clock))
    return (
        f"{quantity} needs at least {needed_steps} steps, but this launch has {steps}." if steps < needed_steps else ""
    )


def _list_single_steps(launch: Launch, clock: Clock) -> list[float]:
    """Return the seconds of each sample, without samples whose time is unknown or zero."""
    seconds = (sample.cpu_seconds if clock is Clock.CPU else sample.seconds for sample in launch.samples)
    return [length for length in seconds if length]


def _convert_number(observation: object) -> float | None:
    return float(observation) if is_number(observation) else None


def launches_of(quantity: str, launches: Iterable[Launch], clock: Clock = Clock.WALL) -> list[Launch]:
    """Return the launches with a single sample each: one step whose `seconds` are the launch's value of the quantity.

    A launch without a value above zero gets the status `not available`. The same applies to all launches of a scenario
    if only some of them print the number with a unit. Pilots aren't changed. CPU contention is known only for timed
    steps, so it is subtracted only from WHOLE and OWN, which consist of these steps. Raises ValueError for memory
    growth, because it may be negative.
    """
    if quantity == GROWTH:
        raise ValueError("memory growth can be negative and has no logarithm: use growth_estimate or growth_difference")
    if quantity == STEP:
        return list(launches)
    all_launches = list(launches)
    names = {launch.cell.scenario for launch in all_launches} if quantity.startswith(PRINTED) else set[str]()
    mixed_scenarios = {
        name
        for name in names
        if unit_of(quantity, [launch for launch in all_launches if launch.cell.scenario == name]) is None
    }
    return [
        launch if launch.role is Role.PILOT else _replace_samples(launch, quantity, clock, mixed_scenarios)
        for launch in all_launches
    ]


def _replace_samples(launch: Launch, quantity: str, clock: Clock, mixed_scenarios: Container[str]) -> Launch:
    """Return the launch with its value of the quantity as its sample, or as not available.

    In `mixed_scenarios`, only some launches print the number with a unit.
    """
    number = value(quantity, launch, clock)
    without_samples = replace(
        launch, samples=(), alone=(), follows=(), memory=(), calls_per_sample=None, block=0, places=()
    )
    if launch.status is not Status.OK:
        return without_samples
    if quantity in PERCENTILES and (reason := explain_no_percentile(quantity, launch, clock)):
        advice = "Measure longer, for example with --measure 10s." if len(launch.samples) > 1 else ""
        return replace(without_samples, status=Status.NOT_AVAILABLE, error=reason, advice=advice)
    if number is None or not 0.0 < number < math.inf:
        error = (
            f"A ratio isn't possible: the {quantity} is {format_plain(number, 6)}."
            if number is not None
            else f"No {quantity} was recorded."
        )
        return replace(without_samples, status=Status.NOT_AVAILABLE, error=error)
    if launch.cell.scenario in mixed_scenarios:
        error = f"Only some launches print {quantity.removeprefix(PRINTED)} with a unit of time."
        return replace(without_samples, status=Status.NOT_AVAILABLE, error=error)
    # if CPU seconds equal the seconds, no contention is subtracted; only WHOLE and OWN need the subtraction
    subtracts_contention = quantity in (WHOLE, OWN) and clock is Clock.WALL
    return replace(without_samples, samples=[Sample(number, 1, None if subtracts_contention else number)])


def growth(launch: Launch) -> float | None:
    """Return the memory growth over the later half of the calls, in bytes per call; None without two readings."""
    return slope(get_later_half(launch.memory))


def get_later_half(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return the later half of the points."""
    return points[(len(points) - 1) // 2 :] if points else points


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the Theil-Sen slope: the median of the slopes between all pairs of points (x, y) with different x.

    The result is None if there is no such pair.
    """
    pairs = itertools.combinations(points, 2)
    slopes = [(other[1] - point[1]) / (other[0] - point[0]) for point, other in pairs if point[0] != other[0]]
    return statistics.median(slopes) if slopes else None


def calls_looked_at(launch: Launch) -> float:
    """Return the number of calls over which the memory growth of a launch is computed."""
    points = get_later_half(launch.memory)
    return points[-1][0] - points[0][0]


def growths(launches: Iterable[Launch]) -> dict[int, float]:
    """Return the mean memory growth by round, in bytes per call, over launches that ended ok and recorded memory."""
    rounds: dict[int, list[float]] = defaultdict(list)
    for launch in launches:
        bytes_per_call = growth(launch) if launch.status is Status.OK else None
        if bytes_per_call is not None:
            rounds[launch.round].append(bytes_per_call)
    return {number: statistics.fmean(values) for number, values in rounds.items()}


def growth_estimate(launches: Iterable[Launch], level: float = LEVEL) -> Difference | None:
    """Return the mean memory growth over rounds in bytes per call, with its t interval; None if none was recorded.

    `launches` are the launches of one cell that count. With one round, there is no interval.
    """
    return linear(list(growths(launches).values()), level)


def growth_difference(one: Mapping[int, float], other: Mapping[int, float], level: float = LEVEL) -> Difference | None:
    """Return the growth of `one` minus the growth of `other`, in bytes per call: the mean over common rounds, paired.

    Both are results of `growths`. Returns None without a common round.
    """
    return linear([one[number] - other[number] for number in sorted(one.keys() & other.keys())], level)


def growth_control(launches: Iterable[Launch]) -> Difference | None:
    """Return the A/A control of memory growth, in bytes per call.

    The control is the growth in the control's launches minus the growth in the other launches of the same cell, round
    by round. `launches` are the launches of a group that count. The result is None if no round has both.
    """
    all_launches = list(launches)
    control_launches = [launch for launch in all_launches if launch.role is Role.CONTROL]
    cells = {launch.cell for launch in control_launches}
    measured_launches = [launch for launch in all_launches if launch.role is Role.MEASURE and launch.cell in cells]
    return growth_difference(growths(control_launches), growths(measured_launches))


def linear(values: Sequence[float], level: float = LEVEL) -> Difference | None:
    """Return the mean of n values with the interval m ± t·s/√n (zero width if all are equal); None without values."""
    if not values:
        return None
    mean, n = statistics.fmean(values), len(values)
    half_width = student(n - 1, level) * math.sqrt(variance(values) / n) if n > 1 else None
    return Difference(mean, n, None if half_width is None else Interval(mean - half_width, mean + half_width))
