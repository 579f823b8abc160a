"""Small profiles for tests: `function()` and `profile()`; every argument but the name has a default."""

from typing import Any

from harness.model.profile import Caller, Function, Part, Profile


def function(
    name: str,
    file: str = "/site/tensorflow/python/ops/nn.py",
    *,
    calls: int = 10,
    own: float = 1.0,
    cumulative: float | None = None,
    callers: dict[int, float] | None = None,
) -> Function:
    """A Python function; `callers` are cumulative seconds by the caller's place."""
    edges = [Caller(place, calls, 0.0, seconds) for place, seconds in (callers or {}).items()]
    return Function(file, 1, name, calls, calls, own, own if cumulative is None else cumulative, edges)


def profile(*functions: Function, calls: int = 10, **changes: Any) -> Profile:
    """Ten later calls, in as many seconds as the functions took by themselves."""
    fields: dict[str, Any] = {
        "part": Part.STEADY,
        "calls": calls,
        "seconds": sum(entry.own for entry in functions),
        "functions": list(functions),
    }
    return Profile(**{**fields, **changes})


def first(*functions: Function, **changes: Any) -> Profile:
    """A first call."""
    return profile(*functions, calls=1, part=Part.FIRST_CALL, **changes)
