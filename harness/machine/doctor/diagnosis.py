"""Measures the system noise of some CPUs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.machine.cpus import describe, running_on
from harness.machine.doctor import clock, counters, system
from harness.machine.doctor.check import CheckResult, Level, short
from harness.machine.doctor.clock import BLOCK_SECONDS, Clock, Gaps, Noise, Timer, Work
from harness.machine.doctor.counters import CpuPlace, Period
from harness.model.defaults import MARGIN
from harness.model.texts import format_plain

#: The share of the time for blocks of work. The rest is for interruptions.
WORK_SHARE = 0.75

#: The name of each level of the score, and its consequence.
_GRADES = {
    Level.GOOD: ("quiet", "Differences of a few percent can be measured here."),
    Level.WARN: ("usable", "To see differences of a few percent, measure more rounds or remove noise."),
    Level.BAD: (
        "noisy",
        f"This exceeds the margin of {format_plain(100.0 * MARGIN)} %, below which harness reports no difference. "
        "Follow the advice below before you measure.",
    ),
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Measured noise on the CPUs of a place."""

    period: Period
    noise: Noise
    gaps: Gaps
    timer: Timer

    @property
    def checks(self) -> list[CheckResult]:
        """Results of all checks, in the order of the output."""
        return [
            clock.noise(self.noise),
            clock.drift(self.noise),
            clock.interruptions(self.gaps),
            clock.timer(self.timer),
            *(check(self.period) for check in system.CHECKS),
        ]

    @property
    def grade(self) -> str:
        """Name of the score's level."""
        return _GRADES[self.noise.level][0]

    def headline(self, *, pinned: bool) -> str:
        """Describe the score in a sentence. `pinned`: a launch runs only on these CPUs."""
        place = self.period.place
        where = describe(place.cpus, place.topology, place.allowed)
        if not pinned:
            where = f"the machine's {len(place.cpus)} CPUs"
        return (
            f"{self.grade.capitalize()}: the same {BLOCK_SECONDS * 1000:.0f} ms of work, timed repeatedly, varies "
            f"by {short(self.noise.score_percent)} % on {where}. {_GRADES[self.noise.level][1]}"
        )


def listen(
    place: CpuPlace,
    seconds: float,
    say: Callable[[str], None],
    *,
    now: Clock = time.perf_counter,
    own: Clock = time.process_time,
    work: Work = clock.work,
) -> Diagnosis:
    """Pin this thread to the CPUs of `place` and measure noise for `seconds`. `say` gets a sentence for each part.

    `now` returns seconds and is monotonic. `own` returns the CPU seconds of this process.
    """
    # read it before our own work, because it is an average of the last minute
    load = counters.load_average()
    working = seconds * WORK_SHARE
    with running_on(place.cpus):
        say("Measuring how much work takes 50 ms, for about a second.")
        size = clock.calibrate(now, work)
        timer = clock.look(place.root, now)
        before = counters.read_counters(place, now(), own())
        say(f"Timing the same work repeatedly, for {format_plain(working, 3)} s.")
        blocks = clock.times(working, size, now, work)
        say(f"Measuring interruptions, for {format_plain(seconds - working, 3)} s.")
        gaps = clock.gaps(seconds - working, now)
        after = counters.read_counters(place, now(), own())
    return Diagnosis(Period(place, before, after, load), clock.summary(blocks), gaps, timer)
