"""`harness report`."""

import sys
from collections.abc import Mapping
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
            "--format",
            help="Print the report in this format; without it, write report.md, details.md, report.html and charts/.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write what --format makes to this file.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Everything in report.md, however long, with no details.md beside it.")
    ] = False,
) -> None:
    """Make a run's report again from its launches, or write it in another tool's format."""
    from harness.machine.directories import cache_dir
    from harness.report import formats
    from harness.store.folder import RunFolder, uncollected

    if output and not format:
        raise UsageError("--output needs a --format to write.", "For example: --format json --output report.json")
    if full and format:
        raise UsageError("--full is about report.md, which --format does not write.", "Leave one of them out.")
    folder = RunFolder.open(run)
    stored = folder.read_run()
    if stored.plan.profile_calls:
        _profile(folder, format)
        return
    if not format:
        write(folder, full=full)
        return
    with uncollected():
        text = formats.render(format, stored, folder.read_launches(), cache=cache_dir())
    # encoded here: CSV has line ends of its own, and a terminal's encoding is no concern of a file format
    if output:
        _save(output, text.encode())
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def write(folder: "RunFolder", *, show: bool = True, full: bool = False) -> None:
    """Write report.md, details.md, report.html and the charts from what is stored; say on stderr where they lie.

    `show`: the answer and the tables go to stdout. `full`: all is in report.md, and there is no details.md.
    """
    from threading import Thread

    from harness.analysis.results import Results
    from harness.machine.directories import cache_dir
    from harness.report import files, sections, terminal
    from harness.report.charts import svg

    # what draws takes as long to start as launches to read
    Thread(target=svg.start).start()
    results = Results(folder.read_run(), folder.read_launches())
    told = sections.build(results)
    _replace(folder, files.made(results, told, full=full, cache=cache_dir()))
    if show:
        terminal.show(told)
        sys.stdout.flush()
    others = [name for name in ("details.md", "report.html") if (folder.path / name).exists()]
    print(f"Report: {folder.path / 'report.md'} (and {', '.join(others)})", file=sys.stderr)


def _replace(folder: "RunFolder", made: Mapping[str, str]) -> None:
    """Write a report's files; what is left of an older report goes."""
    for name, text in made.items():
        if not name.startswith("charts/"):
            folder.write_report(name, text)
    if "details.md" not in made:
        (folder.path / "details.md").unlink(missing_ok=True)
    folder.write_charts({Path(name).name: text for name, text in made.items() if name.startswith("charts/")})


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
