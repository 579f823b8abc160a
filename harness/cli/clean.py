"""`harness clean`."""

from typing import Annotated

import typer


def clean(
    run: Annotated[str, typer.Argument(help="A run's id, or the path of its folder; every run where left out.")] = "",
) -> None:
    """Remove the containers that a killed harness left."""
    from pathlib import Path

    from harness.backends.docker import DockerBackend
    from harness.catalog.project import Project

    removed = DockerBackend(Project.find().root, "").clean(Path(run).name)
    typer.echo(f"Removed {removed} container{'' if removed == 1 else 's'}.")
