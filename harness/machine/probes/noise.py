"""The noise score: what times of the same work scatter by on this CPU."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from harness.machine.probes.finding import Finding, Level, graded

Clock = Callable[[], float]
Work = Callable[[int], object]

#: A block of work is as long as the shortest sample of a launch.
BLOCK_SECONDS = 0.05

#: Below this the machine is quiet: launches of one thing on one core differ by 1 to 2 % anyway.
QUIET_PERCENT = 1.0

#: From this on it is noisy: one sample is off by as much as the margin within which two cells count as the same.
NOISY_PERCENT = 3.0

#: A drift that is smaller than this is lost in what launches differ by.
DRIFT_PERCENT = 1.0

#: How many standard errors make a drift more than scatter. More than the usual two, because blocks that follow one
#: another are disturbed together.
DRIFT_ERRORS = 4.0

#: With fewer blocks than this, nothing is said about drift: the errors of so short a line are themselves unsure.
DRIFT_BLOCKS = 20

#: Three blocks are the fewest that have a scatter around a line.
FEWEST_BLOCKS = 3

# with its numbers, about as large as a core's own cache
_TABLE = 2**15


@dataclass(frozen=True, slots=True)
class Noise:
    """How block times scatter.

    `score_percent` is 100 × the standard deviation of the natural logarithms of the block times, with n - 1: what one
    sample of 50 ms differs by, in %, while nothing in the work changes. `cv_percent` is 100 × standard deviation / mean
    of the times themselves. `p99` and `longest` are in medians, `median_seconds` in seconds. `drift_percent` is
    100 × the slope of a least-squares line through the logarithms × its length: positive where the CPU became slower;
    `drift_errors` is the slope in its standard errors.
    """

    score_percent: float
    cv_percent: float
    p99: float
    longest: float
    drift_percent: float
    drift_errors: float
    median_seconds: float
    blocks: int


def work(size: int) -> int:
    """What an interpreter does most: whole numbers, a loop, a table. The same for the same `size`."""
    table = [0] * _TABLE
    value = 1
    for index in range(size):
        value = (value * 1103515245 + 12345 + table[index % _TABLE]) & 0x7FFFFFFF
        table[value % _TABLE] = value
    return value


def calibrate(clock: Clock, work: Work = work, seconds: float = BLOCK_SECONDS) -> int:
    """The size of work that takes `seconds`; it also gives the CPU time to reach its frequency."""
    size = 1024
    while (taken := _time(work, size, clock)) < seconds / 2:
        size *= 2
    # the shortest of some, so that a disturbance does not make every block short
    taken = min([taken, *(_time(work, size, clock) for _ in range(8))])
    return max(1, round(size * seconds / taken))


def listen(seconds: float, size: int, clock: Clock, work: Work = work) -> list[float]:
    """The times of blocks of the same work, in seconds, one after another for `seconds`."""
    end = clock() + seconds
    blocks: list[float] = []
    while clock() < end or len(blocks) < FEWEST_BLOCKS:
        blocks.append(_time(work, size, clock))
    return blocks


def _time(work: Work, size: int, clock: Clock) -> float:
    begun = clock()
    work(size)
    return clock() - begun


def summary(blocks: Sequence[float]) -> Noise:
    """What block times, in seconds and in the order in which they were taken, say about the CPU."""
    logs = [math.log(block) for block in blocks]
    median, ordered = statistics.median(blocks), sorted(blocks)
    drift, errors = _drift(logs)
    return Noise(
        score_percent=100 * statistics.stdev(logs),
        cv_percent=100 * statistics.stdev(blocks) / statistics.fmean(blocks),
        p99=ordered[math.ceil(0.99 * len(ordered)) - 1] / median,
        longest=ordered[-1] / median,
        drift_percent=100 * drift,
        drift_errors=errors,
        median_seconds=median,
        blocks=len(blocks),
    )


def _drift(logs: Sequence[float]) -> tuple[float, float]:
    """By how much a line through them rises from the first to the last, and that in standard errors."""
    times = range(len(logs))
    slope, intercept = statistics.linear_regression(times, logs)
    left = sum((log - intercept - slope * time) ** 2 for time, log in zip(times, logs, strict=True))
    spread = sum((time - statistics.fmean(times)) ** 2 for time in times)
    error = math.sqrt(left / (len(logs) - 2) / spread)
    return slope * (len(logs) - 1), slope / error if error else math.copysign(math.inf, slope) if slope else 0.0


def grade(score_percent: float) -> str:
    """`quiet`, `usable` or `noisy`."""
    names = {Level.GOOD: "quiet", Level.WARN: "usable", Level.BAD: "noisy"}
    return names[graded(score_percent, QUIET_PERCENT, NOISY_PERCENT)]


def findings(noise: Noise) -> list[Finding]:
    """The score, and whether the CPU became slower or faster meanwhile."""
    level = graded(noise.score_percent, QUIET_PERCENT, NOISY_PERCENT)
    shown = abs(noise.drift_errors) >= DRIFT_ERRORS and noise.blocks >= DRIFT_BLOCKS
    drift = graded(abs(noise.drift_percent) if shown else 0.0, DRIFT_PERCENT, NOISY_PERCENT)
    facts = asdict(noise)
    # JSON has no infinity
    errors = facts.pop("drift_errors")
    percent = facts.pop("drift_percent")
    drifted = {"percent": percent, "errors": errors if math.isfinite(errors) else None, "shown": shown}
    return [Finding("noise", level, facts), Finding("drift", drift, drifted)]
