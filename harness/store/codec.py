"""Stored documents to dataclasses and back. The dataclasses of `harness.model` are the schema."""

from functools import cache
from typing import TYPE_CHECKING, Any

from harness.model import launch as launches
from harness.model import run as runs
from harness.model.errors import UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def dump(value: runs.Run | launches.Launch, *, indent: int | None = None) -> bytes:
    """A run or a launch as JSON; without `indent`, on one line. Numbers that are not finite become null."""
    kind = runs.Run if isinstance(value, runs.Run) else launches.Launch
    data: bytes = _adapter(kind).dump_json(value, indent=indent)
    return data


def load_run(data: bytes, where: str) -> runs.Run:
    """Raises UsageError, which names `where`, for what is not a run of a known schema."""
    value = _load(runs.Run, data, runs.SCHEMA, where)
    assert isinstance(value, runs.Run)
    return value


def load_launch(data: bytes, where: str) -> launches.Launch:
    """Raises UsageError, which names `where`, for what is not a launch of a known schema."""
    value = _load(launches.Launch, data, launches.SCHEMA, where)
    assert isinstance(value, launches.Launch)
    return value


def _load(kind: type, data: bytes, newest: int, where: str) -> Any:
    from pydantic import ValidationError

    try:
        value = _adapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise UsageError(f"{where} is damaged: {place}: {first['msg']}.") from None
    if value.schema > newest:
        raise UsageError(
            f"{where} has schema {value.schema}; this harness reads up to {newest}.", "Update the harness to read it."
        )
    return value


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas of run.json and of a line of launches.jsonl, by file name."""
    documents = {
        f"run.v{runs.SCHEMA}.schema.json": ("run.json", runs.Run),
        f"launch.v{launches.SCHEMA}.schema.json": ("a line of launches.jsonl", launches.Launch),
    }
    return {
        name: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **_adapter(kind).json_schema(),
            "title": title,
        }
        for name, (title, kind) in documents.items()
    }
