"""`harness report`."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


class Format(StrEnum):
    """What --format takes."""

    MD = "md"


def report(
    run: Annotated[Path, typer.Argument(help="A run's folder, under results/.")],
    format: Annotated[Format, typer.Option("--format", help="The report to write.")] = Format.MD,
) -> None:
    """Make a run's report again from its launches."""
    from harness.store.folder import RunFolder

    write(RunFolder.open(run))


def write(folder: "RunFolder", *, show: bool = True) -> None:
    """Write report.md from what is stored, `show` its table on stdout, and say on stderr where it lies."""
    from harness.report import markdown, terminal

    run, launches = folder.read_run(), folder.read_launches()
    path = folder.write_report("report.md", markdown.render(run, launches))
    if show:
        terminal.show(run, launches)
        sys.stdout.flush()
    print(f"Report: {path}", file=sys.stderr)
