"""The folder in which the GPU's driver stores compiled code, if harness provides one."""

import os
from contextlib import contextmanager, suppress

VARIABLE = "CUDA_CACHE_PATH"

# A file in the folder with the driver's version. Another driver compiles everything again.
MARKER = "harness-filled"
DRIVER = "/proc/driver/nvidia/version"


class CompiledCode:
    """Measures how much compiled code the driver adds to the folder.

    folder: its path, or None if there is none; driver: a file that identifies the driver.
    """

    def __init__(self, folder=None, driver=DRIVER):
        self._folder = folder
        self._driver = driver
        self._before = None if folder is None else held(folder)
        self._steady = None

    @property
    def is_new(self):
        """Whether there is a folder that no launch has filled for this driver."""
        return self._folder is not None and text(self._marker) != (text(self._driver) or "")

    def mark(self):
        """Mark the folder as filled for this driver. Without write access, this does nothing."""
        with suppress(OSError), open(self._marker, "w") as file:
            file.write(text(self._driver) or "")

    def watching(self, telemetry):
        """Return a context for timed steps: `telemetry`, and around it a check for new files."""
        return telemetry if self._folder is None else self._looking(telemetry)

    @contextmanager
    def _looking(self, telemetry):
        before = held(self._folder)
        with telemetry:
            yield
        self._steady = (self._steady or 0) + max(0, held(self._folder) - before)

    def resources(self):
        """Return the resources of docs/dev/worker-protocol.md, in bytes. The dict is empty without a folder."""
        if self._folder is None:
            return {}
        # a driver removes the code of another driver
        filled = max(0, held(self._folder) - self._before)
        steady = {} if self._steady is None else {"steady_ptx_cache_filled_bytes": self._steady}
        return dict(steady, ptx_cache_bytes=self._before, ptx_cache_filled_bytes=filled)

    @property
    def _marker(self):
        return os.path.join(self._folder, MARKER)


def held(folder):
    """Return the total bytes of the files below a folder, without the marker file."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            if name != MARKER:
                with suppress(OSError):  # the driver has removed the file
                    total += os.lstat(os.path.join(parent, name)).st_size
    return total


def text(path):
    """Return the text of a file: empty if it can't be read, and None if it doesn't exist."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return ""
