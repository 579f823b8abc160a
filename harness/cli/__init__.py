"""The command line: a module a command, which parses, calls `harness.session`, and prints.

Start-up is part of the design: a module of `session` is imported when it is first used, not for `--help`.
"""

import errno
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from harness import __version__, package_data
from harness.cli import advice, completion
from harness.cli.messages import NO_WRITE, interruptible, say, say_defect, say_not_written, say_problems
from harness.model.errors import Exit, FileError, HarnessError

#: The commands in the order of help. Each is a module here that has a function of its name, or `app`, a group of them.
COMMANDS = (
    "matrix",
    "run",
    "repro",
    "bisect",
    "profile",
    "report",
    "compare",
    "merge",
    "bundle",
    "doctor",
    "clean",
    "completion",
    "history",
    "images",
    "scenarios",
    "fleet",
)


class _Commands(advice.CommandGroup):
    """The commands, each imported at first use: a run doesn't need the modules of other commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name; None if there is none."""
        return _command(cmd_name) if cmd_name in COMMANDS else None


@cache
def _command(name: str) -> Any:
    module = import_module(f"{__name__}.{name}")
    parent = typer.Typer(rich_markup_mode=None)
    if hasattr(module, "app"):
        for registered in module.app.registered_commands:
            registered.cls = advice.Command
        parent.add_typer(module.app, name=name, cls=advice.CommandGroup)
    else:
        parent.command(name=name, cls=advice.Command)(getattr(module, name))
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(
    name="harness",
    cls=_Commands,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(requested: bool) -> None:
    """Print the versions and the machine facts with which an issue starts. It connects to nothing."""
    if not requested:
        return
    from harness.machine import host  # noqa: PLC0415 - no command needs it

    here = host.facts()
    where = "installed" if package_data.IS_INSTALLED else "a checkout"
    typer.echo(f"harness {__version__} ({where}: {package_data.FOLDER})")
    typer.echo(f"Python {here['harness_python']}, {here['kernel']}, {here['system']}")
    typer.echo(f"{here['cpu']}; CPUs: {here['cores']}; memory: {here['memory_bytes'] / 1e9:.0f} GB")
    raise typer.Exit


@app.callback()
def harness(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version and machine.")
    ] = False,
) -> None:
    """Measure one piece of TensorFlow work across TensorFlow releases."""


def main() -> None:
    """Run the command of `arguments`. Errors are sentences on stderr, with the exit code of their class."""
    # bytes of a name that isn't valid UTF-8 are escaped
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    line = os.environ.get(completion.VARIABLE)
    if line is not None:
        from harness.cli.completion_server import answer  # noqa: PLC0415 - see there

        # written at once, so that nothing is left to write where the reader has gone
        with suppress(BrokenPipeError):
            os.write(sys.stdout.fileno(), f"{answer(app, line)}\n".encode())
        return
    try:
        # after the start, typer ends an interrupted command with 130 and without a message
        with interruptible(lambda count: "harness: interrupted." if count == 1 else ""):
            try:
                app()
            finally:
                with suppress(BrokenPipeError):  # the reader has gone
                    sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except FileError as error:
        say_problems(error.problems)
        sys.exit(error.exit)
    except HarnessError as error:
        say(f"harness: {error}")
        sys.exit(error.exit)
    except Exception as error:  # noqa: BLE001 - a defect of ours, whatever it is, is told in a sentence
        if isinstance(error, OSError) and error.errno in NO_WRITE:
            say_not_written(error)
            sys.exit(Exit.CANNOT_RUN_HERE)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            shown = str(error.filename)[:60]
            say(f"harness: Invalid path {shown!r}…: expected names of at most 255 bytes, 4,095 in all.")
            sys.exit(Exit.USAGE)
        say_defect(error)
        sys.exit(Exit.DEFECT)
