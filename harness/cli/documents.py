"""The JSON documents of `--json` for errors, and for commands that define no document."""

import functools
import inspect
import json as codec
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.model.errors import Exit, HarnessError
from harness.model.texts import escape_json

#: The lines that this command has printed on stderr, and the files that it has written.
messages: list[str] = []
files: list[Path] = []

#: Errors that a document on stdout already contains. Stdout has only one document.
printed_errors: list[HarnessError] = []


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """An error: its message, its advice (empty if there is none), and the exit code of the command."""

    error: str
    advice: str
    exit: int


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """The result of a command that defines no document.

    `output` contains the printed lines, or the data if they are JSON. `messages` are the
    lines on stderr. `files` are the reports and other results that were written. `exit` is the exit code.
    """

    command: str
    exit: int
    output: Any
    files: Sequence[str]
    messages: Sequence[str]


def is_requested() -> bool:
    """Return whether the command line has --json, before the arguments of a script."""
    words = sys.argv[1:]
    return "--json" in words[: words.index("--") if "--" in words else None]


def print_error(error: str, advice: str, code: Exit) -> None:
    """Print the document of an error on stdout if --json was passed, unless another document contains the error."""
    if is_requested() and not printed_errors:
        _print(ErrorDocument(error, advice, code))


def with_json(command: Callable[..., None], name: str) -> Callable[..., None]:
    """Return the command with the option --json, unless it has one. With it, it prints only a ResultDocument."""
    parameters = inspect.signature(command, eval_str=True).parameters
    if "json" in parameters:
        return command

    @functools.wraps(command)
    def run_command(*, json: bool, **arguments: Any) -> None:
        if not json:
            command(**arguments)
            return
        messages.clear()
        files.clear()
        output, code = TextIOWrapper(BytesIO(), "utf-8", write_through=True), 0
        try:
            with redirect_stdout(output):
                command(**arguments)
        except typer.Exit as ending:
            code = ending.exit_code
        text = output.buffer.getvalue().decode()
        _print(ResultDocument(name, code, _read(text), list(map(str, files)), list(messages)))
        raise typer.Exit(code)

    option = typer.Option("--json", help="Print the result as JSON on stdout.")
    json = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option])
    parts = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters.values()]
    run_command.__signature__ = inspect.Signature([*parts, json])  # type: ignore[attr-defined]
    run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parts, json)}
    return run_command


def _read(text: str) -> Any:
    """Return the data of a JSON text, or otherwise the lines."""
    try:
        return codec.loads(text)
    except ValueError:
        return text.splitlines()


def _print(document: ErrorDocument | ResultDocument) -> None:
    sys.stdout.write(f"{escape_json(codec.dumps(asdict(document)))}\n")
    sys.stdout.flush()
