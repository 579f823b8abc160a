"""`harness atlas`."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion, documents
from harness.cli.messages import say


def atlas(
    runs: Annotated[
        list[Path],
        typer.Option(
            "--add", metavar="RUN", help="A finished run of this machine.", autocompletion=completion.complete_runs
        ),
    ],
) -> None:
    """Add runs to the pages about what is slow today.

    It checks the signature of each run, and copies it to bench/observatory/machines/ in the clone of harness.
    """
    from harness.upstream import atlas as copies  # noqa: PLC0415 - not needed for --help

    for run in runs:
        path = copies.add(run)
        documents.files.append(path)
        typer.echo(path)
    say("To share the results, commit these files, and open a pull request. They contain the texts of your scripts.")
