"""Whether memory is short enough for the machine to swap."""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level

#: With less than this share of it available, the next launch may make the machine swap.
SHORT = 0.1


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, and the pages swapped in or out since the machine started."""

    total: int
    available: int
    swap_total: int
    swap_free: int
    swapped_pages: int | None


def read(root: Path) -> Memory | None:
    """What /proc says; None where it cannot be read."""
    kilobytes = _fields(root / "proc/meminfo")
    pages = _fields(root / "proc/vmstat")
    names = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    if not all(name in kilobytes for name in names):
        return None
    swapped = pages["pswpin"] + pages["pswpout"] if {"pswpin", "pswpout"} <= pages.keys() else None
    total, available, swap_total, swap_free = (1024 * kilobytes[name] for name in names)
    return Memory(total, available, swap_total, swap_free, swapped)


def _fields(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"^(\w+):?\s+(\d+)", sysfs.text(path) or "", re.MULTILINE)}


def findings(before: Memory | None, after: Memory | None) -> list[Finding]:
    """Whether the machine swapped meanwhile, or is about to."""
    if before is None or after is None:
        return [Finding("memory", Level.UNKNOWN, {"total": None})]
    pages = None
    if before.swapped_pages is not None and after.swapped_pages is not None:
        pages = after.swapped_pages - before.swapped_pages
    short = after.available < SHORT * after.total
    facts = {
        "total": after.total,
        "available": after.available,
        "swap_used": after.swap_total - after.swap_free,
        "swapped_pages": pages,
        "short": short,
    }
    if pages and short:
        level = Level.BAD
    elif pages or short:
        level = Level.WARN
    else:
        level = Level.UNKNOWN if pages is None and after.swap_total else Level.GOOD
    return [Finding("memory", level, facts)]
