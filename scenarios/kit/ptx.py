"""The folder in which the GPU's driver stores compiled code, if harness provides one."""

import os
import shutil
from contextlib import contextmanager, suppress

VARIABLE = "CUDA_CACHE_PATH"

# The folder with the code of the image's first start, which was filled without any file of a scenario.
FIRST_START = "FIRST_START_CACHE_PATH"

# A file in the folder with the driver's version. Another driver compiles everything again.
MARKER = "harness-filled"
DRIVER = "/proc/driver/nvidia/version"


class CompiledCode:
    """Measures how much compiled code the driver adds to the folder.

    folder: the path of the folder, or None; driver: a file that identifies the driver; first: the folder with the
    code of the image's first start, or None. A new folder gets a copy of this code.
    """

    def __init__(self, folder=None, driver=DRIVER, first=None):
        self._folder = folder
        self._driver = driver
        if first is not None and self.is_new and self._is_filled(first):
            with suppress(OSError):  # then the driver compiles again
                copy(first, folder)
                self.mark()
        self._before = None if folder is None else count_bytes(folder)
        self._steady = None

    @property
    def is_new(self):
        """Whether there is a folder that no launch has filled for this driver."""
        return self._folder is not None and not self._is_filled(self._folder)

    def _is_filled(self, folder):
        return text(os.path.join(folder, MARKER)) == (text(self._driver) or "")

    def mark(self):
        """Mark the folder as filled for this driver. Without write access, this does nothing."""
        with suppress(OSError), open(os.path.join(self._folder, MARKER), "w") as file:
            file.write(text(self._driver) or "")

    def watching(self, telemetry):
        """Return a context for timed steps: `telemetry`, and around it a check for new files."""
        return telemetry if self._folder is None else self._watch_folder(telemetry)

    @contextmanager
    def _watch_folder(self, telemetry):
        bytes_before = count_bytes(self._folder)
        with telemetry:
            yield
        self._steady = (self._steady or 0) + max(0, count_bytes(self._folder) - bytes_before)

    def resources(self):
        """Return the resources of docs/dev/worker-protocol.md, in bytes. The dict is empty without a folder."""
        if self._folder is None:
            return {}
        # a driver removes the code of another driver
        filled_bytes = max(0, count_bytes(self._folder) - self._before)
        steady = {} if self._steady is None else {"steady_ptx_cache_filled_bytes": self._steady}
        return dict(steady, ptx_cache_bytes=self._before, ptx_cache_filled_bytes=filled_bytes)


def copy(source, target):
    """Copy the files below the folder `source`, without the marker file. Raises OSError."""
    for parent, _, names in os.walk(source):
        folder = os.path.join(target, os.path.relpath(parent, source))
        os.makedirs(folder, exist_ok=True)
        for name in names:
            if name != MARKER:
                path = os.path.join(folder, name)
                shutil.copyfile(os.path.join(parent, name), path + ".part")
                os.replace(path + ".part", path)  # the driver never reads a part of a file


def count_bytes(folder):
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
