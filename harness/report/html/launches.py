"""A launch as the page's scripts get it, with its samples in few characters."""

import math
import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from harness.analysis.disturbance import disturbed
from harness.analysis.rounds import gave_number
from harness.model.launch import Launch, Role
from harness.report.escape import plain

#: Of a launch with more samples than this, so many are in the page, evenly apart.
SAMPLES = 200

#: The significant digits of a cell's median sample.
DIGITS = 5


class LaunchData(NamedTuple):
    """One launch, as an array, for a page has thousands.

    `counted`: it is in the cell's number. `started` is in seconds after the run's first launch, None where that cannot
    be read. `centre` is in seconds per step. `samples`, of the `of` that it has, are seconds per step over
    10**`exponent` of its cell.
    """

    round: int
    attempt: int
    order: int
    role: str
    status: str
    counted: bool
    started: float | None
    disturbed: str
    error: str
    centre: float | None
    of: int
    samples: Sequence[int]


def launch_data(launch: Launch, counted: bool, started: float | None, exponent: int) -> LaunchData:
    """The launch as an array; `exponent` is that of its cell."""
    rates = _rates(launch)
    step = max(1, math.ceil(len(rates) / SAMPLES))
    return LaunchData(
        round=launch.round,
        attempt=launch.attempt,
        order=launch.order,
        role=launch.role.value,
        status=launch.status.value,
        counted=counted,
        started=started,
        disturbed="" if launch.role is Role.PILOT else disturbed(launch),
        error=plain(launch.error),
        centre=rounded(launch.centre) if gave_number(launch) else None,
        of=len(rates),
        samples=[round(rate / 10.0**exponent) for rate in rates[::step]],
    )


def _rates(launch: Launch) -> list[float]:
    """Seconds per step of each sample."""
    rates = [sample.seconds / sample.steps for sample in launch.samples if sample.steps]
    return [rate for rate in rates if math.isfinite(rate)]


def exponent(launches: Sequence[Launch]) -> int:
    """The power of ten that samples are counted in, so that the median one has its digits; 0 without samples."""
    rates = [rate for launch in launches for rate in _rates(launch) if rate > 0.0]
    return math.floor(math.log10(statistics.median_low(rates))) + 1 - DIGITS if rates else 0


def rounded(seconds: float) -> float | None:
    """To seven significant digits: more are noise, and take room."""
    return float(f"{seconds:.6e}") if math.isfinite(seconds) else None


def instant(text: str) -> float | None:
    """Seconds since 1970; None for what is no instant."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def after(began: float | None, start: float | None) -> float | None:
    """Seconds from the one to the other, to a tenth; None where either is not known."""
    return None if began is None or start is None else round(start - began, 1)
