"""The command line. Every module here parses, calls and prints; none of them computes.

Start-up is part of the design: a command's modules are imported when the command runs, not for `--help`.
"""

import os
import sys
from typing import Annotated

import typer

from harness.cli import completion, problems, version
from harness.cli.clean import clean as clean_command
from harness.cli.compare import compare as compare_command
from harness.cli.doctor import doctor as doctor_command
from harness.cli.images import app as images_app
from harness.cli.matrix import matrix as matrix_command
from harness.cli.profile import profile as profile_command
from harness.cli.report import report as report_command
from harness.cli.scenarios import app as scenarios_app
from harness.model.errors import Exit, HarnessError
from harness.model.problem import FileError

app = typer.Typer(
    name="harness",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def harness(
    _version: Annotated[
        bool, typer.Option("--version", callback=version.show, is_eager=True, help="Show version and machine.")
    ] = False,
) -> None:
    """Measure one piece of TensorFlow work across TensorFlow releases."""


app.command(name="matrix")(matrix_command)
app.command(name="profile")(profile_command)
app.command(name="report")(report_command)
app.command(name="compare")(compare_command)
app.command(name="completion")(completion.script)
app.command(name="doctor")(doctor_command)
app.command(name="clean")(clean_command)
app.add_typer(images_app, name="images")
app.add_typer(scenarios_app, name="scenarios")


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
