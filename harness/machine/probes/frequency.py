"""What decides at which frequency a CPU runs: governor, turbo, heat."""

from collections.abc import Collection, Mapping
from pathlib import Path

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level

_CPUS = "sys/devices/system/cpu"


def governor(root: Path, cpus: Collection[int]) -> list[Finding]:
    """Who chooses the frequency of `cpus`; a virtual machine is not told."""
    folders = [root / _CPUS / f"cpu{cpu}/cpufreq" for cpu in cpus]
    names = {sysfs.text(folder / "scaling_governor") for folder in folders}
    drivers = {sysfs.text(folder / "scaling_driver") for folder in folders}
    if None in names or not names:
        return [Finding("governor", Level.UNKNOWN, {"governor": None, "driver": _several(drivers)})]
    facts = {"governor": _several(names), "driver": _several(drivers)}
    return [Finding("governor", Level.GOOD if names == {"performance"} else Level.WARN, facts)]


def _several(names: Collection[str | None]) -> str | None:
    return ", ".join(sorted(name for name in names if name)) or None


def turbo(root: Path) -> list[Finding]:
    """Whether the CPU may exceed its rated frequency for as long as it stays cool."""
    on: bool | None = None
    switch = ""
    # Intel's own driver says whether it is off, the others whether it is on
    for name, value_on in (("intel_pstate/no_turbo", 0), ("cpufreq/boost", 1)):
        value = sysfs.integer(root / _CPUS / name)
        if value is not None and not switch:
            on, switch = value == value_on, name
    level = Level.UNKNOWN if on is None else Level.WARN if on else Level.GOOD
    return [Finding("turbo", level, {"on": on, "switch": switch})]


def throttles(root: Path, cpus: Collection[int]) -> dict[int, int]:
    """How often each of `cpus` was slowed down for its heat since the machine started, where that is counted."""
    found = {}
    for cpu in cpus:
        counts = [
            sysfs.integer(root / _CPUS / f"cpu{cpu}/thermal_throttle/{part}_throttle_count")
            for part in ("core", "package")
        ]
        if any(count is not None for count in counts):
            found[cpu] = sum(count or 0 for count in counts)
    return found


def throttling(before: Mapping[int, int], after: Mapping[int, int], cpus: Collection[int]) -> list[Finding]:
    """Whether heat slowed one of `cpus` down meanwhile."""
    if not cpus or not set(cpus) <= before.keys() & after.keys():
        return [Finding("throttling", Level.UNKNOWN, {"times": None, "since_start": None})]
    times = sum(after[cpu] - before[cpu] for cpu in cpus)
    facts = {"times": times, "since_start": sum(after[cpu] for cpu in cpus)}
    return [Finding("throttling", Level.BAD if times else Level.GOOD, facts)]
