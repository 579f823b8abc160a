"""Converts stored documents to dataclasses and back. The dataclasses of `harness.model` are the schema."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from harness.model import history
from harness.model import launch as launches
from harness.model import profile as profiles
from harness.model import run as runs
from harness.model.errors import DamagedError, UsageError
from harness.model.history import Summary
from harness.model.launch import Launch
from harness.model.profile import Profile
from harness.model.run import Run

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Stored = TypeVar("Stored", Run, Launch, Profile, Summary)

#: The newest schema of each kind that this version can read.
_NEWEST: dict[type, int] = {
    Run: runs.SCHEMA,
    Launch: launches.SCHEMA,
    Profile: profiles.SCHEMA,
    Summary: history.SCHEMA,
}


def _make_adapter(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


#: The adapter of each kind. It is made once, because making it takes longer than reading a document.
_adapter: Callable[[type], "TypeAdapter[Any]"] = cache(_make_adapter)


def dump(value: Run | Launch | Summary, *, indent: int | None = None) -> bytes:
    """Return a run, a launch or a summary as JSON. Without `indent`, it is on one line.

    Numbers that aren't finite become null.
    """
    if isinstance(value, Launch):  # pydantic doesn't write the columns of a stored launch
        value = replace(value, samples=tuple(value.samples), alone=tuple(value.alone))
    data: bytes = _adapter(type(value)).dump_json(value, indent=indent)
    return data


def load(kind: type[Stored], data: bytes, where: object) -> Stored:
    """Return a document of this kind. Raises UsageError with `where` for a corrupt document or a newer schema."""
    from pydantic import ValidationError

    try:
        value: Stored = _adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise DamagedError(where, f"it is not JSON that can be read: {first['ctx']['error']}") from None
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DamagedError(where, f"{place[:200]}: {first['msg'].removeprefix('Value error, ')}") from None
    if value.schema > _NEWEST[kind]:
        raise UsageError(
            f"{where} has schema {value.schema}, but this version of harness reads only schemas up to {_NEWEST[kind]}.",
            "Update harness to read it.",
        )
    return value


def load_profile(data: bytes, where: object) -> Profile:
    """Return a profile of an untrusted script. Raises UsageError as `load`, and for invalid numbers."""
    profile = load(Profile, data, where)
    if profile.calls < 1 or profile.steps < 1:
        raise DamagedError(where, "its calls or steps aren't a valid number")
    if not all(0.0 <= seconds < math.inf for seconds in (profile.seconds, profile.plain_seconds or 0.0)):
        raise DamagedError(where, "its seconds aren't a valid duration")
    places = range(len(profile.functions))
    for function in profile.functions:
        numbers = [function.own, function.cumulative, *(caller.cumulative for caller in function.callers)]
        if not all(caller.place in places for caller in function.callers) or not all(
            0.0 <= number < math.inf for number in numbers
        ):
            raise DamagedError(where, f"{function.name!r} has an invalid caller or time")
    for seconds, stack in profile.stacks:
        if not 0.0 <= seconds < math.inf or not all(place in places for place in stack):
            raise DamagedError(where, "a stack has an invalid function or time")
    return profile
