"""`harness bisect`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from harness.bisect.request import BisectRequest
from harness.cli import options
from harness.cli.messages import interruptible, say
from harness.model.errors import Exit, UsageError
from harness.model.texts import escaped


@options.of(BisectRequest)
def bisect(
    request: BisectRequest,
    context: typer.Context,
    *,
    issue: Annotated[
        str, typer.Argument(metavar="[ISSUE]", help="An issue that a scenario has a claim of: T#67033.")
    ] = "",
    resume: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Continue the search in this folder.")] = None,
    wait: options.Wait = False,
) -> None:
    """Find since which release or wheel something takes longer."""
    from harness.bisect import run as bisecting  # noqa: PLC0415
    from harness.cli.running import Heard  # noqa: PLC0415 - what measures; help does not need it

    if resume:
        typed = options.typed(context)
        if set(typed) - {"resume", "budget", "wait"}:
            raise UsageError("--resume goes on with the search as it was asked for.", "It takes --budget alone.")
        folder = resume
        request = bisecting.reopened(folder, request.budget if "budget" in typed else None)
    else:
        request = bisecting.meant(replace(request, issue=issue, command=["harness", *sys.argv[1:]]))
        folder = bisecting.begin(request)
    heard = Heard()
    again = f"harness bisect --resume {folder}"
    with interruptible(lambda count: f"Stopping. Go on with: {again}" if count == 1 else ""):
        found = bisecting.bisect(request, folder, heard, wait=wait)
    for line in found.told.lines:
        typer.echo(escaped(line, keep="\n\t"))
    say(f"Report: {folder / 'report.md'}")
    raise typer.Exit(Exit.OK if found.is_narrowed else Exit.CELLS_FAILED)
