"""`harness images`: the environments' locks and images."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.cli.airgap import pack, unpack
from harness.model.environment import Device

if TYPE_CHECKING:
    from harness.backends.docker import DockerBackend
    from harness.catalog.project import Project
    from harness.model.environment import Environment, Requirement

app = typer.Typer(help="The environments' locks and images.", no_args_is_help=True, rich_markup_mode=None)

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Environments or globs; all where left out.", autocompletion=completion.environments),
]
OfDevice = Annotated[Device, typer.Option("--device", help="Which of their images.")]

#: Resolving waits for the network as long as it computes.
_LOCKS_AT_A_TIME = 2


@app.command(name="list")
def list_images(
    names: Names = None, json: Annotated[bool, typer.Option("--json", help="As JSON, for scripts.")] = False
) -> None:
    """List the environments: what they pin, what of them is built and how large, and which GPUs run them."""
    from harness.backends.listing import list_images as ask
    from harness.cli import image_list

    project, environments = _chosen(names)
    rows = image_list.rows(project, environments, ask)
    if json:
        import json as codec

        typer.echo(codec.dumps(rows, indent=2))
        return
    for line in image_list.table(rows):
        typer.echo(line)


@app.command()
def lock(
    names: Names = None, device: Annotated[Device | None, typer.Option(help="Only this one's; else both.")] = None
) -> None:
    """Resolve the environments as of their own instant, and write their locks."""
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
    jobs: Annotated[int | None, typer.Option(min=1, help="How many at a time; the CPUs' number by default.")] = None,
) -> None:
    """Pull or build the images that are not there or not right."""
    from harness.backends.images import check_registry
    from harness.cli import building
    from harness.cli.interruption import interruptible
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    requirements = _locked(project, environments, device)
    if push:
        check_registry()
    images = _docker(project).images
    with interruptible(), building.show() as progress:
        results = images.prepare(requirements, progress, jobs)
        if push:
            images.push([each for each in requirements if isinstance(results[each.environment.name], str)], progress)
    for name, result in results.items():
        typer.echo(f"{name}: {result}")
    if any(isinstance(result, Exception) for result in results.values()):
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


@app.command()
def verify(names: Names = None, device: OfDevice = Device.CPU) -> None:
    """Start each image, and compare what is installed in it with its lock; of GPU images, CUDA's libraries too."""
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    docker = _docker(project)
    right = [_verify(docker, requirement) for requirement in _locked(project, environments, device)]
    if not all(right):
        raise typer.Exit(Exit.CELLS_FAILED)


app.command()(pack)
app.command()(unpack)


def _verify(docker: "DockerBackend", requirement: "Requirement") -> bool:
    """Print what there is to say of one image; whether all is as it should be."""
    from harness.backends.verification import check_cuda

    environment, differences = requirement.environment, docker.verify(requirement)
    if environment.gpu_image:
        # beside what its lock names it has what NVIDIA put there
        differences = replace(differences, extra={})
    count = len(requirement.lock.pins)
    typer.echo(f"{environment.name}: {differences or f'all {count} packages are as locked'}")
    if requirement.device is Device.CPU:
        return not differences
    report = check_cuda(docker.engine, docker.images.tag(requirement), environment)
    for line in report.lines():
        typer.echo(f"{environment.name}: {line}")
    return report.is_complete and not differences


def _chosen(names: list[str] | None) -> tuple["Project", list["Environment"]]:
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project
    from harness.plan.names import resolve

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


def _docker(project: "Project") -> "DockerBackend":
    from harness.backends.docker import DockerBackend

    return DockerBackend(project.root, "images")
