"""The command line: a module a command, which parses, calls `harness.session`, and prints.

Start-up is part of the design: what a command needs is imported when it runs, not for `--help`.
"""

import sys
from importlib import import_module

import typer

from harness.cli import advice, problems
from harness.model.errors import Exit, HarnessError
from harness.model.problem import FileError

#: The commands in the order of help. Each is a module here that has a function of its name, or `app`, a group of them.
COMMANDS = ("matrix", "profile", "report", "compare", "doctor", "clean", "images", "scenarios")

app = typer.Typer(
    name="harness",
    cls=advice.Group,
    help="Measure one piece of TensorFlow work across TensorFlow releases.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for name in COMMANDS:
    module = import_module(f"{__name__}.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name, cls=advice.Group)
    else:
        app.command(name=name, cls=advice.Command)(getattr(module, name))


def main() -> None:
    """Run the command that was typed. Expected errors are sentences on stderr, with the exit code of their kind."""
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
