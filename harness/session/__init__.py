"""A run from its request to what it found: the Python API. See docs/api.md.

    from harness import session

    planned = session.plan(session.Request(suite="quick"))
    ended = session.run(planned, session.Listener())
    ended.results.tables

Nothing here prints, reads the command line or ends the process: progress goes to a listener, what was found is
returned, and errors are `HarnessError`s.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.session.comparing import compare
    from harness.session.forecast import Outlook, outlook
    from harness.session.gating import Gate, gate
    from harness.session.listener import Listener
    from harness.session.planning import Planned, plan
    from harness.session.reporting import Written, export, read, report
    from harness.session.request import ProfileRequest, Request
    from harness.session.running import Ended, resume, run

__all__ = [
    "Ended",
    "Gate",
    "Listener",
    "Outlook",
    "Planned",
    "ProfileRequest",
    "Request",
    "Written",
    "compare",
    "export",
    "gate",
    "outlook",
    "plan",
    "read",
    "report",
    "resume",
    "run",
]

_MODULES = {
    "comparing": ("compare",),
    "forecast": ("Outlook", "outlook"),
    "gating": ("Gate", "gate"),
    "listener": ("Listener",),
    "planning": ("Planned", "plan"),
    "reporting": ("Written", "export", "read", "report"),
    "request": ("ProfileRequest", "Request"),
    "running": ("Ended", "resume", "run"),
}


def __getattr__(name: str) -> Any:
    """A name when it is first used: a plan needs nothing of what measures or reports, and is there in half the time."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
