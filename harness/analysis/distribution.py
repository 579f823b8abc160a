"""Statistics of the launches of one cell: the distribution of its times, its phases, and its resources.

The distribution is described within launches and between launches. No value is dropped.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Generic, TypeVar

import numpy as np

from harness.analysis.rounds import compute_mean
from harness.analysis.statistics import variance
from harness.analysis.trends import Trend, compute_warm_up_step
from harness.model.launch import BESIDE_STARTS, Launch, Samples
from harness.model.scenario import OWN, WHOLE

#: The samples of a launch are uneven if their mean and their median differ by more than this share of the median.
UNEVEN_SHARE = 0.10

#: A launch is an outlier if its modified z-score is above 3.5. The score is 0.6745 · |x - median| / MAD, where x is the
#: log of the launch mean: B. Iglewicz and D. C. Hoaglin, "How to detect and handle outliers", ASQC, 1993.
OUTLIER_SCORE = 3.5
#: An outlier must also be at least this far from the median (log scale). Otherwise, if the other launches agree within
#: 0.1 %, a launch that differs by 0.4 % would be an outlier.
OUTLIER_DISTANCE = math.log(1.05)
#: Outliers are detected in cells with at least this many launches. With fewer launches, the median deviation is too
#: uncertain.
FEWEST_LAUNCHES = 5

#: The phases before the timed steps, in the order in which a launch goes through them, and the phases of timed steps.
#: Other phases follow in order of appearance.
BEFORE = ("container start", "interpreter start", "import", "device", "first fill", "build", "first call")
TIMED = ("warm up", "steady state")

Source = TypeVar("Source")


class Quantity(StrEnum):
    """The quantity that a number measures, which determines the number's format."""

    STEP = "seconds per step"
    SECONDS = "seconds"
    BYTES = "bytes"
    SHARE = "share"
    NUMBER = "number"
    COUNT = "count"
    JOULES = "joules"
    CLOCK = "megahertz"


@dataclass(frozen=True)
class Times:
    """The times of one cell. `launches` are its launches with a result (at least one)."""

    launches: Sequence[Launch]

    @cached_property
    def logs(self) -> list[float]:
        """The log of each launch mean, in seconds per step."""
        return [math.log(compute_mean(launch)) for launch in self.launches]

    @cached_property
    def samples(self) -> list[float]:
        """Seconds per step of every sample of all launches, sorted."""
        return sorted(chain.from_iterable(self._rates))

    @cached_property
    def _rates(self) -> list[list[float]]:
        return [step_seconds(launch) for launch in self.launches]

    @property
    def uneven(self) -> int:
        """The number of launches whose samples are uneven."""
        return sum(map(is_uneven, self.launches, self._rates))

    @property
    def within(self) -> float | None:
        """The relative standard deviation of the samples of a launch: the median over launches."""
        by_length: dict[int, list[tuple[float, list[float]]]] = defaultdict(list)
        for launch, rates in zip(self.launches, self._rates, strict=True):
            if len(rates) > 1:
                by_length[len(rates)].append((launch.mean, rates))
        deviations: list[float] = []
        for launches in by_length.values():
            values = np.array([rates for _, rates in launches])
            # relative to the first sample, so that equal samples have a deviation of exactly 0
            deviations += (np.std(values - values[:, :1], axis=1, ddof=1) / [mean for mean, _ in launches]).tolist()
        return statistics.median(deviations) if deviations else None

    @property
    def between(self) -> float | None:
        """The standard deviation of the logs of the launch means; None if there is only one launch."""
        return math.sqrt(variance(self.logs)) if len(self.logs) > 1 else None


@dataclass(frozen=True, slots=True)
class Statistic(Generic[Source]):
    """A number that reports show for every cell: its name, its quantity, and the function that calculates it.

    The function returns None if the cell has no such value. `legend` explains the number in a report. It is empty if
    the legend of an earlier number explains it too.
    """

    name: str
    quantity: Quantity
    calculate: Callable[[Source], float | None]
    legend: str = ""


#: The statistics of a cell's times. A new entry here also appears in tables, in the HTML report and in JSON.
STATISTICS: tuple[Statistic[Times], ...] = (
    Statistic(
        "mean",
        Quantity.STEP,
        lambda times: math.exp(statistics.fmean(times.logs)),
        "The mean is the geometric mean of the launches' means, including outliers.",
    ),
    Statistic(
        "median",
        Quantity.STEP,
        lambda times: quantile(times.samples, 0.5),
        "Median, p10 and p90 are over the samples of all launches.",
    ),
    Statistic("p10", Quantity.STEP, lambda times: quantile(times.samples, 0.1)),
    Statistic("p90", Quantity.STEP, lambda times: quantile(times.samples, 0.9)),
    Statistic(
        "within launches",
        Quantity.SHARE,
        lambda times: times.within,
        "Within launches: the standard deviation of the samples of a launch, in percent of their mean (the median "
        "over the launches).",
    ),
    Statistic(
        "between launches",
        Quantity.SHARE,
        lambda times: times.between,
        "Between launches: the standard deviation of the means of the launches, in percent.",
    ),
    Statistic("launches", Quantity.COUNT, lambda times: len(times.launches)),
)


