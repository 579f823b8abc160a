"""`harness bundle`: what is pasted into an upstream issue."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion
from harness.cli.messages import say


def bundle(
    run: Annotated[Path, typer.Argument(help="A run's folder, under results/.", autocompletion=completion.runs)],
    tracker: Annotated[
        str, typer.Option("--for", metavar="[tensorflow|keras]", help="Whose issue form gives the order.")
    ] = "tensorflow",
) -> None:
    """Write what to paste into an upstream issue.

    The issue's text, a script that needs nothing of this, a notebook, and a zip.
    """
    from harness.upstream import bundle as bundles  # noqa: PLC0415 - `harness --help` needs none of it

    text, archive = bundles.write(run, tracker)
    typer.echo(text)
    say(f"To attach, with the script, a notebook and the packages' versions: {archive}")
