"""Conversion of stored documents to dataclasses and back. The dataclasses in `harness.model` are the schema."""

import marshal
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from harness.model.errors import DamagedError, UsageError
from harness.model.launch import Launch, Sample, Samples
from harness.model.run import Run
from harness.model.scenario import Cell

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from harness.model.history import Decision, Note, Summary  # only commands for histories load this module
    from harness.model.profile import Profile

Stored = TypeVar("Stored", Run, Launch, "Profile", "Summary", "Note", "Decision")
_Value = TypeVar("_Value")

#: The empty mapping that launches without recorded values share.
_EMPTY: Mapping[str, Any] = {}


def _make_adapter(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


#: Returns the adapter for a kind of document. An adapter is created once, because creating it takes longer than reading
#: a document.
_get_adapter: Callable[[type], "TypeAdapter[Any]"] = cache(_make_adapter)


def dump(value: "Run | Launch | Summary | Note | Decision", *, indent: int | None = None) -> bytes:
    """Return a document as JSON. Without `indent`, the JSON is on one line.

    Numbers that aren't finite become null.
    """
    if isinstance(value, Launch):  # pydantic can't write samples that are stored as columns
        value = replace(
            value,
            samples=tuple(value.samples),
            alone=tuple(value.alone),
            phases=dict(value.phases),
            phases_cpu=dict(value.phases_cpu),
            resources=dict(value.resources),
        )
    data: bytes = _get_adapter(type(value)).dump_json(value, indent=indent)
    return data


def load(kind: type[Stored], data: bytes, where: object) -> Stored:
    """Parse a document of this kind. Raises UsageError (naming `where`) for a corrupt document or a newer schema."""
    from pydantic import ValidationError

    try:
        value: Stored = _get_adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        if first_error["type"] == "json_invalid":
            raise DamagedError(where, f"it isn't valid JSON: {first_error['ctx']['error']}") from None
        location = ".".join(str(part) for part in first_error["loc"]) or "the document"
        raise DamagedError(where, f"{location[:200]}: {first_error['msg'].removeprefix('Value error, ')}") from None
    # the schema that this version writes is the newest one that it can read
    newest: Any = next((field.default for field in fields(kind) if field.name == "schema"), None)
    schema: Any = getattr(value, "schema", None)
    if newest is not None and schema > newest:
        raise UsageError(
            f"{where} has schema {schema}, but this version of harness reads only schemas up to {newest}.",
            "Update harness to read it.",
        )
    return value


class Numbers(Mapping[str, float]):
    """Numbers by name. They need a third of the memory of a dictionary.

    `places` maps names to indices of `numbers`, and can be shared between objects.
    """

    __slots__ = ("numbers", "places")

    def __init__(self, numbers: Iterable[float], places: Mapping[str, int]) -> None:
        self.numbers = array("d", numbers)
        self.places = places

    def __getitem__(self, name: str) -> float:
        return self.numbers[self.places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return repr(dict(self))


class LaunchCompactor:
    """A converter that reduces the memory that launches need, because a run can have thousands of launches.

    Numbers are stored as columns, and equal values of several launches become one object.
    """

    def __init__(self) -> None:
        self._cells: dict[Cell, Cell] = {}
        self._values: dict[bytes, Any] = {}
        self._places: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._steps: dict[bytes, array[int]] = {}

    def compact(self, launch: Launch) -> Launch:
        """Return a copy of the launch that needs less memory: samples are columns, and equal values are shared."""
        return replace(
            launch,
            cell=self._cells.setdefault(launch.cell, launch.cell),
            group=sys.intern(launch.group),
            image=sys.intern(launch.image),
            error=sys.intern(launch.error),
            stderr=sys.intern(launch.stderr),
            advice=sys.intern(launch.advice),
            samples=self._make_columns(launch.samples),
            alone=self._make_columns(launch.alone),
            phases=self._make_numbers(launch.phases),
            phases_cpu=self._make_numbers(launch.phases_cpu),
            resources=self._make_numbers(launch.resources),
            observations=self._share_values(launch.observations),
            fingerprint=self._share_values(launch.fingerprint),
            pins=self._share(launch.pins),
            memory=launch.memory or (),
            gpus=launch.gpus or (),
            not_kept=launch.not_kept or (),
            artifacts=launch.artifacts or (),
            places=launch.places or (),
            follows=launch.follows or (),
        )

    def _make_columns(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        if not samples:
            return ()
        columns = Samples.of(samples)
        columns.steps = self._steps.setdefault(columns.steps.tobytes(), columns.steps)
        return columns

    def _make_numbers(self, numbers: Mapping[str, float]) -> Mapping[str, float]:
        if not numbers:
            return _EMPTY
        names = tuple(numbers)
        if names not in self._places:
            self._places[names] = {name: place for place, name in enumerate(names)}
        return Numbers(numbers.values(), self._places[names])

    def _share_values(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values as a shared object. Lists and mappings in the values are shared separately too."""
        shared_parts = {name: self._share(v) if isinstance(v, list | dict) else v for name, v in values.items()}
        return self._share(shared_parts) if shared_parts else _EMPTY

    def _share(self, value: _Value) -> _Value:
        # version 2 of this format distinguishes 1, 1.0 and True, and ignores whether parts are the same object
        shared_value: _Value = self._values.setdefault(marshal.dumps(value, 2), value)  # type: ignore[arg-type]
        return shared_value


def load_profile(data: bytes, where: object) -> "Profile":
    """Parse a profile, which comes from an untrusted script. Raises UsageError like `load`, and for invalid places."""
    from harness.model.profile import Profile  # noqa: PLC0415 - only reports of profiles need it

    profile = load(Profile, data, where)
    places = range(len(profile.functions))
    for function in profile.functions:
        if not all(caller.place in places for caller in function.callers):
            raise DamagedError(where, f"{function.name!r} has an invalid caller")
    if not all(stack and all(place in places for place in stack) for _, stack in profile.stacks):
        raise DamagedError(where, "a stack has an invalid function, or none")
    return profile
