"""The command line. A module per command parses the options, calls `harness.session`, and prints the result.

Commands must start fast. So the modules of `session` are imported at their first use, not for `--help`.
"""

import errno
import os
import re
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import __version__, package_data
from harness.cli import advice, completion, documents
from harness.cli.messages import (
    NO_WRITE,
    describe_defect,
    describe_not_written,
    handle_signals,
    is_denied,
    open_closed_streams,
    say,
    say_problems,
)
from harness.model.errors import CannotRunHereError, Exit, FileError, HarnessError, UsageError
from harness.project import find_settings_file

#: The commands by heading, in the order in which help lists them. Each has a module in this package, with a function of
#: the same name or a group `app`.
COMMANDS = {
    "Measure": ("run", "matrix", "repro", "bisect", "profile"),
    "Read": ("ask", "report", "compare", "bundle", "atlas"),
    "Set up": ("doctor", "images", "scenarios", "completion", "clean"),
    "CI and several machines": ("history", "merge", "fleet"),
}


class _Commands(advice.CommandGroup):
    """The group of all commands. It imports only the module of the command that is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of help."""
        return [name for names in COMMANDS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in COMMANDS.items():
            with formatter.section(heading):
                commands = [advice.Command(name, help=_read_summary(name)) for name in names]
                limit = formatter.width - width - 6
                formatter.write_dl([(f"{entry.name:{width}}", entry.get_short_help_str(limit)) for entry in commands])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None."""
        return _load_command(cmd_name) if cmd_name in self.list_commands(ctx) else None


def _read_summary(name: str) -> str:
    """Return the first line of a command's help from its source, because importing all commands takes longer."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    match = re.search(rf'(?s)\ndef {name}\(.*?"""(.*?)(?:"""|\n)|\napp = .*?help="([^"]*)"', text)
    assert match, f"{name} has no help"
    return match[1] or match[2]


@cache
def _load_command(name: str) -> Any:
    module = import_module(f"{__name__}.{name}")
    parent = typer.Typer(rich_markup_mode=None)
    if hasattr(module, "app"):
        for registered in module.app.registered_commands:
            registered.cls = advice.Command
            own_name = registered.name or registered.callback.__name__
            registered.callback = documents.with_json(registered.callback, f"{name} {own_name}")
        parent.add_typer(module.app, name=name, cls=advice.CommandGroup)
    else:
        parent.command(name=name, cls=advice.Command)(documents.with_json(getattr(module, name), name))
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


def _show_version(is_requested: bool) -> None:
    """Print the versions and facts about this machine for a bug report. This opens no network connection."""
    if not is_requested:
        return
    from harness.machine import host  # noqa: PLC0415 - only --version needs it here

    facts = host.read_facts()
    installation = "installed" if package_data.IS_INSTALLED else "a checkout"
    typer.echo(f"harness {__version__} ({installation}: {package_data.FOLDER})")
    typer.echo(f"Python {facts['harness_python']}, {facts['kernel']}, {facts['system']}")
    typer.echo(f"{facts['cpu']}; CPUs: {facts['cores']}; memory: {facts['memory_bytes'] / 1e9:.0f} GB")
    raise typer.Exit


@app.callback()
def harness(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and the machine.")
    ] = False,
) -> None:
    """Find out whether TensorFlow code became slower between releases, by how much, and how certain that is."""
    if path := find_settings_file():
        from harness.session.settings import load  # noqa: PLC0415 - most projects have no file

        load(path).export()


def main() -> None:
    """Run the command line. Print errors as sentences on stderr, and exit with the code of the error's class.

    With --json, also print the error as a JSON document on stdout.
    """
    open_closed_streams()
    documents.printed_errors.clear()  # tests run several commands in a process
    # escape bytes of file names that aren't valid UTF-8
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    line = os.environ.get(completion.VARIABLE)
    if line is not None:
        from harness.cli.completion_server import complete_line  # noqa: PLC0415 - see there

        # unbuffered, so that no output is pending at exit if the reader has ended
        with suppress(BrokenPipeError):
            os.write(sys.stdout.fileno(), f"{complete_line(app, line)}\n".encode())
        return
    try:
        # typer itself would end an interrupted command without a message
        with handle_signals(lambda count: "harness: interrupted." if count == 1 else ""):
            try:
                app()
            finally:
                with suppress(BrokenPipeError):  # the reader has ended
                    sys.stdout.flush()
    except KeyboardInterrupt:
        documents.print_error("interrupted", "", Exit.INTERRUPTED)
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - any other error is a bug, which is reported in a sentence
        known = _explain(error)
        if isinstance(known, FileError):
            say_problems(known.problems)
        else:
            say(f"harness: {known}")
        with suppress(OSError):  # the output may be the reason
            documents.print_error(known.message, known.advice, known.exit)
        sys.exit(known.exit)


def _explain(error: Exception) -> HarnessError:
    """Return an error as a sentence, with the exit code of its class."""
    if isinstance(error, HarnessError):
        return error
    if isinstance(error, MemoryError):
        return CannotRunHereError(
            "This command needs more memory than is available. Finished launches are saved.",
            "Run it on a machine with more memory, or raise the limit (`ulimit -v`, or the container's or CI job's "
            "limit).",
        )
    if isinstance(error, OSError) and (error.errno in NO_WRITE or is_denied(error)):
        return describe_not_written(error)
    if isinstance(error, FileNotFoundError) and error.filename is None:  # of os.getcwd()
        return UsageError("The current folder doesn't exist anymore.", "Change to another folder, such as: cd ~")
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        path_start = str(error.filename)[:60]
        return UsageError(f"Invalid path {path_start!r}…: expected at most 255 bytes per name, and 4,095 in total.")
    return describe_defect(error)
