"""Images to and from a registry."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.backends.engine import Engine, sentences
from harness.backends.text import one_line
from harness.model.errors import CannotRunHereError


def push(engine: Engine, tag: str) -> None:
    """Push an image that the engine has. Raises CannotRunHereError with the registry's own words."""
    with sentences(f"push {tag}"):
        _heed(engine.api.push(tag, stream=True, decode=True), f"push {tag}")


def pull(engine: Engine, tag: str, is_stopped: Callable[[], bool]) -> None:
    """Pull an image, until it is there or `is_stopped`. Raises CannotRunHereError with the registry's own words."""
    with sentences(f"pull {tag}"):
        _heed(engine.api.pull(tag, stream=True, decode=True), f"pull {tag}", is_stopped)


def _heed(messages: Iterable[Mapping[str, Any]], what: str, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Follow a transfer to its end: an engine that has begun one tells of errors on the way, not by its status."""
    for message in messages:
        if "error" in message:
            raise CannotRunHereError(f"The Docker Engine would not {what}: {one_line(str(message['error']))}")
        if is_stopped():
            return
