"""How a scenario ended, as data: what it raised becomes a status and a sentence."""

import sys
import traceback
from collections import namedtuple

from .events import ReaderGone

OK = "ok"
FAILED = "failed"
NOT_AVAILABLE = "not available"

REASON_CHARACTERS = 500
TRACEBACK_CHARACTERS = 8000

# status: one of the three above; reason: one line, or None; traceback: its end, or None.
Outcome = namedtuple("Outcome", "status reason traceback")


class NotAvailable(Exception):  # noqa: N818, it is no error
    """Raised by a scenario that cannot run in this environment: its message is shown, and it is no failure."""


def attempt(action):
    """Run `action()` and say how it ended. Only KeyboardInterrupt and ReaderGone come through.

    The traceback of a failure is printed to standard error too.
    """
    try:
        action()
    except (KeyboardInterrupt, ReaderGone):
        raise
    except NotAvailable as reason:
        return Outcome(NOT_AVAILABLE, one_line(reason), None)
    except SystemExit as leaving:
        code = "" if leaving.code is None else repr(leaving.code)
        return failure("the scenario called sys.exit({})".format(code))
    except BaseException as error:  # noqa: BLE001, whatever a stranger raises
        return failure("{}: {}".format(type(error).__name__, one_line(error)))
    return Outcome(OK, None, None)


def failure(reason):
    """A failed outcome; inside an `except` block with that exception's traceback."""
    text = None
    if sys.exc_info()[0] is not None:
        text = traceback.format_exc()
        sys.stderr.write(text)
        text = text[-TRACEBACK_CHARACTERS:]
    return Outcome(FAILED, reason[:REASON_CHARACTERS], text)


def one_line(error):
    """What an exception says, on one line: TensorFlow puts the point of a message far down in it."""
    try:
        return " ".join(str(error).split())[:REASON_CHARACTERS]
    except Exception:  # noqa: BLE001, a stranger's __str__
        return "(its message cannot be read)"
