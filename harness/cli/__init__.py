"""The command line: a module a command, which parses, calls `harness.session`, and prints.

Start-up is part of the design: what a command needs is imported when it runs, not for `--help`.
"""

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from harness.cli import advice, completion, problems, version
from harness.model.errors import Exit, FileError, HarnessError

#: The commands in the order of help. Each is a module here that has a function of its name, or `app`, a group of them.
COMMANDS = ("matrix", "profile", "report", "compare", "doctor", "clean", "completion", "images", "scenarios")

app = typer.Typer(
    name="harness",
    cls=advice.CommandGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for name in COMMANDS:
    module = import_module(f"{__name__}.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name, cls=advice.CommandGroup)
    else:
        app.command(name=name, cls=advice.Command)(getattr(module, name))


@app.callback()
def harness(
    _version: Annotated[
        bool, typer.Option("--version", callback=version.show, is_eager=True, help="Show version and machine.")
    ] = False,
) -> None:
    """Measure one piece of TensorFlow work across TensorFlow releases."""


def main() -> None:
    """Run the command that was typed. Expected errors are sentences on stderr, with the exit code of their kind."""
    if completion.VARIABLE in os.environ:
        print("\n".join(completion.answer(app, os.environ[completion.VARIABLE])))
        return
    try:
        app()
    except FileError as error:
        print("\n".join(problems.lines(error.problems)), file=sys.stderr)
        sys.exit(error.exit)
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        sys.exit(error.exit)
    except KeyboardInterrupt:
        print("harness: interrupted.", file=sys.stderr)
        sys.exit(Exit.INTERRUPTED)
