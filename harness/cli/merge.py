"""`harness merge`."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion, options
from harness.cli.messages import say
from harness.model.errors import Exit


def merge(
    folders: Annotated[
        list[Path],
        completion.RunFolderArgument(metavar="RUN...", help="The folders of runs that measured parts of one plan."),
    ],
    results: Annotated[Path, options.make_option("results")] = Path("results"),
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            "--fail-on", help="Exit with 5 if an environment is slower than the baseline, and with 1 if a cell failed."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the launches as JSON on stdout.")] = False,
) -> None:
    """Merge shards, or runs of one plan on several machines.

    The merged run keeps the numbers of each machine separate.
    """
    from harness.cli import running  # noqa: PLC0415 - not needed for --help
    from harness.fleet import merge as fleet  # noqa: PLC0415

    merged_run = fleet.merge(folders, results)
    code = running.show(merged_run.ended, json=json, fail_on=fail_on)
    for sentence in merged_run.lacks:
        say(sentence)
    raise typer.Exit(Exit.CELLS_FAILED if merged_run.lacks else code)
