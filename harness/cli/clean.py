"""`harness clean`."""

from typing import Annotated

import typer


def clean(
    run: Annotated[str, typer.Argument(help="A run's id, or its folder; every run where left out.")] = "",
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
            containers = f"{DockerBackend(root, '').clean(identity)} containers"
        except CannotRunHereError as error:
            containers = f"no containers ({error.message.splitlines()[0]})"
    typer.echo(f"Removed {containers} and {folders} scratch folders.")
