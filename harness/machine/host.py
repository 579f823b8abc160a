"""Facts about this machine for reports. They don't identify the machine or its owner."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from harness.machine import sysfs
from harness.model import gpu
from harness.model.environment import normalize_architecture
from harness.model.errors import CannotRunHereError

#: The files with a control group's memory limit and usage, and the key of its unused file cache in memory.stat, for
#: version 2 and version 1.
MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def read_facts() -> dict[str, Any]:
    """Return CPU, architecture, usable cores, memory in bytes, kernel, system, and the Python version of harness."""
    return {
        "cpu": _read_cpu_model(),
        "architecture": normalize_architecture(platform.machine()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _read_distribution(),
        "harness_python": platform.python_version(),
    }


def require_linux() -> None:
    """Raise CannotRunHereError on a system that can't pin processes to CPUs, such as macOS."""
    if not hasattr(os, "sched_getaffinity"):
        name = {"Darwin": "macOS"}.get(platform.system(), platform.system())
        raise CannotRunHereError(
            f"Measuring needs Linux, and this computer runs {name}.",
            "Measure in a Linux virtual machine with Docker Engine. On arm64 (Apple silicon), TensorFlow 2.7 and later "
            "have wheels. On this computer, these commands work with finished runs: report, compare, history and "
            "scenarios.",
        )


def detect_container() -> str:
    """Return the name of the engine of this process's container, or an empty text outside of containers."""
    marks = {"Docker": Path("/.dockerenv"), "Podman": Path("/run/.containerenv")}
    kind = next((name for name, mark in marks.items() if mark.exists()), "")
    return kind or ("Kubernetes" if "KUBERNETES_SERVICE_HOST" in os.environ else "")


def read_c_library() -> str:
    """Return the C library and the system, such as `glibc 2.36` and the name of the distribution."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        name = None
    return f"{name or 'not glibc'} of {_read_distribution()}"


def read_free_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that processes can allocate without swapping.

    The result is the smallest of these numbers: the machine's available memory, and for each control group of this
    process, its limit minus its usage. File caches that aren't in use don't count as usage.
    """
    free = [int(psutil.virtual_memory().available)]
    for folder in sysfs.find_control_groups(root, "memory"):
        for limit, usage, unused in MEMORY_FILES:
            limit_bytes, used_bytes = sysfs.read_integer(folder / limit), sysfs.read_integer(folder / usage)
            if limit_bytes is not None and used_bytes is not None:
                statistics = dict(
                    line.split()[:2] for line in (sysfs.read_text(folder / "memory.stat") or "").splitlines()
                )
                free.append(max(0, limit_bytes - used_bytes + int(statistics.get(unused, 0))))
    return min(free)


def find_differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the facts that differ and make times incomparable, with both values; empty for the same machine."""
    names = ("cpu", "cores", "memory_bytes", "kernel")
    differences = [(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]
    return differences + gpu.find_differing(before.get("gpus"), now.get("gpus"))


def _read_cpu_model() -> str:
    text = sysfs.read_text(Path("/proc/cpuinfo"))
    if text is None:
        return platform.processor() or "unknown"
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    name = fields.get("model name", platform.machine())
    numbers = ", ".join(f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields)
    # cloud machines hide the product name, so family and model identify the CPU
    return f"{name} ({numbers})" if numbers else name


def _read_distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
