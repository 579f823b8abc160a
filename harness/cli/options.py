"""Makes a command's options of a request's fields, which say once how each is called, explained and read."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from harness.cli.choice import BackendName
from harness.session.request import LaunchRequest, Option

Asked = TypeVar("Asked", bound=LaunchRequest)

#: What the command line knows better than a request: the names that a value is one of.
_TYPES: Mapping[str, Any] = {"backend": BackendName}


class FailOn(StrEnum):
    """What --fail-on takes."""

    SLOWER = "slower"


#: Options of commands that are no part of a request.
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be launched, how long it takes and what is built; and stop.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run on this machine to end.")]


def of(kind: type[Asked]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command whose first parameter is a request of this `kind` an option for each of the request's fields.

    What is not typed is the field's default. The command's own options come after these; its docstring is its help.
    """
    hints = get_type_hints(kind, include_extras=True)
    options = [_Typed(each.name, *get_args(hints[each.name])) for each in fields(kind)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def expanded(**typed: Any) -> None:
            given = [(option, typed.pop(option.name)) for option in options]
            asked = {option.name: option.read(value) for option, value in given if value not in (None, False)}
            command(kind(**asked), **typed)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            *(option.parameter for option in options),
            *(each.replace(kind=each.KEYWORD_ONLY) for each in own),
        ]
        expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        expanded.__annotations__ = {each.name: each.annotation for each in parameters}
        return expanded

    return decorate


class _Typed:
    """A request's field as an option of a command."""

    def __init__(self, name: str, of: Any, option: Option) -> None:
        self.name = name
        self._type = of
        self._option = option
        self._flags = option.flags or (f"--{name.replace('_', '-')}",)

    @property
    def parameter(self) -> inspect.Parameter:
        """The command's parameter: None where the option is left out, False of a switch."""
        option, is_switch = self._option, self._type is bool
        told = f"{option.help}  [default: {option.shown}]" if option.shown else option.help
        made = typer.Option(*self._flags, help=told, show_default=False, min=option.least)
        typed = bool if is_switch else self._typed | None
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if is_switch else None,
            annotation=Annotated[typed, made],
        )

    @property
    def _typed(self) -> Any:
        """What typer makes of the text, before it is read."""
        if get_origin(self._type) in (Sequence, Mapping):
            return list[str]
        if self._option.read:
            return str
        # of a number or None, the number
        kinds = [kind for kind in get_args(self._type) if kind is not type(None)]
        return _TYPES.get(self.name, *(kinds or [self._type]))

    def read(self, typed: Any) -> Any:
        """The field's value. Raises UsageError, which names the option."""
        return self._option.read(typed, self._flags[-1]) if self._option.read else typed
