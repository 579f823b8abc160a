"""Lists, locks and packs environments: their lock files, their images, and packs for offline machines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import registry
from harness.backends.verification import Verification
from harness.environments import adhoc
from harness.environments.catalog import load_environments
from harness.environments.locks import describe_overrides, load_lock, write_lock
from harness.environments.requested import parse_requested
from harness.model.backend import KeptImage
from harness.model.environment import ARM64, X86_64, Device, Environment, Requirement, describe_missing_wheel
from harness.model.errors import CannotRunHereError, NothingSelectedError, UsageError
from harness.plan.gpus import describe
from harness.plan.selection import resolve
from harness.project import Project
from harness.session import pack
from harness.session.sources import WheelMaker

#: The number of locks to resolve in parallel. Resolving waits for the network about half of the time.
_PARALLEL_LOCKS = 2


def select_environments(names: Sequence[str] | None, architecture: str = "") -> tuple[Project, list[Environment]]:
    """Return the project, and the environments that match names, globs or requirements; by default all.

    They are for an architecture; by default, for the engine's.
    """
    project, engine = Project.find(), registry.find_contained(registry.AUTO)
    project = replace(project, architecture=architecture or registry.find_architecture(engine, project.root))
    requested = map(parse_requested, names or ["*"])
    environments, selection = WheelMaker(project).resolve(load_environments(project), requested)
    return project, [environments[name] for name in resolve(selection, list(environments), "environment")]


def select_images(
    names: Sequence[str] | None, device: Device, *, emulate: bool = False
) -> tuple[Project, list[Requirement]]:
    """Return the project, and the selected environments that have an image for the device.

    With `emulate`, they are for the architecture that isn't the engine's. Raises NothingSelectedError if there are
    none.
    """
    project, environments = select_environments(names)
    if emulate:
        project, environments = select_environments(names, X86_64 if project.architecture != X86_64 else ARM64)
    requirements = [
        load_lock(project, environment, device) for environment in environments if device in environment.devices
    ]
    if not requirements:
        raise _make_missing_error(environments, f"{device.value} image", project.architecture)
    return project, requirements


def _make_missing_error(environments: Sequence[Environment], kind: str, architecture: str) -> NothingSelectedError:
    """Return the error for environments of which nothing of this kind, such as `gpu image`, exists."""
    names = ", ".join(environment.name for environment in environments)
    devices = sorted({device.value for environment in environments for device in environment.devices})
    advice = f"Use --device {devices[0]}." if devices else describe_missing_wheel(environments[0])[1]
    machine = "" if devices else f" for {architecture}"
    return NothingSelectedError(f"There is no {kind} of {names}{machine}.", advice)


def keep_gpu_code(verification: Verification) -> list[str]:
    """Save the GPU code that was read in an environment's libraries, for later plans. Return a line about it."""
    if verification.read is None:
        return []
    adhoc.keep(replace(verification.read, line=""))
    return ["saved this GPU code: later runs are planned with it"]


def list_rows(
    project: Project,
    environments: Sequence[Environment],
    ask: Callable[[Sequence[Requirement]], Sequence[KeptImage]],
    say: Callable[[str], object],
) -> list[dict[str, Any]]:
    """Return a row of JSON values per environment. `ask` returns the state of each image, like a backend's `states`.

    `cpu` and `gpu` contain the `state` of an image and, if the engine has the image, its `size_bytes` and `id`. They
    are None if the environment has no image for the device. If no engine is running, `say` receives the reason.
    """
    locks: dict[tuple[str, Device], Requirement] = {}
    for environment in environments:
        for device in environment.devices:
            with suppress(UsageError):  # no lock
                locks[environment.name, device] = load_lock(project, environment, device)
    try:
        states = dict(zip(locks, map(_describe_image, ask(list(locks.values()))), strict=True))
    except CannotRunHereError as error:
        say(error.message)
        states = {key: {"state": "no engine"} for key in locks}
    rows = []
    for environment in environments:
        images = {device: (environment.name, device) for device in environment.devices}
        pins: Mapping[str, str] = next((locks[image].lock.pins for image in images.values() if image in locks), {})
        rows.append(
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
    return rows


def _describe_image(image: KeptImage) -> dict[str, Any]:
    return {"state": image.state.value, **({"size_bytes": image.size_bytes, "id": image.id} if image.id else {})}


def lock(
    names: Sequence[str] | None, device: Device | None, architecture: str
) -> Iterator[tuple[Requirement, bool, str]]:
    """Resolve and write the locks of these environments for a device (None: both) and an architecture.

    Yield each environment, whether its lock changed, and a description of its replaced packages (empty if there are
    none). Raises NothingSelectedError if no environment is for the device and the architecture.
    """
    project, environments = select_environments(names, architecture)
    targets = [(entry, kind) for entry in environments for kind in entry.devices if device in (None, kind)]
    if not targets:
        raise _make_missing_error(environments, f"{device.value} image" if device else "image", project.architecture)
    with ThreadPoolExecutor(_PARALLEL_LOCKS) as pool:
        changes = [pool.submit(write_lock, project, environment, kind) for environment, kind in targets]
        try:
            for (environment, chosen_device), change in zip(targets, changes, strict=True):
                is_changed, requirement = change.result(), load_lock(project, environment, chosen_device)
                yield requirement, is_changed, describe_overrides(project, requirement)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def fill_pack(
    folder: Path, names: Sequence[str] | None, device: Device, say: Callable[[str], object], *, with_images: bool
) -> tuple[list[Requirement], list[Path]]:
    """Download everything that builds of these environments need to a folder. Return the environments and the files."""
    project, requirements = select_images(names, device)
    images = registry.open_image_backend(project.root).images if with_images else None
    return requirements, pack.fill(folder, project, requirements, images, say)
