"""Makes the options of a command from the fields of a request. The fields define names, help texts and parsers."""

import functools
import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer

from harness.backends.registry import CHOICES
from harness.cli import completion
from harness.cli.messages import say
from harness.model.texts import joined
from harness.project import find_settings_file
from harness.session.options import FieldOption, MachineOption, Option, OutputOption
from harness.session.request import Request, options

RequestType = TypeVar("RequestType")

#: Types with the valid values of fields that contain a plain text in a request, by field.
_TYPES: Mapping[str, Any] = {"backend": StrEnum("Backend", {name.upper(): name for name in CHOICES})}

#: Completion functions by field.
_COMPLETERS: Mapping[str, Callable[..., Any]] = {
    "suite": completion.complete_suites,
    "environments": completion.complete_environments,
    "good": completion.complete_environments,
    "bad": completion.complete_environments,
    "reference": completion.complete_environments,
    "scenarios": completion.complete_scenarios,
    "scenario": completion.complete_scenarios,
    "axes": completion.complete_axes,
    "resume": completion.complete_runs,
}


class FailOn(StrEnum):
    """The values of --fail-on."""

    SLOWER = "slower"


class FailOnClaim(StrEnum):
    """The values of --fail-on in `harness repro`."""

    CONFIRMED = "confirmed"
    FIXED = "fixed"


#: The fields of a request that a command for a script or for issues sets itself, so they get no option.
PRESET_FIELDS = ("suite", "scenarios", "claims", "budget_is_wish", "sampling", "interleave", "shard", "balance", "on")

#: Options of several commands that aren't part of a request.
DryRun = Annotated[bool, OutputOption("Only show what would be launched and built, and how long it would take.")]
ExitVerdict = Annotated[
    bool,
    OutputOption(
        "Exit with the verdict: 10 faster, 11 slower, 12 same, 13 unclear, 14 invalid. With --json, the last document "
        "is the verdict. Exit with 1 if a cell failed."
    ),
]
Json = Annotated[bool, OutputOption("Print the plan or the launches as JSON on stdout.")]
ScriptArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="The script's own arguments.")
]
Wait = Annotated[bool, MachineOption("If another run is measuring on this machine, wait until it ends.")]


def of(
    kind: type[RequestType],
    *,
    without: Collection[str] = (),
    texts: Mapping[str, str] | None = None,
    configured: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command whose first parameter is a request. It adds an option for each field of `kind`.

    Fields in `without` get no option, and keep their default values. Fields whose option the user doesn't pass also
    keep their default values. `texts` are help texts of fields that mean something else in this command. The command's
    own parameters come last: arguments, or types annotated with an `Option`. The command's docstring is its help. With
    `configured`, the project's settings are defaults.
    """
    texts = texts or {}
    fields = [
        replace(field, option=replace(field.option, help=texts.get(field.name, field.option.help)))
        for field in options(kind).values()
        if field.name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run_command(**arguments: Any) -> None:
            values = {}
            for field in fields:
                value = arguments.pop(field.name)
                if field.name in _TYPES and value is not None:
                    value = str(value)  # the request contains a plain text
                if value not in (None, False):
                    values[field.name] = field.parse(value)
            if configured and not (arguments.get("resume") or values.keys() & {"suite", "claims"}):
                _add_settings(fields, values)
            _say_repeated(values.get("environments", ()))
            command(kind(**values), **arguments)

        _, *own_parameters = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [*map(_make_parameter, fields), *map(_convert_parameter, own_parameters)]
        run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run_command

    return decorate


def make_option(name: str, **changes: Any) -> Any:
    """Return the option of a field of `Request`, with `changes`, for a command that needs only a few such options.

    The command receives the text from the command line, or the value that typer converts it to.
    """
    field = options(Request)[name]
    return _make_typer_option(replace(field, option=replace(field.option, **changes)))


def find_passed_names(context: typer.Context) -> list[str]:
    """Return the names of the parameters that the user passed on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _add_settings(fields: Sequence[FieldOption], values: dict[str, Any]) -> None:
    """Add values of environment variables and of the project's file, and print which ones."""
    file_values: Mapping[str, Any] = {}
    if path := find_settings_file():
        from harness.session.settings import load  # noqa: PLC0415 - most projects have no file

        file_values = load(path).values
    used: dict[Any, list[str]] = {}
    passed_names = frozenset(values)
    for field in fields:
        name = "baseline" if field.name == "reference" else field.name
        text = os.environ.get(f"HARNESS_{name.upper()}", "")
        value = text or file_values.get(name)
        is_overridden = not passed_names.isdisjoint(
            (field.name, *(("rounds", "precision") if name == "budget" else ()))
        )
        if name == "baseline" and value and "environments" in passed_names:
            is_overridden |= not _is_selected(value, values["environments"])
        if name in ("environments", "scenarios", "baseline", "budget") and value and not is_overridden:
            value_text = value if isinstance(value, str) else joined(value)
            values[field.name] = field.parse([value] if text and get_origin(field.type) is Sequence else value)
            used.setdefault("environment variables" if text else path, []).append(f"{name} {value_text}")
    for source, parts in used.items():
        say(f"From {source}: {'; '.join(parts)}.")


def _is_selected(name: str, texts: Sequence[str]) -> bool:
    """Return whether values of -e, which can be globs, select an environment."""
    from harness.environments.requested import parse_requested  # noqa: PLC0415 - most projects have no baseline

    return any(fnmatchcase(str(parse_requested(name)), str(parse_requested(text))) for text in texts)


def _say_repeated(environments: Sequence[str]) -> None:
    for name, count in Counter(environments).items():
        if count > 1:
            say(f"{name} is specified {count} times, and measured as one environment.")


def _make_parameter(field: FieldOption) -> inspect.Parameter:
    """Return the parameter of a command for a field. Its default is None, or False for a switch."""
    is_switch = field.type is bool
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if is_switch else None,
        annotation=Annotated[bool if is_switch else _get_text_type(field) | None, _make_typer_option(field)],
    )


def _convert_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a command's own parameter, with the option of typer instead of an `Option`."""
    kind, *marks = get_args(parameter.annotation) or [parameter.annotation]
    if marks and isinstance(marks[0], Option):
        option = _make_typer_option(FieldOption(parameter.name, kind, marks[0]))
        parameter = parameter.replace(annotation=Annotated[kind, option])
    return parameter.replace(kind=parameter.KEYWORD_ONLY)


def _make_typer_option(field: FieldOption) -> Any:
    option = field.option
    text = f"{option.help}  [default: {option.shown}]" if option.shown else option.help
    return typer.Option(
        *field.flags,
        help=text,
        show_default=False,
        hidden=option.hidden,
        metavar=option.metavar or ("N" if field.is_whole_number else None),
        envvar="HARNESS_RESULTS" if field.name == "results" else None,
        show_envvar=False,
        rich_help_panel=option.panel,
        autocompletion=_COMPLETERS.get(field.name),
    )


def _get_text_type(field: FieldOption) -> Any:
    """Return the type to which typer converts the text, before the request's parser reads it."""
    if get_origin(field.type) in (Sequence, Mapping):
        return list[str]
    if field.option.read or field.is_whole_number:
        return str
    # without the None of an optional type
    kinds = [kind for kind in get_args(field.type) if kind is not type(None)] or [field.type]
    return _TYPES.get(field.name, kinds[0])
