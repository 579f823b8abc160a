"""Listens to some CPUs for a while: all that the checks need, measured and read once."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine.cpus import running_on
from harness.machine.probes import frequency, interruptions, load, memory, noise, processes, ticks, timer
from harness.machine.probes.noise import Clock, Work
from harness.machine.topology import Topology

#: Of the time to listen, this share is spent on blocks of work, and the rest on interruptions.
WORK_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen: the CPUs, those that this process may use, and where the system's files are."""

    cpus: tuple[int, ...]
    allowed: frozenset[int]
    topology: Topology
    root: Path = Path("/")


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds: `now` of a clock that never goes back, `own` of CPU that this process used."""

    now: Clock = time.perf_counter
    own: Clock = time.process_time


@dataclass(frozen=True, slots=True)
class Counters:
    """What the kernel has counted since the machine started, and when it was read, in seconds."""

    seconds: float
    own: float
    ticks: Mapping[int, ticks.Ticks]
    processes: Mapping[tuple[int, int], processes.Process]
    throttles: Mapping[int, int]
    memory: memory.Memory | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard."""

    place: Place
    before: Counters
    after: Counters
    noise: noise.Noise
    gaps: interruptions.Gaps
    timer: timer.Timer
    load: float | None

    @property
    def seconds(self) -> float:
        """How long it took, from the first counters to the last."""
        return self.after.seconds - self.before.seconds


def listen(
    place: Place,
    seconds: float,
    say: Callable[[str], None],
    clocks: Clocks | None = None,
    work: Work = noise.work,
) -> Heard:
    """Pin this thread to the CPUs of `place` and listen for `seconds`. `say` is told what is done, and how long."""
    clocks = clocks or Clocks()
    # before anything of ours runs: it is the last minute's
    average = load.average(place.root)
    working = seconds * WORK_SHARE
    with running_on(place.cpus):
        say("Finding out how much work takes 50 ms, for about a second.")
        size = noise.calibrate(clocks.now, work)
        clock = timer.look(place.root, clocks.now)
        before = _counters(place, clocks)
        say(f"Timing the same work again and again, for {working:.3g} s.")
        blocks = noise.listen(working, size, clocks.now, work)
        say(f"Watching for interruptions, for {seconds - working:.3g} s.")
        gaps = interruptions.listen(seconds - working, clocks.now)
        after = _counters(place, clocks)
    return Heard(place, before, after, noise.summary(blocks), gaps, clock, average)


def _counters(place: Place, clocks: Clocks) -> Counters:
    root = place.root
    return Counters(
        clocks.now(),
        clocks.own(),
        ticks.read(root),
        processes.read(root),
        frequency.throttles(root, place.cpus),
        memory.read(root),
    )


def hertz() -> int:
    """How many clock ticks make a second."""
    return os.sysconf("SC_CLK_TCK")
