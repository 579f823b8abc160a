"""`harness bundle`: a script and a text for an upstream issue."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion, documents, options
from harness.cli.messages import say
from harness.plan.selection import parse_axes
from harness.session.options import split_names


def bundle(
    run: Annotated[Path, completion.RunFolderArgument(help="The folder of a run, under results/.")],
    scenarios: Annotated[
        list[str] | None, options.make_option("scenarios", help="The scenario of the cells to bundle (one or two).")
    ] = None,
    environments: Annotated[
        list[str] | None,
        options.make_option("environments", help="The environment of the cells to bundle (one or two)."),
    ] = None,
    axes: Annotated[list[str] | None, options.make_option("axes")] = None,
) -> None:
    """Write a script that runs a comparison without harness.

    It also writes a text for an upstream issue, and a zip file. By default, they contain the run's main comparison.
    """
    from harness.upstream import bundle as bundles  # noqa: PLC0415 - `harness --help` needs none of it

    selection = split_names(scenarios or [], "-s"), split_names(environments or [], "-e"), parse_axes(axes or [])
    text, archive = bundles.write(run, *selection)
    typer.echo(text)
    documents.files.append(archive)
    say(f"Attach this file to the issue. It has the script and the package versions: {archive}")
