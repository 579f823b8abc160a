"""A run from its request to its results: the Python API. See docs/reference/python-api.md.

    from harness import session

    planned = session.plan(session.Request(suite="quick"))
    ended = session.run(planned, session.Listener())
    ended.results.tables

No function of this package prints, reads the command line or ends the process. A listener receives the progress,
functions return their results, and errors are `HarnessError`s.
"""
# these names are imported for type checkers, and for users of this package
# mypy: implicit-reexport
# ruff: noqa: F401

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.session import doctor, images, names, pack, scenarios, scripts, sources, versions
    from harness.session.forecast import DurationEstimate, estimate_duration
    from harness.session.listener import Listener
    from harness.session.planning.plan import plan
    from harness.session.planning.planned import Planned
    from harness.session.reporting import (
        Gate,
        Written,
        compare,
        export,
        find_newest_runs,
        find_raised_errors,
        gate,
        has_numbers,
        is_torn,
        read,
        read_in_place,
        report,
    )
    from harness.session.request import ProfileRequest, Request
    from harness.session.resuming import Earlier, estimate_rest, load_earlier
    from harness.session.running import Ended, resume, run

_NAMES = {
    "forecast": ("DurationEstimate", "estimate_duration"),
    "planning.plan": ("plan",),
    "planning.planned": ("Planned",),
    "reporting": (
        *("Gate", "Written", "compare", "export", "find_newest_runs", "find_raised_errors", "gate", "has_numbers"),
        *("is_torn", "read", "read_in_place", "report"),
    ),
    "request": ("ProfileRequest", "Request"),
    "resuming": ("Earlier", "estimate_rest", "load_earlier"),
    "running": ("Ended", "resume", "run"),
    "listener": ("Listener",),
}
__all__ = [name for names in _NAMES.values() for name in names]


def __getattr__(name: str) -> Any:
    """Import a name, or a module for the command line, at its first use.

    A command that only plans then starts faster, because it doesn't import the modules that measure.
    """
    if name in ("doctor", "images", "names", "pack", "scenarios", "scripts", "sources", "versions"):
        return import_module(f"{__name__}.{name}")
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
