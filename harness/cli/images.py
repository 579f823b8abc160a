"""`harness images`: the environments' locks and images, and packs of what builds need."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.model.environment import Device

if TYPE_CHECKING:
    from harness.catalog.project import Project
    from harness.model.environment import Environment, Requirement

app = typer.Typer(
    help="List, lock, build, verify and pack the environments' images.", no_args_is_help=True, rich_markup_mode=None
)

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Environments or globs. Default: all.", autocompletion=completion.environments),
]
OfDevice = Annotated[Device, typer.Option("--device", help="The device of the images.")]

#: Resolving waits for the network as long as it computes.
_LOCKS_AT_A_TIME = 2


@app.command(name="list")
def list_images(
    names: Names = None, json: Annotated[bool, typer.Option("--json", help="As JSON, for scripts.")] = False
) -> None:
    """List the environments: what they pin, what of them is built and how large, and which GPUs run them."""
    from harness.backends import registry
    from harness.cli import image_list

    project, environments = _chosen(names)
    rows = image_list.rows(project, environments, registry.image_backend(project.root).states)
    if json:
        import json as codec

        typer.echo(codec.dumps(rows, indent=2))
        return
    for line in image_list.table(rows):
        typer.echo(line)


@app.command()
def lock(
    names: Names = None,
    device: Annotated[Device | None, typer.Option(help="The device of the locks. Default: both.")] = None,
) -> None:
    """Resolve the environments' packages as of their release, and write the locks."""
    from concurrent.futures import ThreadPoolExecutor

    from harness.catalog.locks import write_lock

    project, environments = _chosen(names)
    wanted = [(one, each) for one in environments for each in one.devices if device in (None, each)]
    with ThreadPoolExecutor(_LOCKS_AT_A_TIME) as pool:
        changes = [pool.submit(write_lock, project, environment, each) for environment, each in wanted]
        try:
            for (environment, each), changed in zip(wanted, changes, strict=True):
                typer.echo(f"{environment.name} {each.value}: {'written' if changed.result() else 'unchanged'}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@app.command()
def build(
    names: Names = None,
    device: OfDevice = Device.CPU,
    push: Annotated[bool, typer.Option("--push", help="Push them to REGISTRY.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many at a time. Default: the number of CPUs.")] = None,
) -> None:
    """Pull or build the images that are missing or out of date."""
    from harness.backends import registry
    from harness.cli import building
    from harness.cli.interruption import interruptible
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    requirements = _locked(project, environments, device)
    backend = registry.image_backend(project.root)
    if push:
        backend.check_push()
    with interruptible(), building.show() as progress:
        made = backend.prepare(requirements, progress, jobs)
        if push:
            backend.images.push([each for each in requirements if each.environment.name in made.images], progress)
    for name in (each.environment.name for each in requirements):
        typer.echo(f"{name}: {made.images.get(name) or made.unavailable[name]}")
    if made.unavailable:
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


@app.command()
def verify(names: Names = None, device: OfDevice = Device.CPU) -> None:
    """Compare what is installed in each image with its lock; for GPU images, CUDA's libraries too."""
    from harness.backends import registry
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    backend = registry.image_backend(project.root)
    are_right = True
    for requirement in _locked(project, environments, device):
        found = backend.verify(requirement)
        are_right = are_right and found.is_right
        for line in found.lines():
            typer.echo(f"{requirement.environment.name}: {line}")
    if not are_right:
        raise typer.Exit(Exit.CELLS_FAILED)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="The pack's folder; what it has already is not fetched again.")],
    names: Names = None,
    device: OfDevice = Device.CPU,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images", help="Packages only: enough for --backend local, or if the engine has the base images."
        ),
    ] = False,
) -> None:
    """Fetch all that builds need into a folder: packages, base images, and the harness's own packages."""
    from harness.backends import registry
    from harness.catalog.pack import fill

    project, environments = _chosen(names)
    requirements = _locked(project, environments, device)
    images = None if no_images else registry.image_backend(project.root).images
    files = fill(folder, project, requirements, images, _say)
    size = sum(path.stat().st_size for path in files)
    typer.echo(f"{folder}: {len(requirements)} environments, {len(files)} files, {size / 1e9:.2f} GB.")


@app.command()
def unpack(folder: Annotated[Path, typer.Argument(help="A folder that `harness images pack` made.")]) -> None:
    """Check a pack, give its base images to the engine, and say how to use its packages."""
    import shlex

    from harness.backends import registry
    from harness.backends.wheels import VARIABLE
    from harness.catalog.pack import use
    from harness.catalog.project import Project

    wheels = use(folder, lambda: registry.image_backend(Project.find().root).images, _say)
    _say("What is packed is whole. Builds and local environments take packages from it with:")
    typer.echo(f"export {VARIABLE}={shlex.quote(str(wheels))}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _chosen(names: list[str] | None) -> tuple["Project", list["Environment"]]:
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project
    from harness.plan.selection import resolve

    project = Project.find()
    environments = load_environments(project)
    if not names:
        return project, list(environments.values())
    from harness.catalog.adhoc import with_asked

    environments, typed = with_asked(environments, names)
    return project, [environments[name] for name in resolve(typed, list(environments), "environment")]


def _locked(project: "Project", environments: list["Environment"], device: Device) -> list["Requirement"]:
    """Those that have an image for the device, with their locks. Raises NothingSelectedError where none has."""
    from harness.catalog.locks import load_lock
    from harness.model.errors import NothingSelectedError

    found = [load_lock(project, environment, device) for environment in environments if device in environment.devices]
    if not found:
        names = ", ".join(environment.name for environment in environments)
        others = sorted({each.value for environment in environments for each in environment.devices})
        raise NothingSelectedError(f"There is no image for the {device.value} of {names}.", f"--device {others[0]}")
    return found
