"""The error of a call, as an observation."""

from collections import namedtuple

NOTHING = "no error"
MESSAGE_CHARACTERS = 200

# error: the name of the exception's class, or "no error"; says: the first line of its message.
Raised = namedtuple("Raised", "error says")


def catch_error(call):
    """Call `call`, and return its error as a Raised. Later releases put their own line before the message."""
    try:
        call()
    except Exception as error:  # noqa: BLE001, the class of the error is the observation
        lines = str(error).strip().splitlines() or [""]
        return Raised(type(error).__name__, lines[0][:MESSAGE_CHARACTERS])
    return Raised(NOTHING, "")
