"""The CPU quota of the control group that the harness runs in, which local launches share."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level


def read(root: Path) -> tuple[bool, float | None]:
    """Whether the control group was found, and how many CPUs it and those above it may use (None: no limit)."""
    found, quotas = False, []
    for folder in _folders(root):
        found = found or folder.is_dir()
        quotas += [quota for quota in (_v2(folder), _v1(folder)) if quota is not None]
    return found, min(quotas, default=None)


def _folders(root: Path) -> Iterator[Path]:
    """The group's folder and those above it, in each hierarchy that may limit CPUs."""
    for line in (sysfs.text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounts = [controllers, "cpu"] if controllers else ["", "unified"]
        inside = PurePosixPath(path.lstrip("/"))
        for mount in mounts:
            # a group of a namespace is shown from the root, and may lie outside what is mounted
            for part in (inside, *inside.parents):
                yield root / "sys/fs/cgroup" / mount / part


def _v2(folder: Path) -> float | None:
    quota, period = [*(sysfs.text(folder / "cpu.max") or "max").split(), "100000"][:2]
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _v1(folder: Path) -> float | None:
    quota, period = sysfs.integer(folder / "cpu.cfs_quota_us"), sysfs.integer(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def findings(found: bool, quota: float | None, cpus: int) -> list[Finding]:
    """Whether a quota of `quota` CPUs would stop work on `cpus` of them.

    The harness's own work counts too, so that a quota for exactly as many CPUs as are measured stops them at times.
    """
    facts = {"quota": quota, "found": found, "cpus": cpus}
    if not found:
        return [Finding("CPU quota", Level.UNKNOWN, facts)]
    if quota is None or quota > cpus:
        return [Finding("CPU quota", Level.GOOD, facts)]
    return [Finding("CPU quota", Level.BAD if quota < cpus else Level.WARN, facts)]
