"""The shape of a cell's times: within its launches, and from one launch to the next. Nothing is dropped here."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.statistics import variance
from harness.model.launch import Launch

#: Mean and median of a launch's samples part by more than this share of the median: several modes.
PARTED = 0.10

#: A launch is an outlier when its modified z-score, 0.6745 · |x - median| / MAD of the logs of the centres, is above
#: 3.5: B. Iglewicz and D. C. Hoaglin, "How to detect and handle outliers", ASQC, 1993.
OUTLYING = 3.5
#: ... and it lies this far from the median: among launches that agree to a thousandth, one at 0.4 % is no news.
APART = math.log(1.05)
#: Fewer launches than this have no median deviation to speak of.
FEWEST_LAUNCHES = 5


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a cell's launches something holds for."""

    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A cell's times in seconds per step, over the samples of all its launches.

    `mean` is the geometric mean of the launches' centres, the cell's number; `median`, `low` (p10) and `high` (p90) are
    over samples. `within` is the median over launches of their samples' standard deviation, as a share of the mean;
    `between` the standard deviation of the logs of the centres, None of one launch. `modes` counts launches whose
    samples have several modes, `outliers` launches that lie apart from the others; both are in the mean.
    """

    mean: float
    median: float
    low: float
    high: float
    within: float | None
    between: float | None
    modes: Share
    outliers: Share


def shape(launches: Sequence[Launch]) -> Shape:
    """The shape of one cell, from its launches that gave a number (one at least)."""
    logs = [math.log(launch.centre) for launch in launches]
    rates = sorted(rate for launch in launches for rate in _rates(launch))
    scatters = [math.sqrt(variance(each)) / launch.centre for launch in launches if len(each := _rates(launch)) > 1]
    outlying = outliers(logs)
    return Shape(
        mean=math.exp(statistics.fmean(logs)),
        median=quantile(rates, 0.5),
        low=quantile(rates, 0.1),
        high=quantile(rates, 0.9),
        within=statistics.median(scatters) if scatters else None,
        between=math.sqrt(variance(logs)) if len(logs) > 1 else None,
        modes=modes(launches),
        outliers=Share(sum(outlying), len(launches)),
    )


def several_modes(launch: Launch) -> bool:
    """Whether the mean and the median of the launch's samples (seconds per step) differ by over 10 %.

    Timings of one process often switch between two speeds; a mean far from the median gives that away.
    """
    rates = _rates(launch)
    median = statistics.median(rates) if rates else 0.0
    return median > 0.0 and abs(launch.centre / median - 1.0) > PARTED


def modes(launches: Sequence[Launch]) -> Share:
    """How many of one cell's launches have several modes."""
    return Share(count=sum(several_modes(launch) for launch in launches), of=len(launches))


def outliers(logs: Sequence[float]) -> list[bool]:
    """Which of the logs of a cell's centres lie apart: the launches themselves then have several modes."""
    if len(logs) < FEWEST_LAUNCHES:
        return [False] * len(logs)
    middle = statistics.median(logs)
    spread = statistics.median(abs(value - middle) for value in logs)
    return [abs(value - middle) > APART and 0.6745 * abs(value - middle) > OUTLYING * spread for value in logs]


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, interpolated linearly (at least one value)."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _rates(launch: Launch) -> list[float]:
    """Seconds per step of each sample."""
    return [sample.seconds / sample.steps for sample in launch.samples if sample.steps]
