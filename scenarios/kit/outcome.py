"""The end of a scenario as data: an exception becomes a status and a sentence."""

import re
import sys
import traceback
from collections import namedtuple

from .events import ReaderGone

OK = "ok"
FAILED = "failed"
NOT_AVAILABLE = "not available"
CPU_FALLBACK = "cpu fallback"

REASON_CHARACTERS = 500
TRACEBACK_CHARACTERS = 8000

# TensorFlow's text about the origin of a failed node. It comes before the error, and is longer than a reason may be.
MADE_AT = re.compile(r"Detected at node .*defined at \(most recent call last\):\n(?:(?: +(?![ (]).*)?\n)*")

# status: one of the four above; reason: one line, or None; traceback: its end, or None.
Outcome = namedtuple("Outcome", "status reason traceback")


class NotAvailable(Exception):  # noqa: N818, it isn't an error
    """Raised by a scenario that can't run in this environment. The message is shown, and the launch isn't a failure."""


class CpuFallback(Exception):  # noqa: N818, it is a status
    """A GPU was requested, but the work didn't run on a GPU. The message is shown."""


class ScriptFailed(Exception):  # noqa: N818, it is a status
    """A plain script failed. The message is the reason. `traceback` is the script's traceback, already printed."""

    def __init__(self, message, traceback=None):
        super().__init__(message)
        self.traceback = traceback


class Attempt:
    """Runs its `with` block, and stores in `outcome` how that ended.

    Only KeyboardInterrupt and ReaderGone pass through. The traceback of a failure is also printed on standard error.
    This is a class and not a function that calls the block, because an additional stack frame takes time: TensorFlow
    walks the whole stack for every operation that it adds to a graph.
    """

    outcome = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, (KeyboardInterrupt, ReaderGone)):
            return False
        if error is None:
            self.outcome = Outcome(OK, None, None)
        elif isinstance(error, NotAvailable):
            self.outcome = Outcome(NOT_AVAILABLE, one_line(error), None)
        elif isinstance(error, CpuFallback):
            self.outcome = Outcome(CPU_FALLBACK, one_line(error), None)
        elif isinstance(error, ScriptFailed):
            self.outcome = Outcome(FAILED, one_line(error), error.traceback)
        elif isinstance(error, SystemExit):
            code = "" if error.code is None else repr(error.code)
            self.outcome = failure("the scenario called sys.exit({})".format(code))
        else:
            self.outcome = failure("{}: {}".format(type(error).__name__, one_line(error)))
        return True


def failure(reason):
    """Return a failed outcome with this reason, and with the traceback of the exception that is being handled."""
    text = None
    if sys.exc_info()[0] is not None:
        text = traceback.format_exc()
        sys.stderr.write(text)
        text = text[-TRACEBACK_CHARACTERS:]
    return Outcome(FAILED, reason[:REASON_CHARACTERS], text)


def one_line(error):
    """Return an exception's message on one line, shortened, and without TensorFlow's text about a node's origin."""
    try:
        return " ".join(MADE_AT.sub("", str(error)).split())[:REASON_CHARACTERS]
    except Exception:  # noqa: BLE001, the class may come from the scenario, with any __str__
        return "(its message cannot be read)"
