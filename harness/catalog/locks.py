"""Reads locks: hashed requirements files, one for each environment and device."""

import hashlib
import re

from harness.catalog.project import Project
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import UsageError

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


def normalise(name: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Normalised package names to versions, of a requirements file's text."""
    return {normalise(match["name"]): match["version"] for match in _PIN.finditer(text)}


def load_lock(project: Project, environment: Environment, device: Device) -> Requirement:
    """The environment with its lock. Raises UsageError where there is none."""
    path = project.lock_file(environment.name, device)
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError(
            f"{environment.name} has no lock for the {device.value}: {path} cannot be read.",
            f"Make it: harness images lock {environment.name}",
        ) from None
    found = pins(data.decode("utf-8", "replace"))
    if environment.gpu_image:
        # its image has a TensorFlow that no lock names
        found = {"tensorflow": environment.tensorflow, **found}
    lock = Lock(path=path, sha256=hashlib.sha256(data).hexdigest(), pins=found)
    return Requirement(environment=environment, device=device, lock=lock)
