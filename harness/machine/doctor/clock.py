"""Checks of a CPU that need only a clock: variability of the same work, interruptions, and the clock itself."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.machine import sysfs
from harness.machine.doctor.check import NOT_SHOWN, CheckResult, Level, format_number, grade, make_result
from harness.model.defaults import MARGIN
from harness.model.texts import format_plain

Clock = Callable[[], float]
Work = Callable[[int], object]

#: A block of work is as long as the shortest sample of a launch.
BLOCK_SECONDS = 0.05
#: The smallest number of blocks. A line goes through two points exactly, so a deviation needs three.
FEWEST_BLOCKS = 3
# The size of the table in a block of work. With its numbers, the table is about as large as the cache of a core.
_TABLE_SIZE = 2**15

#: Below this score, the system is stable: launches of one cell on one core differ by 1 to 2 % anyway.
QUIET_PERCENT = 1.0
#: From this score on, the system is noisy: a sample typically deviates by the margin below which cells count as equal.
NOISY_PERCENT = 100.0 * MARGIN

#: A smaller drift is less than the difference between launches.
DRIFT_PERCENT = 1.0
#: The number of standard errors from which a drift is significant. It is more than the usual two, because interference
#: affects consecutive blocks together.
DRIFT_ERRORS = 4.0
#: With fewer blocks, no drift is reported: the standard error of such a short line is uncertain.
DRIFT_BLOCKS = 20

#: In a pause of at least this length, other work ran. A timer tick takes only some microseconds.
GAP_SECONDS = 100e-6
#: Percentage of time lost in pauses from which the level is a warning, and from which it is a problem: a third of the
#: margin.
LOST_WARN, LOST_BAD = 0.1, NOISY_PERCENT / 3.0

#: Clock sources that are read through the kernel or a slow bus. The kernel uses them if it trusts no better source.
SLOW_CLOCKS = {"acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies", "xen"}
#: A reading that takes longer goes through the kernel. It doesn't affect samples of 50 ms, but it affects profiles.
COST_SECONDS = 1e-6
#: 0.1 % of the shortest sample, in seconds. A timer with a coarser resolution affects the results.
COARSE_SECONDS = 50e-6
#: Number of timed batches of clock readings.
BATCHES = 10
#: Number of measured clock steps. The smallest step counts. The coarsest timer has steps of 10 ms.
STEPS = 100


@dataclass(frozen=True, slots=True)
class Noise:
    """Variability of block times.

    - `score_percent`: 100 × the standard deviation of the natural logarithms of the block times, with n - 1. It is the
      variability, in %, of samples of 50 ms with constant work.
    - `cv_percent`: 100 × standard deviation / mean of the times.
    - `p99`, `longest`: relative to the median. `median_seconds`: in seconds.
    - `drift_percent`: 100 × the slope of a least-squares line through the logarithms × its length. It is positive if
      the CPU became slower. `drift_errors`: the slope in standard errors.
    """

    score_percent: float
    cv_percent: float
    p99: float
    longest: float
    drift_percent: float
    drift_errors: float
    median_seconds: float
    blocks: int

    @property
    def level(self) -> Level:
        """How much the score affects measurements."""
        return grade(self.score_percent, QUIET_PERCENT, NOISY_PERCENT)


def do_work(size: int) -> int:
    """Do the usual work of an interpreter: integers, a loop, a table. Return a result that depends on `size` only."""
    table = [0] * _TABLE_SIZE
    value = 1
    for index in range(size):
        value = (value * 1103515245 + 12345 + table[index % _TABLE_SIZE]) & 0x7FFFFFFF
        table[value % _TABLE_SIZE] = value
    return value


def calibrate(clock: Clock, work: Work = do_work) -> int:
    """Return the size of the work in one block. While this function runs, the CPU reaches its frequency."""
    size = 1024
    while (elapsed := _time_work(work, size, clock)) < BLOCK_SECONDS / 2:
        size *= 2
    # use the shortest of several times: if interference made this time longer, every block would be too short
    elapsed = min([elapsed, *(_time_work(work, size, clock) for _ in range(8))])
    return max(1, round(size * BLOCK_SECONDS / elapsed))


def time_blocks(seconds: float, size: int, clock: Clock, work: Work = do_work) -> list[float]:
    """Time blocks of the same work, one after the other, for `seconds`. Return the times in seconds."""
    end = clock() + seconds
    blocks: list[float] = []
    while clock() < end or len(blocks) < FEWEST_BLOCKS:
        blocks.append(_time_work(work, size, clock))
    return blocks


def _time_work(work: Work, size: int, clock: Clock) -> float:
    start = clock()
    work(size)
    return clock() - start


def summarize_noise(blocks: Sequence[float]) -> Noise:
    """Return statistics of block times, which are in seconds and in measured order."""
    logs = [math.log(block) for block in blocks]
    median, ordered = statistics.median(blocks), sorted(blocks)
    drift, errors = _compute_drift(logs)
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


def _compute_drift(logs: Sequence[float]) -> tuple[float, float]:
    """Return the rise of the least-squares line through the logarithms, and its slope in standard errors."""
    slope, start = statistics.linear_regression(range(len(logs)), logs)
    squared_residuals = math.fsum((log - start - slope * index) ** 2 for index, log in enumerate(logs))
    # n times the variance of 0 … n-1
    index_variation = (len(logs) ** 3 - len(logs)) / 12.0
    error = math.sqrt(squared_residuals / (len(logs) - 2) / index_variation)
    return slope * (len(logs) - 1), slope / error if error else math.copysign(math.inf, slope) if slope else 0.0


def check_noise(noise: Noise) -> CheckResult:
    """Check how much the times of the same work vary."""
    facts = asdict(noise)
    del facts["drift_errors"], facts["drift_percent"]
    block = _format_milliseconds(noise.median_seconds)
    value = f"varies by {format_number(noise.score_percent)} % over {noise.blocks} blocks of {block}"
    if noise.blocks >= 100:
        value += f"; 1 % of the blocks take at least {format_plain(noise.p99, 3)}× as long as the median"
    return make_result(
        "noise",
        noise.level,
        f"{value}; the longest block takes {format_plain(noise.longest, 3)}×",
        facts,
        advice="Follow the advice of the checks below, then run harness doctor again. To compensate for the remaining "
        "noise, measure more rounds.",
        command="harness matrix --rounds 10",
    )


def check_drift(noise: Noise) -> CheckResult:
    """Check whether the CPU became slower or faster during the check."""
    is_significant = abs(noise.drift_errors) >= DRIFT_ERRORS and noise.blocks >= DRIFT_BLOCKS
    value = (
        f"none beyond the noise ({'+' if noise.drift_percent >= 0.0 else ''}{format_plain(noise.drift_percent, 2)} %)"
    )
    if is_significant:
        direction = "slower" if noise.drift_percent > 0 else "faster"
        value = f"{format_number(abs(noise.drift_percent))} % {direction} from the first block to the last block"
    return make_result(
        "drift",
        grade(abs(noise.drift_percent) if is_significant else 0.0, DRIFT_PERCENT, NOISY_PERCENT),
        value,
        {
            "percent": noise.drift_percent,
            # JSON has no infinity
            "errors": noise.drift_errors if math.isfinite(noise.drift_errors) else None,
            "shown": is_significant,
        },
        advice="Other processes started or ended, or the CPU changed its frequency. End these processes, let the "
        "CPU warm up or cool down, or fix its frequency (see governor and turbo).",
    )


@dataclass(frozen=True, slots=True)
class Gaps:
    """The pauses of at least `GAP_SECONDS`, and the duration of the check, in seconds."""

    seconds: float
    pauses: tuple[float, ...]


def measure_gaps(seconds: float, clock: Clock) -> Gaps:
    """Read the clock without a break for `seconds`. Return every pause between two readings that is too long."""
    start = previous = clock()
    pauses = []
    while previous - start < seconds:
        current = clock()
        if current - previous >= GAP_SECONDS:
            pauses.append(current - previous)
        previous = current
    return Gaps(previous - start, tuple(pauses))


def check_interruptions(gaps: Gaps) -> CheckResult:
    """Check how often, how long, and for which share of the time the CPU ran other work."""
    lost_percent = 100 * sum(gaps.pauses) / gaps.seconds
    per_second, longest = len(gaps.pauses) / gaps.seconds, max(gaps.pauses, default=0.0)
    value = (
        f"{format_number(per_second)} interruptions of 0.1 ms or longer per second; "
        f"together they take {format_number(lost_percent)} % of "
        f"the time, and the longest took {_format_milliseconds(longest)}"
    )
    return make_result(
        "interruptions",
        grade(lost_percent, LOST_WARN, LOST_BAD),
        value if gaps.pauses else "none of 0.1 ms or longer",
        {"per_second": per_second, "lost_percent": lost_percent, "longest_seconds": longest},
        advice="Other work interrupts this CPU: see the checks steal and other load, or try another CPU (--cpus 0-0 is "
        "CPU 0).",
    )


@dataclass(frozen=True, slots=True)
class Timer:
    """The kernel's clock source, the cost of one reading and the smallest observed step, both in seconds."""

    source: str | None
    cost: float
    resolution: float


