"""`harness images`: locks and images of environments, and packs for offline builds."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import session
from harness.backends import registry
from harness.backends.wheels import VARIABLE
from harness.cli import completion
from harness.cli.messages import format_columns, handle_signals, say, tell_json, tell_lines
from harness.model.environment import ARM64, X86_64, Device
from harness.model.errors import Exit, UsageError
from harness.model.texts import counted
from harness.session.options import read_whole

app = typer.Typer(
    help="List, lock, build, verify and pack container images.", no_args_is_help=True, rich_markup_mode=None
)

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Environments or globs. Default: all.", autocompletion=completion.complete_environments),
]
DeviceOption = Annotated[Device, typer.Option("--device", help="Select the images for this device.")]

#: The columns of the list: the heading of each column, and its key in a row.
_COLUMNS = (
    ("name", "name"),
    ("TensorFlow", "tensorflow"),
    ("Keras", "keras"),
    ("Python", "python"),
    ("NumPy", "numpy"),
    ("wheel of", "released"),
    ("CPU image", "cpu"),
    ("GPU image", "gpu"),
    ("CUDA", "cuda"),
    ("cuDNN", "cudnn"),
    ("compute capabilities", "runs_on"),
)


@app.command(name="list")
def list_images(
    names: Names = None, json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False
) -> None:
    """List the environments, and show which images are built.

    It also shows package versions, image sizes, and the GPUs that can run each environment.
    """
    project, environments = session.images.select_environments(names)
    rows = session.images.list_rows(project, environments, registry.open_image_backend(project.root).states, say)
    if json:
        tell_json(rows)
    else:
        tell_lines(format_table(rows))


@app.command()
def lock(
    names: Names = None,
    device: Annotated[Device | None, typer.Option(help="Lock for this device only. Default: for both devices.")] = None,
    architecture: Annotated[
        str,
        typer.Option(help="Lock for this architecture: x86_64 or arm64. Default: the architecture of Docker Engine."),
    ] = "",
) -> None:
    """Write lock files with package versions from each release's date."""
    if architecture not in ("", X86_64, ARM64):
        raise UsageError(f"Unknown architecture: {architecture!r}.", f"Use {X86_64} or {ARM64}.")
    for requirement, is_changed, override_text in session.images.lock(names, device, architecture):
        override_note = f" ({override_text})" if override_text else ""
        state = "written" if is_changed else "unchanged"
        typer.echo(f"{requirement.environment.name} {requirement.device.value}: {state}{override_note}")


@app.command()
def build(
    names: Names = None,
    device: DeviceOption = Device.CPU,
    push: Annotated[bool, typer.Option("--push", help="Push the images to the registry that REGISTRY names.")] = False,
    jobs: Annotated[
        str | None,
        typer.Option(metavar="N", help="The number of images to build in parallel. Default: the number of CPUs."),
    ] = None,
) -> None:
    """Pull or build missing and outdated images."""
    from harness.cli import display  # noqa: PLC0415 - only this command needs it

    count = read_whole(jobs, "--jobs", least=1) if jobs else None
    project, requirements = session.images.select_images(names, device)
    backend = registry.open_image_backend(project.root)
    if push:
        backend.check_push()
    with handle_signals(), display.show_preparation() as progress:
        preparation = backend.prepare(requirements, progress, jobs=count)
        if push:
            backend.images.push(
                [requirement for requirement in requirements if requirement.environment.name in preparation.images],
                progress,
            )
    for name in (requirement.environment.name for requirement in requirements):
        typer.echo(f"{name}: {preparation.images.get(name) or preparation.unavailable[name]}")
    if preparation.unavailable:
        raise typer.Exit(Exit.CANNOT_RUN_HERE)


@app.command()
def verify(
    names: Names = None,
    device: DeviceOption = Device.CPU,
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate",
            help="Build and check images for the other architecture, and import TensorFlow with an emulated "
            "processor. This needs qemu-user-static.",
        ),
    ] = False,
) -> None:
    """Compare the packages in each image with its lock file.

    In GPU images of wheels that are newer than the catalog, it also reads the GPU code, for later plans.
    """
    project, requirements = session.images.select_images(names, device, emulate=emulate)
    backend = registry.open_image_backend(project.root)
    if emulate:
        from harness.cli import display  # noqa: PLC0415 - only this option and `build` need it

        with handle_signals(), display.show_preparation() as progress:
            backend.prepare(requirements, progress, emulate=True)
    are_correct = True
    for requirement in requirements:
        verification = backend.verify(requirement)
        are_correct = are_correct and verification.is_right
        for line in [*verification.lines(), *session.images.keep_gpu_code(verification)]:
            typer.echo(f"{requirement.environment.name}: {line}")
    if not are_correct:
        raise typer.Exit(Exit.CELLS_FAILED)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="Output folder. Files already in it aren't downloaded again.")],
    names: Names = None,
    device: DeviceOption = Device.CPU,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images",
            help="Pack only packages. This is enough for `harness matrix --backend local`, or if Docker Engine already "
            "has the base images.",
        ),
    ] = False,
) -> None:
    """Download everything that an offline machine needs.

    The folder contains base images, the environments' packages, and the packages that harness itself needs.
    """
    requirements, files = session.images.fill_pack(folder, names, device, say, with_images=not no_images)
    size = sum(path.stat().st_size for path in files)
    parts = [counted(len(requirements), "environment"), counted(len(files), "file"), f"{size / 1e9:.2f} GB"]
    typer.echo(f"{folder}: {', '.join(parts)}.")


@app.command()
def unpack(folder: Annotated[Path, typer.Argument(help="A folder that `harness images pack` created.")]) -> None:
    """Load a pack's base images, and show how to use its packages.

    Builds compare the hashes of the packages with the lock files.
    """
    wheels = session.pack.use(folder, say)
    say("To use the pack's packages for builds and local environments:")
    typer.echo(f"export {VARIABLE}={shlex.quote(str(wheels))}")


def format_table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the rows as lines of a table."""
    return format_columns(
        [[heading for heading, _ in _COLUMNS], *([_format_cell(row[key]) for _, key in _COLUMNS] for row in rows)]
    )


def _format_cell(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value or "-")
    if "size_bytes" not in value:
        return str(value["state"])
    size = f"{value['size_bytes'] / 1e9:.2f} GB"
    return size if value["state"] == "built" else f"{size}, {value['state']}"
