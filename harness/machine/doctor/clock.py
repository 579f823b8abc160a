"""What a clock alone tells of a CPU: how times of the same work scatter, what interrupts it, and what the clock is."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.machine import sysfs
from harness.machine.doctor.check import NOT_SHOWN, CheckResult, Level, checked, graded, short
from harness.model.defaults import MARGIN

Clock = Callable[[], float]
Work = Callable[[int], object]

#: A block of work is as long as the shortest sample of a launch.
BLOCK_SECONDS = 0.05
#: Three blocks are the fewest that have a scatter around a line.
FEWEST_BLOCKS = 3
# with its numbers, about as large as a core's own cache
_TABLE = 2**15

#: Below this the machine is quiet: launches of one thing on one core differ by 1 to 2 % anyway.
QUIET_PERCENT = 1.0
#: From this on it is noisy: one sample is off by as much as the margin within which two cells count as the same.
NOISY_PERCENT = 100.0 * MARGIN

#: A drift that is smaller than this is lost in what launches differ by.
DRIFT_PERCENT = 1.0
#: How many standard errors make a drift more than scatter. More than the usual two, because blocks that follow one
#: another are disturbed together.
DRIFT_ERRORS = 4.0
#: With fewer blocks than this, nothing is said about drift: the errors of so short a line are themselves unsure.
DRIFT_BLOCKS = 20

#: A pause this long is no timer tick, which takes some microseconds: something else ran.
GAP_SECONDS = 100e-6
#: Percent of the time lost to pauses: from here on the loss is worth a look, and a third of the margin, which no number
#: should owe to chance.
LOST_WARN, LOST_BAD = 0.1, NOISY_PERCENT / 3.0

#: Clock sources that are read through the kernel or a slow bus, which the kernel takes where it trusts no better one.
SLOW_CLOCKS = {"acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies", "xen"}
#: A reading that costs more goes through the kernel. It does not spoil samples of 50 ms, and does spoil profiles.
COST_SECONDS = 1e-6
#: A thousandth of the shortest sample. A coarser timer is seen in the numbers.
COARSE_SECONDS = 50e-6
#: So many batches of readings of the clock are timed.
BATCHES = 10
#: Of so many steps of the clock the smallest is taken; the coarsest timer makes one in 10 ms.
STEPS = 100


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

    @property
    def level(self) -> Level:
        """How much the score disturbs measuring."""
        return graded(self.score_percent, QUIET_PERCENT, NOISY_PERCENT)


def work(size: int) -> int:
    """What an interpreter does most: whole numbers, a loop, a table. The same for the same `size`."""
    table = [0] * _TABLE
    value = 1
    for index in range(size):
        value = (value * 1103515245 + 12345 + table[index % _TABLE]) & 0x7FFFFFFF
        table[value % _TABLE] = value
    return value


def calibrate(clock: Clock, work: Work = work) -> int:
    """The size of work that makes a block; finding it also gives the CPU time to reach its frequency."""
    size = 1024
    while (taken := _time(work, size, clock)) < BLOCK_SECONDS / 2:
        size *= 2
    # the shortest of some, so that a disturbance does not make every block short
    taken = min([taken, *(_time(work, size, clock) for _ in range(8))])
    return max(1, round(size * BLOCK_SECONDS / taken))


def times(seconds: float, size: int, clock: Clock, work: Work = work) -> list[float]:
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
    from scipy.stats import linregress

    line = linregress(range(len(logs)), logs)
    slope, error = float(line.slope), float(line.stderr)
    return slope * (len(logs) - 1), slope / error if error else math.copysign(math.inf, slope) if slope else 0.0


def noise(found: Noise) -> CheckResult:
    """By how much the times of the same work vary."""
    facts = asdict(found)
    del facts["drift_errors"], facts["drift_percent"]
    value = (
        f"varies by {short(found.score_percent)} % over {found.blocks} blocks of {_milliseconds(found.median_seconds)}"
    )
    if found.blocks >= 100:
        value += f"; 1 % of the blocks take {found.p99:.3g}× the median or longer"
    return checked(
        "noise",
        found.level,
        f"{value}; the longest takes {found.longest:.3g}×",
        facts,
        advice="Do what the checks below advise, then run the doctor again. More rounds make up for the rest.",
        command="harness matrix --rounds 10",
    )


def drift(found: Noise) -> CheckResult:
    """Whether the CPU became slower or faster meanwhile."""
    shown = abs(found.drift_errors) >= DRIFT_ERRORS and found.blocks >= DRIFT_BLOCKS
    value = f"none beyond the noise ({found.drift_percent:+.2g} %)"
    if shown:
        direction = "slower" if found.drift_percent > 0 else "faster"
        value = f"{short(abs(found.drift_percent))} % {direction} from the first block to the last"
    return checked(
        "drift",
        graded(abs(found.drift_percent) if shown else 0.0, DRIFT_PERCENT, NOISY_PERCENT),
        value,
        {
            "percent": found.drift_percent,
            # JSON has no infinity
            "errors": found.drift_errors if math.isfinite(found.drift_errors) else None,
            "shown": shown,
        },
        advice="Other processes started or ended, or the CPU changed its frequency. End them, let the CPU warm up or "
        "cool down, or fix its frequency (see governor and turbo).",
    )


@dataclass(frozen=True, slots=True)
class Gaps:
    """The pauses of at least `GAP_SECONDS`, and how long the listening took, in seconds."""

    seconds: float
    pauses: tuple[float, ...]


def gaps(seconds: float, clock: Clock) -> Gaps:
    """Read the clock without a break for `seconds`, and keep every pause between two readings that is too long."""
    begun = before = clock()
    pauses = []
    while before - begun < seconds:
        now = clock()
        if now - before >= GAP_SECONDS:
            pauses.append(now - before)
        before = now
    return Gaps(before - begun, tuple(pauses))


def interruptions(found: Gaps) -> CheckResult:
    """How often, how long, and for what share of the time the CPU did something else."""
    lost = 100 * sum(found.pauses) / found.seconds
    per_second, longest = len(found.pauses) / found.seconds, max(found.pauses, default=0.0)
    value = (
        f"{short(per_second)} per second of 0.1 ms or longer; they take {short(lost)} % of the time, the longest "
        f"{_milliseconds(longest)}"
    )
    return checked(
        "interruptions",
        graded(lost, LOST_WARN, LOST_BAD),
        value if found.pauses else "none of 0.1 ms or longer",
        {"per_second": per_second, "lost_percent": lost, "longest_seconds": longest},
        advice="Something else runs on this CPU at times: see steal and other load, or try another CPU (--cpus 0-0 is "
        "CPU 0).",
    )


@dataclass(frozen=True, slots=True)
class Timer:
    """The kernel's clock source, and one reading's cost and the smallest step that was seen, in seconds."""

    source: str | None
    cost: float
    resolution: float


def look(root: Path, clock: Clock, calls: int = 10_000) -> Timer:
    """Time batches of `calls` readings: the cheapest batch was disturbed least."""
    source = sysfs.text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    cost = min(_cost(clock, calls) for _ in range(BATCHES))
    return Timer(source, cost, min(_step(clock) for _ in range(STEPS)))


def _cost(clock: Clock, calls: int) -> float:
    begun = clock()
    for _ in range(calls):
        clock()
    return (clock() - begun) / calls


def _step(clock: Clock) -> float:
    before = clock()
    while (after := clock()) == before:
        pass
    return after - before


def timer(found: Timer) -> CheckResult:
    """Whether the timer that all times are read from is the fast and fine one."""
    level = Level.GOOD if found.source else Level.UNKNOWN
    if found.source in SLOW_CLOCKS or found.cost > COST_SECONDS:
        level = Level.WARN
    if found.resolution > COARSE_SECONDS:
        level = Level.BAD
    source = found.source or f"clock source: {NOT_SHOWN}"
    return checked(
        "timer",
        level,
        f"{source}; one reading takes {found.cost * 1e9:.0f} ns, its smallest step is {found.resolution * 1e9:.2g} ns",
        {
            "source": found.source,
            "cost_seconds": found.cost,
            "resolution_seconds": found.resolution,
            "slow": level in (Level.WARN, Level.BAD),
        },
        advice="The kernel does not trust the CPU's own counter, or reads it slowly. Its log says why:",
        command="sudo dmesg | grep -iE 'tsc|clocksource'",
    )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