def read_timer(root: Path, clock: Clock, calls: int = 10_000) -> Timer:
    """Time batches of `calls` readings. The fastest batch counts, because it had the least interference."""
    source = sysfs.read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    cost = min(_measure_cost(clock, calls) for _ in range(BATCHES))
    return Timer(source, cost, min(_measure_step(clock) for _ in range(STEPS)))


def _measure_cost(clock: Clock, calls: int) -> float:
    start = clock()
    for _ in range(calls):
        clock()
    return (clock() - start) / calls


def _measure_step(clock: Clock) -> float:
    first_reading = clock()
    while (next_reading := clock()) == first_reading:
        pass
    return next_reading - first_reading


def check_timer(timer: Timer) -> CheckResult:
    """Check whether the timer of all measurements is fast and has a high resolution."""
    level = Level.GOOD if timer.source else Level.UNKNOWN
    if timer.source in SLOW_CLOCKS or timer.cost > COST_SECONDS:
        level = Level.WARN
    if timer.resolution > COARSE_SECONDS:
        level = Level.BAD
    source = timer.source or f"clock source: {NOT_SHOWN}"
    return make_result(
        "timer",
        level,
        f"{source}; one reading takes {timer.cost * 1e9:.0f} ns, and the smallest step is "
        f"{format_plain(timer.resolution * 1e9, 2)} ns",
        {
            "source": timer.source,
            "cost_seconds": timer.cost,
            "resolution_seconds": timer.resolution,
            "slow": level in (Level.WARN, Level.BAD),
        },
        advice="The kernel does not trust the CPU's own counter, or reads it slowly. The reason is in the kernel log:",
        command="sudo dmesg | grep -iE 'tsc|clocksource'",
    )


def _format_milliseconds(seconds: float) -> str:
    return f"{format_plain(seconds * 1000, 3)} ms"
