"""Facts about this process and its environment, for the events."""

import ctypes
import glob
import os
import re
import resource
import signal
import sys
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent():
    """Make the kernel kill this process when the thread that started it ends for any reason. Linux only.

    If the parent ended before this call, the worker notices that at its first event, because nobody reads the event.
    """
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def start_time():
    """Return the start of this process in seconds since 1970, exact to a clock tick (10 ms); None without /proc."""
    try:
        with open("/proc/self/stat") as file:
            # The second field is the command's name in parentheses, with any characters. The 22nd is the start time.
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - (uptime - ticks / os.sysconf("SC_CLK_TCK"))


def affinity():
    """Return the CPUs on which this process may run."""
    return sorted(os.sched_getaffinity(0))


def usage():
    """Return the CPU seconds of this process and of its finished children, and the largest peak memory of one process.

    The keys are the names of docs/dev/worker-protocol.md.
    """
    own_usage = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_seconds": own_usage.ru_utime + own_usage.ru_stime + children.ru_utime + children.ru_stime,
        "max_rss_bytes": max(own_usage.ru_maxrss, children.ru_maxrss) * 1024,  # Linux counts in KiB
    }


def resident_bytes():
    """Return the memory of this process in bytes, without its children; None without /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def installed_packages():
    """Return the version of every installed distribution, by normalized name (PEP 503).

    This reads the metadata files, because Python 3.6 has no `importlib.metadata`, and importing `pkg_resources` takes a
    second.
    """
    packages = {}
    for folder in filter(None, sys.path):
        for kind, metadata in (("dist-info", "METADATA"), ("egg-info", "PKG-INFO")):
            for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*." + kind))):
                name, version = read_metadata(os.path.join(path, metadata) if os.path.isdir(path) else path)
                if name and version:
                    packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    return packages


def read_metadata(path):
    """Return the name and the version in a distribution's metadata, or None for each that is missing."""
    fields = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():  # the description starts after the headers
                    break
                key, _, value = line.partition(":")
                fields.setdefault(key, value.strip())
    except OSError:
        pass
    return fields.get("Name"), fields.get("Version")
