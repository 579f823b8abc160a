"""`harness report`."""

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import session
from harness.cli import completion, documents
from harness.cli.messages import say, say_torn
from harness.files import write_output
from harness.model.errors import CannotRunHereError, Exit, UsageError, explain_unwritable
from harness.report.formats import list_formats

if TYPE_CHECKING:
    from harness.analysis.results import Results
    from harness.session import Written


def _check_format(format: str | None) -> str | None:
    """Return the value of --format. Raises UsageError for an unknown format."""
    if format and format not in list_formats():
        raise UsageError(f"Unknown format: {format!r}.", f"Use one of {', '.join(list_formats())}.")
    return format


RunArgument = Annotated[
    Path | None, completion.RunFolderArgument(help="The folder of a run, under results/. Default: the newest run.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar=f"[{'|'.join(list_formats())}]",
        callback=_check_format,
        autocompletion=list_formats,
        help="Print the report in this format. Default: write report.md, details.md, report.html and charts/.",
    ),
]
Template = Annotated[
    Path | None,
    typer.Option(
        "--template",
        metavar="FILE.j2",
        help="Print the report in the layout of this Jinja template: HTML for NAME.html.j2, otherwise Markdown.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="The file to write with --format or --template. Default: stdout."),
]
Full = Annotated[
    bool, typer.Option("--full", help="Write everything to report.md, without a size limit and without details.md.")
]


def report(
    run: RunArgument = None, format: Format = None, template: Template = None, output: Output = None, full: Full = False
) -> None:
    """Write the report of a run again, or export its results.

    If no cell of the run has a result or an observation, the exit code is 1.
    """
    if format and template:
        raise UsageError("--format and --template can't be used together.", "Omit one of them.")
    layout = template or format
    if output and not layout:
        raise UsageError("--output needs --format or --template.", "For example: --format json --output report.json")
    if full and layout:
        option = "--template" if template else "--format"
        raise UsageError(f"--full needs report.md, which {option} doesn't write.", f"Omit --full or {option}.")
    if run is None:
        (run,) = session.find_newest_runs()
        say(f"The newest run: {run}")
    say_torn(run)
    if not layout:
        results = session.read_in_place(run)
        show(session.report(run, results, full=full), results)
        if not session.has_numbers(results):
            raise typer.Exit(Exit.CELLS_FAILED)
    elif output:
        save(output, session.export(run, layout))
    else:
        sys.stdout.buffer.write(session.export(run, layout))
        sys.stdout.flush()


def show(
    written: "Written", results: "Results", *, tables: bool = True, only: Collection[str] = (), end: bool = True
) -> None:
    """Print the tables of a report on stdout. With `only`, print just the sections with these anchors.

    Print the paths of the reports on stderr. With `end`, first print how to continue a run that ended early.
    """
    # only this function needs them
    from harness.report import terminal  # noqa: PLC0415
    from harness.report.sections import continuation  # noqa: PLC0415

    if tables:
        # the first screen is enough for a run that compares something
        anchors = only or (["answer", "claims"] if results.answers else ())
        terminal.show([section for section in written.sections if not anchors or section.anchor in anchors])
        sys.stdout.flush()
    early_end, command = continuation.explain_early_end(results), continuation.command_to_continue(results)
    # not if nothing is left to do, nor after a table with advice, which has its own command
    if end and early_end and command and not (tables and continuation.find_rounds_to_settle(results) is not None):
        # on a separate line, so that the user can copy it
        say(f"{early_end} To continue the run:\n    {command}")
    documents.files += written.files
    main_file, *other_files = written.files
    # report.md has a link to details.md
    page = f" (and {other_files[-1].name})" if other_files else ""
    say(f"{'Profile' if main_file.stem == 'profile' else 'Report'}: {main_file}{page}")


def save(path: Path, data: bytes) -> None:
    """Write a regular file completely or not at all; write directly to a device or pipe. Raises CannotRunHereError."""
    if not path.parent.is_dir():  # probably a typing error
        raise CannotRunHereError(
            f"{path} cannot be written: the folder {path.parent} doesn't exist.", "Create the folder first."
        )
    documents.files.append(path)
    with explain_unwritable(path, "Choose another file with --output."):
        write_output(path, data)
