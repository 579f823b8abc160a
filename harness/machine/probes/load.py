"""What else ran while the doctor listened."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level

#: Others' use of the CPUs that are measured, in CPUs. Less than the first is within what ticks can tell.
HERE_WARN, HERE_BAD = 0.02, 0.05

#: Others' use of the whole machine, in CPUs: a tenth of one shows in shared caches and in the frequency.
MACHINE_WARN = 0.1

#: Others' use of the whole machine as a share of it, from which nothing measured is trusted.
MACHINE_BAD = 0.5


def average(root: Path) -> float | None:
    """How many threads wanted to run, over the last minute."""
    try:
        return float((sysfs.text(root / "proc/loadavg") or "").split()[0])
    except (ValueError, IndexError):
        return None


@dataclass(frozen=True, slots=True)
class Use:
    """How many CPUs were busy: of all, and of those measured with their siblings; `own` of both was the doctor's.

    None is what could not be read.
    """

    machine: float | None
    here: float | None
    own: float


def findings(use: Use, cpus: int, load: float | None, busiest: Sequence[Any]) -> list[Finding]:
    """Others' use of the machine's `cpus` CPUs, with the load average and who used most."""
    others = None if use.machine is None else max(0.0, use.machine - use.own)
    beside = None if use.here is None else max(0.0, use.here - use.own)
    named = sum(process["percent"] for process in busiest) / 100
    facts = {
        "others": others,
        "here": beside,
        "cpus": cpus,
        "average": load,
        "busiest": list(busiest),
        # a process that ended meanwhile, or that another container hides
        "mostly_unseen": others is not None and others >= MACHINE_WARN and named < others / 2,
    }
    return [Finding("other load", _level(others, beside, cpus), facts)]


def _level(others: float | None, here: float | None, cpus: int) -> Level:
    if others is None or here is None:
        return Level.UNKNOWN
    if here >= HERE_BAD or others >= MACHINE_BAD * cpus:
        return Level.BAD
    return Level.WARN if here >= HERE_WARN or others >= MACHINE_WARN else Level.GOOD
