"""The error of a call, as an observation."""

from collections import namedtuple

NOTHING = "no error"
MESSAGE_CHARACTERS = 200

# error: the exception's class, by its name, or "no error"; says: the first line of its message.
Raised = namedtuple("Raised", "error says")


def raised(call):
    """Call `call` and return what it raised. Later releases put a headline of their own above the message."""
    try:
        call()
    except Exception as error:  # noqa: BLE001, which one it is, is what is asked
        lines = str(error).strip().splitlines() or [""]
        return Raised(type(error).__name__, lines[0][:MESSAGE_CHARACTERS])
    return Raised(NOTHING, "")
