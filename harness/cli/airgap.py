"""`harness images pack` and `unpack`: carry what builds need to a machine without a network."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import completion
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.catalog.index import File
    from harness.catalog.pack import Manifest
    from harness.catalog.project import Project
    from harness.model.environment import Requirement

_OPTION = typer.Option("--no-images", help="Packages only: enough for --backend local, and where the base images are.")


def pack(
    folder: Annotated[Path, typer.Argument(help="Where to put it; what is there already is not fetched again.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Environments or globs; all where left out.", autocompletion=completion.environments),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Which of their images.")] = Device.CPU,
    no_images: Annotated[bool, _OPTION] = False,
) -> None:
    """Fetch all that builds need into a folder: packages, base images, and the harness's own packages."""
    from harness import __version__
    from harness.catalog import pack as packs
    from harness.cli.images import _chosen, _locked

    project, environments = _chosen(names)
    requirements = _locked(project, environments, device)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRunHereError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    before = packs.read(folder) if (folder / packs.FILE).is_file() else None
    # the images first: where one cannot be had, that is known before gigabytes are fetched
    images = {} if no_images else _images(project, requirements, folder, before)
    files = {name: image.pop("sha256") for name, image in images.items()}
    files |= {f"wheels/{name}": digest for name, digest in _wheels(project, requirements, folder / "wheels").items()}
    files |= _locks(requirements, folder)
    named = {requirement.environment.name: [device.value] for requirement in requirements}
    packs.write(folder, packs.Manifest(__version__, named, images, files).over(before))
    size = sum((folder / name).stat().st_size for name in files)
    typer.echo(f"{folder}: {len(requirements)} environments, {len(files)} files, {size / 1e9:.2f} GB.")


def unpack(folder: Annotated[Path, typer.Argument(help="A folder that `harness images pack` made.")]) -> None:
    """Check a pack, give its base images to the engine, and say how to use its packages."""
    from harness.backends import bases, wheels
    from harness.backends.engine import connect
    from harness.catalog import adhoc
    from harness.catalog import pack as packs

    manifest = packs.read(folder)
    packs.check(folder, manifest)
    if manifest.images:
        engine = connect()
        for name, image in manifest.images.items():
            bases.load(engine, folder / name, image["reference"])
            _say(f"loaded {image['reference']}")
    for path in sorted((folder / "locks").glob("*")):
        adhoc.folder().mkdir(parents=True, exist_ok=True)
        shutil.copy(path, adhoc.folder())
    _say("What is packed is whole. Builds and local environments take packages from it with:")
    typer.echo(f"export {wheels.VARIABLE}={shlex.quote(str((folder / 'wheels').resolve()))}")


def _wheels(project: "Project", requirements: "Sequence[Requirement]", folder: Path) -> dict[str, str]:
    """Fetch the packages of the locks, of images/uv.txt and of the harness itself; returns name to sha256."""
    from harness.catalog import index
    from harness.catalog.pack import download

    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    sources = [(project.root / "images" / "uv.txt", own), (project.root / "requirements.txt", own)]
    sources += [(requirement.lock.path, requirement.environment.python) for requirement in requirements]
    files: list[File] = []
    for path, python in sources:
        if path.is_file():
            files += [file for package in index.files(path, python) for file in package.files]
    return download(files, folder, _say)


def _locks(requirements: "Sequence[Requirement]", folder: Path) -> dict[str, str]:
    """Copy the locks that are not in the project, those of ad-hoc environments; returns file to sha256."""
    from harness.catalog import adhoc
    from harness.catalog.pack import sha256

    files = {}
    for requirement in requirements:
        if not requirement.environment.asked:
            continue
        for path in (requirement.lock.path, adhoc.file(requirement.environment.name)):
            target = folder / "locks" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            files[f"locks/{path.name}"] = sha256(target)
    return files


def _images(
    project: "Project", requirements: "Sequence[Requirement]", folder: Path, before: "Manifest | None"
) -> dict[str, dict[str, str]]:
    """Save the base images; returns file to `reference`, `id` and `sha256`."""
    from harness.backends import bases
    from harness.backends.engine import connect
    from harness.catalog.pack import sha256

    engine = connect()
    had: Mapping[str, Mapping[str, str]] = before.images if before else {}
    images = {}
    for reference in dict.fromkeys(base for each in requirements for base in bases.all_bases(project.root, each)):
        identity = bases.obtain(engine, reference)
        name = f"images/{re.sub(r'[^A-Za-z0-9.-]', '-', reference)}.tar"
        if had.get(name, {}).get("id") != identity or not (folder / name).is_file():
            bases.save(engine, reference, folder / name)
            _say(f"saved {reference}")
        images[name] = {"reference": reference, "id": identity, "sha256": sha256(folder / name)}
    return images


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
