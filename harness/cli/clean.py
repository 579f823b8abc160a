"""`harness clean`."""

from pathlib import Path
from typing import Annotated

import typer

from harness.backends import registry
from harness.catalog.project import Project
from harness.cli import completion
from harness.machine.gpu import clocks
from harness.machine.lock import machine_to_itself
from harness.model.errors import CannotRunHereError
from harness.model.texts import counted


def clean(
    run: Annotated[
        str, typer.Argument(help="A run's id or folder. Default: every run.", autocompletion=completion.runs)
    ] = "",
    caches: Annotated[
        bool, typer.Option("--caches", help="Also remove the GPU code that drivers compiled, of every run.")
    ] = False,
) -> None:
    """Remove what a killed harness left: containers, scratch folders, and locks of GPU clocks."""
    removed, kept = [], []
    # a run that is going on owns what would be removed
    with machine_to_itself():
        for backend in registry.opened(Project.find().root):
            try:
                removed.append(f"{backend.clean(Path(run).name)} {backend.leftovers}")
                if caches and backend.caches():
                    removed.append(f"{backend.clean_caches()} caches of compiled GPU code")
                kept += backend.caches()
            except CannotRunHereError as error:
                removed.append(f"no {backend.leftovers} ({error.message.splitlines()[0]})")
        *most, last = removed
        typer.echo(f"Removed {', '.join(most)} and {last}." if most else f"Removed {last}.")
        unlocked = clocks.unlock()
    if unlocked:
        typer.echo(f"Unlocked the clocks of {counted(unlocked, 'GPU')}.")
    if kept:
        typer.echo(f"Kept {len(kept)} caches of compiled GPU code (such as {kept[0]}): --caches removes them.")
