"""The environments' locks and images: listed, locked, and packed for a machine without a network."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.backends import registry
from harness.catalog import pack
from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock, moved, write_lock
from harness.catalog.project import Project
from harness.model.backend import KeptImage
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError, NothingSelectedError, UsageError
from harness.plan.gpus import describe
from harness.plan.selection import resolve
from harness.session.sources import with_asked

#: Resolving waits for the network as long as it computes.
_LOCKS_AT_A_TIME = 2


def chosen(names: Sequence[str] | None) -> tuple[Project, list[Environment]]:
    """Return the project, and the environments of these names, globs or requirements; by default all."""
    project = Project.find()
    environments, typed = with_asked(project, load_environments(project), names or ["*"])
    return project, [environments[name] for name in resolve(typed, list(environments), "environment")]


def locked(names: Sequence[str] | None, device: Device) -> tuple[Project, list[Requirement]]:
    """Return the project, and the chosen environments with an image for the device.

    Raises NothingSelectedError for none.
    """
    project, environments = chosen(names)
    requirements = [
        load_lock(project, environment, device) for environment in environments if device in environment.devices
    ]
    if not requirements:
        names = ", ".join(environment.name for environment in environments)
        devices = sorted({kind.value for environment in environments for kind in environment.devices})
        raise NothingSelectedError(f"{names} has no {device.value} image.", f"Use --device {devices[0]}.")
    return project, requirements


def rows(
    project: Project,
    environments: Sequence[Environment],
    ask: Callable[[Sequence[Requirement]], Sequence[KeptImage]],
    say: Callable[[str], object],
) -> list[dict[str, Any]]:
    """Return a row of JSON values per environment. `ask` returns the state of each image, as a backend's `states`.

    `cpu` and `gpu` have an image's `state`, and its `size_bytes` and `id` if the engine has it; None if there is no
    such image. If no engine is running, `say` is called with the reason.
    """
    locks: dict[tuple[str, Device], Requirement] = {}
    for environment in environments:
        for device in environment.devices:
            with suppress(UsageError):  # no lock
                locks[environment.name, device] = load_lock(project, environment, device)
    try:
        states = dict(zip(locks, map(_state, ask(list(locks.values()))), strict=True))
    except CannotRunHereError as error:
        say(error.message)
        states = {key: {"state": "no engine"} for key in locks}
    listed = []
    for environment in environments:
        images = {device: (environment.name, device) for device in environment.devices}
        pins: Mapping[str, str] = next((locks[image].lock.pins for image in images.values() if image in locks), {})
        listed.append(
            {
                "name": environment.name,
                "tensorflow": environment.tensorflow,
                "keras": environment.keras or pins.get("keras") or "its own",
                "python": environment.python,
                "numpy": pins.get("numpy", ""),
                "cuda": environment.cuda,
                "cudnn": environment.cudnn,
                "released": environment.released,
                "as_of": environment.as_of,
                "gpu_code": environment.gpu_code.split(),
                "runs_on": describe(environment),
                **{
                    device.value: states.get(images[device], {"state": "no lock"}) if device in images else None
                    for device in Device
                },
            }
        )
    return listed


def _state(image: KeptImage) -> dict[str, Any]:
    return {"state": image.state.value, **({"size_bytes": image.size_bytes, "id": image.id} if image.id else {})}


def lock(names: Sequence[str] | None, device: Device | None) -> Iterator[tuple[Requirement, bool, str]]:
    """Resolve the locks of these environments for a device (None: both), and write them; return which changed.

    For an environment with package overrides, also return what it is.
    """
    project, environments = chosen(names)
    targets = [(one, kind) for one in environments for kind in one.devices if device in (None, kind)]
    with ThreadPoolExecutor(_LOCKS_AT_A_TIME) as pool:
        changes = [pool.submit(write_lock, project, environment, kind) for environment, kind in targets]
        try:
            for (environment, chosen_device), changed in zip(targets, changes, strict=True):
                is_changed, requirement = changed.result(), load_lock(project, environment, chosen_device)
                yield requirement, is_changed, moved(project, requirement)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def fill_pack(
    folder: Path, names: Sequence[str] | None, device: Device, say: Callable[[str], object], *, with_images: bool
) -> tuple[list[Requirement], list[Path]]:
    """Fetch all that builds of these environments need into a folder; returns them and its files."""
    project, requirements = locked(names, device)
    images = registry.image_backend(project.root).images if with_images else None
    return requirements, pack.fill(folder, project, requirements, images, say)


def use_pack(folder: Path, say: Callable[[str], object]) -> Path:
    """Check a pack, and give its base images to the engine; returns the folder of its packages."""
    return pack.use(folder, lambda: registry.image_backend(Project.find().root).images, say)
