"""CPU quotas of control groups: how much CPU time processes get in each period before the kernel pauses them."""

from pathlib import Path

from harness.machine import sysfs


def read_quota(root: Path, process: str = "self") -> tuple[bool, float | None]:
    """Return whether the process's control group was found, and how many CPUs its quotas allow (None: no limit).

    The smallest quota of the group and its parents counts. `root` is `/`; `process` is a number or `self`.
    """
    is_found, quotas = False, []
    for folder in sysfs.find_control_groups(root, "cpu", process):
        is_found = is_found or folder.is_dir()
        quotas += [quota for quota in (_read_quota_v2(folder), _read_quota_v1(folder)) if quota is not None]
    return is_found, min(quotas, default=None)


def _read_quota_v2(folder: Path) -> float | None:
    quota, period = [*(sysfs.read_text(folder / "cpu.max") or "max").split(), "100000"][:2]
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _read_quota_v1(folder: Path) -> float | None:
    quota, period = sysfs.read_integer(folder / "cpu.cfs_quota_us"), sysfs.read_integer(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None
