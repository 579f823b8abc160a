"""`harness images`: the environments' locks and images."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from harness.model.environment import Device

if TYPE_CHECKING:
    from harness.backends.docker import DockerBackend
    from harness.catalog.project import Project
    from harness.model.environment import Environment, Requirement

app = typer.Typer(help="The environments' locks and images.", no_args_is_help=True, rich_markup_mode=None)

Names = Annotated[list[str] | None, typer.Argument(help="Environments or globs; all where left out.")]


@app.command(name="list")
def list_images(
    names: Names = None, json: Annotated[bool, typer.Option("--json", help="As JSON, for scripts.")] = False
) -> None:
    """List the environments: what they pin, whether they are locked, and whether their image is built."""
    import json as codec

    from harness.model.environment import Device

    project, environments = _chosen(names)
    docker = _engine(project)
    rows = []
    for environment in environments:
        locked = project.lock_file(environment.name, Device.CPU).is_file()
        rows.append(
            {
                "name": environment.name,
                "tensorflow": environment.tensorflow,
                "keras": environment.keras or "its own",
                "python": environment.python,
                "as_of": environment.as_of,
                "lock": "yes" if locked else "no",
                "image": _state(docker, project, environment) if locked else "no lock",
            }
        )
    if json:
        typer.echo(codec.dumps(rows, indent=2))
        return
    headings = {key: key.replace("_", " ") for key in rows[0]}
    widths = {key: max(len(str(row[key])) for row in [headings, *rows]) for key in headings}
    for row in [headings, *rows]:
        typer.echo("  ".join(str(row[key]).ljust(widths[key]) for key in headings).rstrip())


@app.command()
def lock(
    names: Names = None, device: Annotated[Device | None, typer.Option(help="Only this one's; else both.")] = None
) -> None:
    """Resolve the environments as of their own instant, and write their locks."""
    from harness.catalog.resolve import resolve
    from harness.machine.directories import write_atomically

    project, environments = _chosen(names)
    for environment in environments:
        for each in [known for known in environment.devices if device in (None, known)]:
            path = project.lock_file(environment.name, each)
            text = resolve(environment, each)
            same = path.is_file() and path.read_text(encoding="utf-8") == text
            if not same:
                write_atomically(path, text)
            typer.echo(f"{environment.name} {each.value}: {'unchanged' if same else 'written'}")


@app.command()
def build(names: Names = None) -> None:
    """Build the images that are not there or not right."""
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    results = _docker(project).prepare(_locked(project, environments), _say)
    for name, result in results.items():
        typer.echo(f"{name}: {result}")
    if any(isinstance(result, Exception) for result in results.values()):
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


@app.command()
def verify(names: Names = None) -> None:
    """Start each image, and compare what is installed in it with its lock."""
    from harness.model.errors import Exit

    project, environments = _chosen(names)
    docker = _docker(project)
    wrong = False
    for requirement in _locked(project, environments):
        differences = docker.verify(requirement)
        wrong = wrong or bool(differences)
        count = len(requirement.lock.pins)
        typer.echo(f"{requirement.environment.name}: {differences or f'all {count} packages are as locked'}")
    if wrong:
        raise typer.Exit(Exit.CELLS_FAILED)


def _chosen(names: list[str] | None) -> tuple["Project", list["Environment"]]:
    from harness.catalog.environments import load_environments
    from harness.catalog.project import Project
    from harness.plan.names import resolve

    project = Project.find()
    environments = load_environments(project)
    return project, [environments[name] for name in resolve(names or ["*"], list(environments), "environment")]


def _locked(project: "Project", environments: list["Environment"]) -> list["Requirement"]:
    from harness.catalog.locks import load_lock
    from harness.model.environment import Device

    return [load_lock(project, environment, Device.CPU) for environment in environments]


def _docker(project: "Project") -> "DockerBackend":
    from harness.backends.docker import DockerBackend

    return DockerBackend(project.root, "images")


def _engine(project: "Project") -> "DockerBackend | None":
    """The backend, where an engine answers."""
    from harness.model.errors import CannotRunHereError

    docker = _docker(project)
    try:
        docker.facts()
    except CannotRunHereError as error:
        _say(error.message)
        return None
    return docker


def _state(docker: "DockerBackend | None", project: "Project", environment: "Environment") -> str:
    if docker is None:
        return "no engine"
    (requirement,) = _locked(project, [environment])
    if docker.images.right(requirement):
        return "built"
    return "outdated" if docker.images.find(requirement) else "not built"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
