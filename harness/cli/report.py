"""`harness report`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.model.errors import CannotRunHereError, UsageError
from harness.report.formats import Format

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, under results/.")],
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Print the report in this format; without it, write report.md and show its tables."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write what --format makes to this file.")
    ] = None,
) -> None:
    """Make a run's report again from its launches, or write it in another tool's format."""
    from harness.report import formats
    from harness.store.folder import RunFolder

    if output and not format:
        raise UsageError("--output needs a --format to write.", "For example: --format json --output report.json")
    folder = RunFolder.open(run)
    if not format:
        write(folder)
        return
    text = formats.render(format, folder.read_run(), folder.read_launches())
    # encoded here: CSV has line ends of its own, and a terminal's encoding is no concern of a file format
    if output:
        _save(output, text.encode())
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def write(folder: "RunFolder", *, show: bool = True) -> None:
    """Write report.md and its pictures from what is stored, `show` its table on stdout, say on stderr where it lies."""
    from harness.report import markdown, terminal
    from harness.report.charts import svg

    run, launches = folder.read_run(), folder.read_launches()
    made = markdown.report(run, launches)
    path = folder.write_report("report.md", made.text)
    folder.write_charts({f"{picture.name}.svg": svg.draw(picture) for picture in made.pictures})
    if show:
        terminal.show(run, launches)
        sys.stdout.flush()
    print(f"Report: {path}", file=sys.stderr)


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