#: The name of the page fault statistic, and the assumed time of one fault. On a virtual machine, 2.3 µs was measured
#: (bench/accuracy.md); without virtualization, a fault is faster.
FAULTS, FAULT_SECONDS = "page faults per step", 1e-6


def _compute_cores(launch: Launch) -> float | None:
    cpu, wall = (launch.resources.get(name) for name in ("steady_cpu_seconds", "steady_seconds"))
    return cpu / wall if cpu is not None and wall else None


def _read_per_step(name: str) -> Callable[[Launch], float | None]:
    """Return a function that divides a resource of a launch by its steps; None if the launch didn't record it."""

    def read(launch: Launch) -> float | None:
        amount = launch.resources.get(name)
        return amount / launch.steps if amount is not None and launch.steps else None

    return read


def _read_gpu(name: str) -> Callable[[Launch], float | None]:
    """Return a function that reads a GPU value of a launch; None if the GPU wasn't read while steps were timed."""
    return lambda launch: launch.resources.get(name) if launch.resources.get("gpu_steady") else None


def _read_capped_share(launch: Launch) -> float | None:
    # if the power limit had no effect, launches don't record its share
    share = _read_gpu("gpu_throttled_share")(launch)
    return None if share is None else launch.resources.get("gpu_power_cap_share", 0.0)


#: The statistics of the resources that a cell's launches used. A new entry here also appears in tables, in the HTML
#: report and in JSON.
RESOURCES: tuple[Statistic[Launch], ...] = (
    Statistic(
        "cores in the steady state",
        Quantity.NUMBER,
        _compute_cores,
        "Cores: CPU seconds divided by wall-clock seconds while steps were timed.",
    ),
    Statistic(
        "CPU time of the launch",
        Quantity.SECONDS,
        lambda launch: launch.resources.get("cpu_seconds"),
        "CPU seconds and peak memory cover the whole launch, including the import.",
    ),
    Statistic("peak memory", Quantity.BYTES, lambda launch: launch.resources.get("max_rss_bytes")),
    Statistic(
        FAULTS,
        Quantity.NUMBER,
        _read_per_step("steady_minor_faults"),
        "Page faults: how often the kernel gave the process a page of memory while steps were timed. Page faults "
        "occur in steps that free memory and allocate it again, and their number differs between processes.",
    ),
    Statistic(
        "peak GPU memory",
        Quantity.BYTES,
        lambda launch: launch.resources.get("gpu_peak_bytes"),
        "Peak GPU memory: the largest total size of tensors on the GPU during the launch, as TensorFlow counts it.",
    ),
    Statistic(
        "GPU memory taken",
        Quantity.BYTES,
        lambda launch: launch.resources.get("gpu_memory_used_bytes"),
        "GPU memory taken: the largest amount of GPU memory that all processes together used at one time. "
        "TensorFlow reserves nearly all memory when it starts.",
    ),
    Statistic(
        "GPU energy per step",
        Quantity.JOULES,
        _read_per_step("gpu_energy_joules"),
        "GPU energy per step: the increase of the GPU's energy counter while steps were timed, divided by the number "
        "of steps. Idle energy is included.",
    ),
    Statistic(
        "GPU clock",
        Quantity.CLOCK,
        _read_gpu("gpu_sm_clock_mhz"),
        "GPU clock: the clock speed of the GPU's processors while steps were timed. The values are the mean and the "
        "minimum of readings, which are taken ten times per second.",
    ),
    Statistic("lowest GPU clock", Quantity.CLOCK, _read_gpu("gpu_sm_clock_least_mhz")),
    Statistic(
        "at the power limit",
        Quantity.SHARE,
        _read_capped_share,
        "At the power limit: the share of readings in which the power limit reduced the GPU's clock speed.",
    ),
)


@dataclass(frozen=True, slots=True)
class Share:
    """The number of a cell's launches that have a property, and the number of all launches."""

    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The distribution of a cell's times. `statistics` contains the value of each of STATISTICS by name, or None.

    `uneven` counts the launches with uneven samples, and `outliers` counts the outliers. The mean includes both.
    `trend` describes how the time per step changes during measurement; None if it doesn't.
    """

    statistics: Mapping[str, float | None]
    uneven: Share
    outliers: Share
    trend: Trend | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, p10 and p90 over `launches` launches."""

    median: float
    low: float
    high: float
    launches: int


