"""The shape of a cell's times: within its launches, and from one launch to the next. Nothing is dropped here."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from harness.analysis.statistics import variance
from harness.model.launch import Launch

#: A launch's samples are uneven where their mean and their median differ by more than this share of the median.
PARTED = 0.10

#: A launch is an outlier when its modified z-score, 0.6745 · |x - median| / MAD of the logs of the centres, is above
#: 3.5: B. Iglewicz and D. C. Hoaglin, "How to detect and handle outliers", ASQC, 1993.
OUTLYING = 3.5
#: ... and it lies this far from the median: among launches that agree to a thousandth, one at 0.4 % is no news.
APART = math.log(1.05)
#: Fewer launches than this have no median deviation to speak of.
FEWEST_LAUNCHES = 5


class Quantity(StrEnum):
    """What a number is of, which says how it is shown."""

    STEP = "seconds per step"
    SECONDS = "seconds"
    BYTES = "bytes"
    SHARE = "share"
    NUMBER = "number"
    COUNT = "count"


@dataclass(frozen=True)
class Times:
    """The times of one cell: its launches that gave a number (one at least)."""

    launches: Sequence[Launch]

    @cached_property
    def logs(self) -> list[float]:
        """The logs of the launches' centres, which are seconds per step."""
        return [math.log(launch.centre) for launch in self.launches]

    @cached_property
    def samples(self) -> list[float]:
        """Seconds per step of every sample of all launches, sorted."""
        return sorted(rate for launch in self.launches for rate in _rates(launch))

    @property
    def within(self) -> float | None:
        """The launches' median of the standard deviation of a launch's samples, as a share of its centre."""
        scatters = [
            math.sqrt(variance(rates)) / launch.centre for launch in self.launches if len(rates := _rates(launch)) > 1
        ]
        return statistics.median(scatters) if scatters else None

    @property
    def between(self) -> float | None:
        """The standard deviation of the logs of the centres; None of one launch."""
        return math.sqrt(variance(self.logs)) if len(self.logs) > 1 else None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number that a report has of every cell: its name, what it is of, and how it is made; None where there is none.

    `legend` is a sentence on what it means; empty where the legend of one before it says that.
    """

    name: str
    quantity: Quantity
    calculate: Callable[[Times], float | None]
    legend: str = ""


#: The statistics of a cell. One more is one more line here: tables, page and JSON have it then.
STATISTICS = (
    Statistic(
        "mean",
        Quantity.STEP,
        lambda times: math.exp(statistics.fmean(times.logs)),
        "The mean is the geometric mean of the launches' means, outliers included.",
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
        "Within launches: the standard deviation of a launch's samples in percent of its mean, the median over "
        "launches.",
    ),
    Statistic(
        "between launches",
        Quantity.SHARE,
        lambda times: times.between,
        "Between launches: the standard deviation of the launches' means, in percent.",
    ),
    Statistic("launches", Quantity.COUNT, lambda times: len(times.launches)),
)


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a cell's launches something holds for."""

    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a cell's times. `statistics` has the STATISTICS by name, None where there is none.

    `uneven` counts launches whose samples are uneven, `outliers` launches that are outliers; both are in the mean.
    """

    statistics: Mapping[str, float | None]
    uneven: Share
    outliers: Share


def shape(launches: Sequence[Launch]) -> Shape:
    """The shape of one cell, from its launches that gave a number (one at least)."""
    times = Times(launches)
    return Shape(
        statistics={each.name: each.calculate(times) for each in STATISTICS},
        uneven=uneven(launches),
        outliers=Share(sum(outliers(times.logs)), len(launches)),
    )


def is_uneven(launch: Launch) -> bool:
    """Whether the launch's samples are uneven: their mean and median (seconds per step) differ by over 10 %.

    Timings of one process often switch between two speeds; a mean far from the median gives that away.
    """
    rates = _rates(launch)
    median = statistics.median(rates) if rates else 0.0
    return median > 0.0 and abs(launch.centre / median - 1.0) > PARTED


def uneven(launches: Sequence[Launch]) -> Share:
    """How many of one cell's launches have uneven samples."""
    return Share(count=sum(is_uneven(launch) for launch in launches), of=len(launches))


def outliers(logs: Sequence[float]) -> list[bool]:
    """Which of the logs of a cell's centres are outliers."""
    if len(logs) < FEWEST_LAUNCHES:
        return [False] * len(logs)
    median = statistics.median(logs)
    spread = statistics.median(abs(value - median) for value in logs)
    return [abs(value - median) > APART and 0.6745 * abs(value - median) > OUTLYING * spread for value in logs]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, interpolated linearly (at least one value)."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _rates(launch: Launch) -> list[float]:
    """Seconds per step of each sample."""
    return [sample.seconds / sample.steps for sample in launch.samples if sample.steps]
