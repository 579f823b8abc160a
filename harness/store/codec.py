"""Stored documents to dataclasses and back. The dataclasses of `harness.model` are the schema."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from harness.model import launch as launches
from harness.model import run as runs
from harness.model.errors import DamagedError, UsageError
from harness.model.launch import Launch
from harness.model.profile import Profile
from harness.model.run import Run

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Stored = TypeVar("Stored", Run, Launch, Profile)


def _made(kind: type) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


#: The one adapter of each kind: making it takes longer than reading a document.
_adapter: Callable[[type], "TypeAdapter[Any]"] = cache(_made)


def dump(value: Run | Launch, *, indent: int | None = None) -> bytes:
    """A run or a launch as JSON; without `indent`, on one line. Numbers that are not finite become null."""
    data: bytes = _adapter(type(value)).dump_json(value, indent=indent)
    return data


def load_run(data: bytes, where: str) -> Run:
    """Raises UsageError, which names `where`, for what is not a run of a known schema."""
    return load(Run, data, runs.SCHEMA, where)


def load_launch(data: bytes, where: str) -> Launch:
    """Raises UsageError, which names `where`, for what is not a launch of a known schema."""
    return load(Launch, data, launches.SCHEMA, where)


def load(kind: type[Stored], data: bytes, newest: int, where: object) -> Stored:
    """A document of this kind, of the schemas up to `newest`. Raises UsageError, which names `where`."""
    from pydantic import ValidationError

    try:
        value: Stored = _adapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise DamagedError(where, f"{place}: {first['msg']}") from None
    if value.schema > newest:
        raise UsageError(
            f"{where} has schema {value.schema}; this harness reads up to {newest}.", "Update the harness to read it."
        )
    return value


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas of run.json and of a line of launches.jsonl, by file name."""
    documents = {
        f"run.v{runs.SCHEMA}.schema.json": ("run.json", Run),
        f"launch.v{launches.SCHEMA}.schema.json": ("a line of launches.jsonl", Launch),
    }
    return {
        name: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **_adapter(kind).json_schema(),
            "title": title,
        }
        for name, (title, kind) in documents.items()
    }