@dataclass(frozen=True, slots=True)
class Used:
    """The phases and resources of a cell that at least one launch recorded.

    `phases` has the seconds of each phase before timed steps. `cold` is the sum of these phases in a launch: the time
    from the request to the end of the first call. `warm_up` is the time per step in the warm-up. `resources` has the
    RESOURCES by name. `beside`: some launches started at the same time as others, which makes their phases longer.
    """

    phases: Mapping[str, Spread]
    cold: Spread | None
    warm_up: Spread | None
    resources: Mapping[str, Spread]
    beside: bool = False


def compare_faults(usage: Used, step: Spread | None) -> float:
    """Return how much the time of page faults differs between a cell's launches; 0 if unknown.

    The difference is the range from p10 to p90 in seconds, as a share of the time per step.
    """
    faults = usage.resources.get(FAULTS)
    return (faults.high - faults.low) * FAULT_SECONDS / step.median if faults and step else 0.0


def describe_distribution(launches: Sequence[Launch], trend: Trend | None = None) -> Shape:
    """Return the distribution of a cell's times, from its launches with a result (at least one) and its trend."""
    times = Times(launches)
    return Shape(
        statistics={statistic.name: statistic.calculate(times) for statistic in STATISTICS},
        uneven=Share(times.uneven, len(launches)),
        outliers=Share(sum(find_outliers(times.logs)), len(launches)),
        trend=trend,
    )


def summarize_resources(launches: Sequence[Launch]) -> Used:
    """Return the phases and resources of one cell's launches that have a result."""
    untimed_phases = [
        {name: seconds for name, seconds in launch.phases.items() if name not in (*TIMED, WHOLE, OWN)}
        for launch in launches
        if launch.phases
    ]
    names = order_phases(name for phases in untimed_phases for name in phases)
    return Used(
        phases=_summarize_by_name(
            {name: [phases[name] for phases in untimed_phases if name in phases] for name in names}
        ),
        cold=summarize_spread([sum(phases.values()) for phases in untimed_phases]),
        warm_up=summarize_spread([seconds for launch in launches if (seconds := compute_warm_up_step(launch))]),
        resources=_summarize_by_name(
            {
                statistic.name: [value for launch in launches if (value := statistic.calculate(launch)) is not None]
                for statistic in RESOURCES
            }
        ),
        beside=any(BESIDE_STARTS in launch.resources for launch in launches),
    )


def _summarize_by_name(values: Mapping[str, Sequence[float]]) -> dict[str, Spread]:
    """Return the summary of each name's values, without names that have no values."""
    return {name: summary for name, numbers in values.items() if (summary := summarize_spread(numbers))}


def order_phases(names: Iterable[str]) -> list[str]:
    """Return each phase once: first those in BEFORE in their order, then others in order of appearance."""
    unique_names = dict.fromkeys(names)
    return [*(name for name in BEFORE if name in unique_names), *(name for name in unique_names if name not in BEFORE)]


def summarize_spread(values: Sequence[float]) -> Spread | None:
    """Return the median, p10 and p90 of values; None if there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    return Spread(statistics.median(ordered), quantile(ordered, 0.1), quantile(ordered, 0.9), len(ordered))


def is_uneven(launch: Launch, rates: Sequence[float]) -> bool:
    """Return whether the launch's samples are uneven: their mean and median (seconds per step) differ by over 10 %.

    A process often switches between two speeds. Its mean is then far from its median.
    """
    median = statistics.median(rates) if rates else 0.0
    return median > 0.0 and abs(launch.mean / median - 1.0) > UNEVEN_SHARE


def find_outliers(logs: Sequence[float]) -> list[bool]:
    """Return, for each of a cell's log launch means, whether it is an outlier."""
    if len(logs) < FEWEST_LAUNCHES:
        return [False] * len(logs)
    median = statistics.median(logs)
    spread = statistics.median(abs(value - median) for value in logs)
    return [
        abs(value - median) > OUTLIER_DISTANCE and 0.6745 * abs(value - median) > OUTLIER_SCORE * spread
        for value in logs
    ]


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values (at least one), interpolated linearly. `share` of them are below it."""
    position = share * (len(ordered) - 1)
    lower_index = int(position)
    upper_index = min(lower_index + 1, len(ordered) - 1)
    return ordered[lower_index] + (ordered[upper_index] - ordered[lower_index]) * (position - lower_index)


def step_seconds(launch: Launch) -> list[float]:
    """Return the seconds per step of each sample that has at least one step."""
    samples = Samples.of(launch.samples)
    return [seconds / steps for seconds, steps in zip(samples.seconds, samples.steps, strict=True) if steps]
