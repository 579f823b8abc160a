"""`harness clean`."""

from typing import Annotated

import typer

from harness.cli import completion


def clean(
    run: Annotated[
        str, typer.Argument(help="A run's id, or its folder; every run where left out.", autocompletion=completion.runs)
    ] = "",
    caches: Annotated[
        bool, typer.Option("--caches", help="Also remove the GPU code that drivers compiled, of every run.")
    ] = False,
) -> None:
    """Remove what a killed harness left: containers and scratch folders."""
    from pathlib import Path

    from harness.backends.docker import DockerBackend
    from harness.backends.local import LocalBackend
    from harness.catalog.project import Project
    from harness.machine.lock import machine_to_itself
    from harness.model.errors import CannotRunHereError

    root, identity = Project.find().root, Path(run).name
    # a run that is going on owns what would be removed
    with machine_to_itself():
        folders = LocalBackend(root, "").clean(identity)
        try:
            docker = DockerBackend(root, "")
            containers = f"{docker.clean(identity)} containers"
            removed = f", {docker.clean_caches()} caches of compiled GPU code" if caches else ""
            kept = len(docker.caches())
        except CannotRunHereError as error:
            containers, removed, kept = f"no containers ({error.message.splitlines()[0]})", "", 0
    typer.echo(f"Removed {containers}{removed} and {folders} scratch folders.")
    if kept:
        typer.echo(f"Kept {kept} caches of compiled GPU code (volumes harness-ptx-…): --caches removes them.")
