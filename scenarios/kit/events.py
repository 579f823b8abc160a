"""The worker's events: one JSON object a line, on what was the process's standard output."""

import json
import math
import os
import sys

# A reader gives up on longer lines, so they are refused here, where the error can say what to do.
LINE_LIMIT_BYTES = 1 << 20


class ReaderGone(BaseException):
    """Nobody reads the events any more. Not an Exception, so that scenarios don't handle it as their own error."""


class EventWriter:
    """Writes events to a file descriptor that nothing else in the process knows."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._process = os.getpid()

    def emit(self, event, **fields):
        """Write one event, whole, before returning.

        Raises ValueError when its line would be longer than LINE_LIMIT_BYTES, ReaderGone when nobody reads.
        """
        # A scenario's forked child that unwinds through the worker must not speak for it.
        if os.getpid() != self._process:
            return
        text = json.dumps(plain(dict(event=event, **fields)), allow_nan=False, separators=(",", ":"))
        line = memoryview((text + "\n").encode("ascii"))
        if len(line) > LINE_LIMIT_BYTES:
            raise ValueError(
                "the {} '{}' is {:,} bytes long, and an event holds {:,}: write it to a file and hand that to "
                "bench.artifact".format(event, fields.get("name", ""), len(line), LINE_LIMIT_BYTES)
            )
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except BrokenPipeError:
            raise ReaderGone from None


def take_standard_output():
    """Keep standard output for the events, and return the descriptor that now leads there.

    From then on whatever is printed, by Python, by a C library or by a child process, goes to standard error.
    """
    sys.stdout.flush()
    descriptor = os.dup(1)  # not inheritable (PEP 446), so that no child process can hold or write it
    os.set_blocking(descriptor, True)
    os.dup2(2, 1)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    return descriptor


def plain(value):
    """`value` in types that JSON knows: arrays as lists, non-finite numbers and unknown objects as strings."""
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
