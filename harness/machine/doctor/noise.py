"""Measures the noise of some CPUs: how much the time of the same work varies, and what else used the CPUs meanwhile."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.machine.cpus import describe, run_on_cpus
from harness.machine.doctor import system
from harness.machine.doctor.check import CheckResult, Level, grade
from harness.machine.doctor.counters import Counters, CpuPlace, Period, read_processes, read_ticks
from harness.model.defaults import MARGIN
from harness.model.texts import format_plain

Clock = Callable[[], float]
Work = Callable[[int], object]

#: A block of work is as long as the shortest sample of a launch.
BLOCK_SECONDS = 0.05
#: The smallest number of blocks, because a standard deviation needs two.
FEWEST_BLOCKS = 2
# The size of the table in a block of work. With its numbers, the table is about as large as the cache of a core.
_TABLE_SIZE = 2**15

#: Below this score, the system is stable: launches of one cell on one core differ by 1 to 2 % anyway.
QUIET_PERCENT = 1.0
#: From this score on, the system is noisy: a sample typically deviates by the margin below which cells count as equal.
NOISY_PERCENT = 100.0 * MARGIN

#: The name of each level of the score, and its consequence.
_GRADES = {
    Level.GOOD: ("quiet", "Differences of a few percent can be measured here."),
    Level.WARN: ("usable", "To see differences of a few percent, measure more rounds or reduce noise."),
    Level.BAD: (
        "noisy",
        f"This exceeds the margin of {format_plain(NOISY_PERCENT)} %, below which harness reports no difference. "
        "Follow the advice below before you measure. If noise remains, measure more rounds.",
    ),
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The noise of some CPUs.

    `score_percent` is 100 × the standard deviation of the natural logarithms of the block times, with n - 1. It is the
    variability, in %, of samples of 50 ms with constant work.
    """

    score_percent: float
    period: Period

    @property
    def checks(self) -> list[CheckResult]:
        """Results of all checks, in the order of the output."""
        return [check(self.period) for check in system.CHECKS]

    @property
    def level(self) -> Level:
        """How much the score affects measurements."""
        return grade(self.score_percent, QUIET_PERCENT, NOISY_PERCENT)

    @property
    def grade(self) -> str:
        """Name of the score's level."""
        return _GRADES[self.level][0]

    def headline(self, *, pinned: bool) -> str:
        """Describe the score in a sentence. `pinned`: a launch runs only on these CPUs."""
        place = self.period.place
        cpu_description = describe(place.cpus, place.topology, place.allowed)
        if not pinned:
            cpu_description = f"the machine's {len(place.cpus)} CPUs"
        return (
            f"{self.grade.capitalize()}: the same {BLOCK_SECONDS * 1000:.0f} ms of work, timed repeatedly, varies "
            f"by {format_plain(self.score_percent, 2)} % on {cpu_description}. {_GRADES[self.level][1]}"
        )


def measure_noise(
    place: CpuPlace,
    seconds: float,
    *,
    now: Clock = time.perf_counter,
    own: Clock = time.process_time,
    work: Work | None = None,
) -> Diagnosis:
    """Pin this thread to the CPUs of `place`, and time blocks of the same work for `seconds`.

    `now` returns seconds and is monotonic. `own` returns the CPU seconds of this process. `work` is `do_work` by
    default.
    """
    work = work or do_work
    with run_on_cpus(place.cpus):
        size = calibrate(now, work)
        before = Counters(now(), own(), read_ticks(place.root), read_processes())
        blocks: list[float] = []
        while now() < before.seconds + seconds or len(blocks) < FEWEST_BLOCKS:
            blocks.append(_time_work(work, size, now))
        after = Counters(now(), own(), read_ticks(place.root), read_processes())
    return Diagnosis(100.0 * statistics.stdev(map(math.log, blocks)), Period(place, before, after))


def do_work(size: int) -> int:
    """Do the usual work of an interpreter: integers, a loop, a table. Return a result that depends on `size` only."""
    table = [0] * _TABLE_SIZE
    value = 1
    for index in range(size):
        value = (value * 1103515245 + 12345 + table[index % _TABLE_SIZE]) & 0x7FFFFFFF
        table[value % _TABLE_SIZE] = value
    return value


def calibrate(clock: Clock, work: Work) -> int:
    """Return the size of the work in one block. While this function runs, the CPU reaches its frequency."""
    size = 1024
    while (elapsed := _time_work(work, size, clock)) < BLOCK_SECONDS / 2:
        size *= 2
    # use the shortest of several times: if interference made this time longer, every block would be too short
    elapsed = min([elapsed, *(_time_work(work, size, clock) for _ in range(8))])
    return max(1, round(size * BLOCK_SECONDS / elapsed))


def _time_work(work: Work, size: int, clock: Clock) -> float:
    start = clock()
    work(size)
    return clock() - start
