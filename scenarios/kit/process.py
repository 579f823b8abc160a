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
    """Have the kernel kill this process when the thread that started it ends, however that happens; Linux only.

    A parent that was gone before is noticed at the first event, which nobody reads.
    """
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def start_time():
    """Return when this process started, in seconds since the epoch, to a clock tick (10 ms); None without /proc."""
    try:
        with open("/proc/self/stat") as file:
            # The second field is the command's name in brackets, which may hold anything; the 22nd is the start.
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - (uptime - ticks / os.sysconf("SC_CLK_TCK"))


def affinity():
    """The CPUs that this process may run on."""
    return sorted(os.sched_getaffinity(0))


def usage():
    """CPU seconds of this process and the children it has waited for, and the peak of the largest one's memory."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_seconds": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        "max_rss_bytes": max(own.ru_maxrss, children.ru_maxrss) * 1024,  # Linux counts in KiB
    }


def resident_bytes():
    """Return the memory of this process in bytes, without its children; None without /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def installed_packages():
    """The version of every installed distribution, by its normalised name (PEP 503).

    Read from the folders themselves: `importlib.metadata` is younger than 3.6, and `pkg_resources` takes a second.
    """
    packages = {}
    for folder in sys.path:
        for kind, metadata in (("dist-info", "METADATA"), ("egg-info", "PKG-INFO")):
            for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*." + kind))):
                name, version = read_metadata(os.path.join(path, metadata) if os.path.isdir(path) else path)
                if name and version:
                    packages.setdefault(re.sub(r"[-_.]+", "-", name).lower(), version)
    return packages


def read_metadata(path):
    """The name and the version in a distribution's metadata, each None where it is not there."""
    fields = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():  # the headers end here, the description begins
                    break
                key, _, value = line.partition(":")
                fields.setdefault(key, value.strip())
    except OSError:
        pass
    return fields.get("Name"), fields.get("Version")
