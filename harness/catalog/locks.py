"""Reads locks: hashed requirements files, one for each environment and device."""

import hashlib
import shlex
from pathlib import Path

from harness.catalog.project import Project
from harness.files import write_atomically
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.requirements import pins


def lock_file(project: Project, environment: Environment, device: Device) -> Path:
    """Where the lock of an environment for a device lies: in the project; of what was typed, in the user's cache."""
    if not environment.asked:
        return project.lock_file(environment.name, device)
    from harness.catalog import adhoc

    return adhoc.lock_file(environment, device)


def load_lock(project: Project, environment: Environment, device: Device) -> Requirement:
    """The environment with its lock, which is made first where the environment was typed and has none.

    Raises UsageError where there is none, or where what was typed does not resolve.
    """
    path = lock_file(project, environment, device)
    if environment.asked and not path.is_file():
        write_lock(project, environment, device)
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError(
            f"{environment.name} has no lock for the {device.value}: {path} cannot be read.",
            f"Make it: harness images lock {shlex.quote(environment.asked or environment.name)}",
        ) from None
    found = pins(data.decode("utf-8", "replace"))
    if environment.gpu_image:
        # its image has a TensorFlow that no lock names
        found = {"tensorflow": environment.tensorflow, **found}
    lock = Lock(path=path, sha256=hashlib.sha256(data).hexdigest(), pins=found)
    return Requirement(environment=environment, device=device, lock=lock)


def write_lock(project: Project, environment: Environment, device: Device) -> bool:
    """Resolve an environment and write its lock; returns whether that changed it.

    Raises what `harness.catalog.resolve.resolve` raises, and CannotRunHereError where the lock cannot be written.
    """
    from harness.catalog.resolve import resolve

    path, text = lock_file(project, environment, device), resolve(environment, device)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    try:
        write_atomically(path, text)
    except OSError as error:
        raise CannotRunHereError(f"The lock {path} cannot be written: {error.strerror}.") from None
    return True
