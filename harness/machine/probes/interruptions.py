"""Interruptions: moments at which the CPU did something else than what runs on it."""

from dataclasses import dataclass

from harness.machine.probes.finding import Finding, graded
from harness.machine.probes.noise import Clock

#: A pause this long is no timer tick, which takes some microseconds: something else ran.
GAP_SECONDS = 100e-6

#: From here on the loss is worth a look, and a third of the margin of 3 %, which no number should owe to chance.
WARN_PERCENT, BAD_PERCENT = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Gaps:
    """The pauses of at least `GAP_SECONDS`, and how long the listening took, in seconds."""

    seconds: float
    pauses: tuple[float, ...]


def listen(seconds: float, clock: Clock) -> Gaps:
    """Read the clock without a break for `seconds`, and keep every pause between two readings that is too long."""
    begun = before = clock()
    pauses = []
    while before - begun < seconds:
        now = clock()
        if now - before >= GAP_SECONDS:
            pauses.append(now - before)
        before = now
    return Gaps(before - begun, tuple(pauses))


def findings(gaps: Gaps) -> list[Finding]:
    """How often, how long, and what share of the time was lost."""
    lost = 100 * sum(gaps.pauses) / gaps.seconds
    facts = {
        "per_second": len(gaps.pauses) / gaps.seconds,
        "lost_percent": lost,
        "longest_seconds": max(gaps.pauses, default=0.0),
    }
    return [Finding("interruptions", graded(lost, WARN_PERCENT, BAD_PERCENT), facts)]
