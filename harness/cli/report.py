"""`harness report`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from harness.model.errors import CannotRunHereError, UsageError
from harness.report.formats import Format


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, under results/.")],
    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Print the report in this format; without it, write report.md and report.html and show their tables.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write what --format makes to this file.")
    ] = None,
) -> None:
    """Make a run's report again from its launches, or write it in another tool's format."""
    from harness import session
    from harness.cli import reports

    if output and not format:
        raise UsageError("--output needs a --format to write.", "For example: --format json --output report.json")
    if not format:
        reports.show(session.report(run))
    elif output:
        _save(output, session.export(run, format))
    else:
        sys.stdout.buffer.write(session.export(run, format))
        sys.stdout.flush()


def _save(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises CannotRunHereError."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise CannotRunHereError(
            f"{path} cannot be written: {error.strerror}.", "Name another file with --output."
        ) from None
