"""The worker's events: one JSON object per line, on the descriptor that was the process's standard output."""

import json
import math
import os
import sys

# The reader refuses longer lines. They are refused here first, because this error can suggest a fix.
LINE_LIMIT_BYTES = 1 << 20


class ReaderGone(BaseException):
    """Nobody reads the events any more. Not an Exception, so that scenarios don't handle it as their own error."""


class EventWriter:
    """Writes events to a file descriptor that nothing else in the process uses."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._process = os.getpid()

    def emit(self, event, **fields):
        """Write one event completely.

        Raises ValueError if its line would be longer than LINE_LIMIT_BYTES, and ReaderGone if nobody reads it.
        """
        # A child that the scenario forked may return through the worker's code. It must not write events.
        if os.getpid() != self._process:
            return
        text = json.dumps(plain(dict(event=event, **fields)), allow_nan=False, separators=(",", ":"))
        line = memoryview((text + "\n").encode("ascii"))
        if len(line) > LINE_LIMIT_BYTES:
            raise ValueError(
                "the {} '{}' has {:,} bytes, but an event can have only {:,}: write it to a file, and pass the file to "
                "bench.artifact".format(event, fields.get("name", ""), len(line), LINE_LIMIT_BYTES)
            )
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except BrokenPipeError:
            raise ReaderGone from None


def take_standard_output():
    """Reserve standard output for events, and return the new descriptor for it.

    From then on, all printed text goes to standard error, whether Python, a C library or a child process prints it.
    """
    sys.stdout.flush()
    descriptor = os.dup(1)  # not inheritable (PEP 446), so that no child process can hold or write it
    os.set_blocking(descriptor, True)
    os.dup2(2, 1)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    return descriptor


def plain(value):
    """Convert `value` to JSON types: arrays to lists, and non-finite numbers and other objects to strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return plain(value.tolist())
    return str(value)
