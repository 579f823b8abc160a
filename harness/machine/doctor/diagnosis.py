"""Measures the system noise of some CPUs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.machine.cpus import describe, run_on_cpus
from harness.machine.doctor import clock, counters, system
from harness.machine.doctor.check import CheckResult, Level, format_number
from harness.machine.doctor.clock import BLOCK_SECONDS, Clock, Gaps, Noise, Timer, Work
from harness.machine.doctor.counters import CpuPlace, Period
from harness.model.defaults import MARGIN
from harness.model.texts import format_plain

#: The share of the time in which blocks of work are timed. In the rest, interruptions are measured.
WORK_SHARE = 0.75

#: The name of each level of the score, and its consequence.
_GRADES = {
    Level.GOOD: ("quiet", "Differences of a few percent can be measured here."),
    Level.WARN: ("usable", "To see differences of a few percent, measure more rounds or reduce noise."),
    Level.BAD: (
        "noisy",
        f"This exceeds the margin of {format_plain(100.0 * MARGIN)} %, below which harness reports no difference. "
        "Follow the advice below before you measure.",
    ),
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The noise that was measured on some CPUs."""

    period: Period
    noise: Noise
    gaps: Gaps
    timer: Timer

    @property
    def checks(self) -> list[CheckResult]:
        """Results of all checks, in the order of the output."""
        return [
            clock.check_noise(self.noise),
            clock.check_drift(self.noise),
            clock.check_interruptions(self.gaps),
            clock.check_timer(self.timer),
            *(check(self.period) for check in system.CHECKS),
        ]

    @property
    def grade(self) -> str:
        """Name of the score's level."""
        return _GRADES[self.noise.level][0]

    def headline(self, *, pinned: bool) -> str:
        """Describe the score in a sentence. `pinned`: a launch runs only on these CPUs."""
        place = self.period.place
        cpu_description = describe(place.cpus, place.topology, place.allowed)
        if not pinned:
            cpu_description = f"the machine's {len(place.cpus)} CPUs"
        return (
            f"{self.grade.capitalize()}: the same {BLOCK_SECONDS * 1000:.0f} ms of work, timed repeatedly, varies "
            f"by {format_number(self.noise.score_percent)} % on {cpu_description}. {_GRADES[self.noise.level][1]}"
        )


def measure_noise(
    place: CpuPlace,
    seconds: float,
    say: Callable[[str], None],
    *,
    now: Clock = time.perf_counter,
    own: Clock = time.process_time,
    work: Work = clock.do_work,
) -> Diagnosis:
    """Pin this thread to the CPUs of `place` and measure noise for `seconds`. `say` gets a sentence for each part.

    `now` returns seconds and is monotonic. `own` returns the CPU seconds of this process.
    """
    # read the load before the doctor's own work, because it is an average of the last minute
    load = counters.read_load_average()
    working = seconds * WORK_SHARE
    with run_on_cpus(place.cpus):
        say("Measuring how much work takes 50 ms, for about a second.")
        size = clock.calibrate(now, work)
        timer = clock.read_timer(place.root, now)
        before = counters.read_counters(place, now(), own())
        say(f"Timing the same work repeatedly, for {format_plain(working, 3)} s.")
        blocks = clock.time_blocks(working, size, now, work)
        say(f"Measuring interruptions, for {format_plain(seconds - working, 3)} s.")
        gaps = clock.measure_gaps(seconds - working, now)
        after = counters.read_counters(place, now(), own())
    return Diagnosis(Period(place, before, after, load), clock.summarize_noise(blocks), gaps, timer)
