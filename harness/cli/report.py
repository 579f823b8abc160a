"""`harness report`."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.model.errors import CannotRunHereError, UsageError
from harness.report.formats import Format

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, under results/.", autocompletion=completion.runs)],
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
    from harness.machine.directories import cache_dir
    from harness.report import formats
    from harness.store.folder import RunFolder, uncollected

    if output and not format:
        raise UsageError("--output needs a --format to write.", "For example: --format json --output report.json")
    folder = RunFolder.open(run)
    stored = folder.read_run()
    if stored.plan.profile_calls:
        _profile(folder, format)
        return
    if not format:
        write(folder)
        return
    with uncollected():
        text = formats.render(format, stored, folder.read_launches(), cache=cache_dir())
    # encoded here: CSV has line ends of its own, and a terminal's encoding is no concern of a file format
    if output:
        _save(output, text.encode())
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def write(folder: "RunFolder", *, show: bool = True) -> None:
    """Write report.md with its pictures, and report.html, from what is stored; say on stderr where they lie.

    `show`: their tables go to stdout.
    """
    from concurrent.futures import ThreadPoolExecutor

    from harness.machine.directories import cache_dir
    from harness.report import markdown, terminal
    from harness.report.charts import svg
    from harness.report.charts.pictures import pictures
    from harness.report.document import build
    from harness.report.html import page

    # what draws is no Python: it starts and works beside it
    with ThreadPoolExecutor(max_workers=1) as beside:
        beside.submit(svg.start)
        run, launches = folder.read_run(), folder.read_launches()
        document = build(run, launches)
        drawn = pictures(document)
        drawing = {f"{picture.name}.svg": beside.submit(svg.draw, picture) for picture in drawn}
        path = folder.write_report("report.md", markdown.lay_out(document, drawn))
        folder.write_report("report.html", page.lay_out(document, drawn, launches, cache=cache_dir()))
        folder.write_charts({name: chart.result() for name, chart in drawing.items()})
    if show:
        terminal.lay_out(document)
        sys.stdout.flush()
    print(f"Report: {path} (and report.html)", file=sys.stderr)


def _profile(folder: "RunFolder", format: Format | None) -> None:
    from harness.cli import profiling

    if format:
        raise UsageError(
            f"{folder.path} holds profiles, whose report is profile.md and profile.html.", "Leave --format out."
        )
    profiling.write(folder)


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
