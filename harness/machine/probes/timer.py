"""The timer that all times are read from."""

from dataclasses import dataclass
from pathlib import Path

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level
from harness.machine.probes.noise import Clock

#: Clock sources that are read through the kernel or a slow bus, which the kernel takes where it trusts no better one.
SLOW = {"acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies", "xen"}

#: A reading that costs more goes through the kernel. It does not spoil samples of 50 ms, and does spoil profiles.
COST_SECONDS = 1e-6

#: A thousandth of the shortest sample. A coarser timer is seen in the numbers.
COARSE_SECONDS = 50e-6

#: So many batches of readings are timed.
BATCHES = 10

#: Of so many steps the smallest is taken; the coarsest timer makes one in 10 ms.
STEPS = 100


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


def findings(timer: Timer) -> list[Finding]:
    """Whether the timer is the fast and fine one."""
    level = Level.GOOD if timer.source else Level.UNKNOWN
    if timer.source in SLOW or timer.cost > COST_SECONDS:
        level = Level.WARN
    if timer.resolution > COARSE_SECONDS:
        level = Level.BAD
    facts: dict[str, object] = {
        "source": timer.source,
        "cost_seconds": timer.cost,
        "resolution_seconds": timer.resolution,
    }
    facts["slow"] = level in (Level.WARN, Level.BAD)
    return [Finding("timer", level, facts)]
