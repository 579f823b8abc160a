"""What makes the image of an environment: its Dockerfile, its bases, and its target in docker-bake.hcl."""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import HarnessError

#: What the bake file's labels say of an environment in its list, and the harness says of one that is not.
_LABELS = {
    Device.CPU: ("tensorflow", "keras", "python", "as_of"),
    Device.GPU: ("tensorflow", "keras", "python", "as_of", "cuda", "cudnn"),
}


def tag(registry: str, requirement: Requirement) -> str:
    """What the image is called, as docker-bake.hcl calls it. `registry` ends with a slash, or is empty."""
    return f"{registry}harness/{requirement.environment.name}:{requirement.device.value}"


def target(requirement: Requirement) -> str:
    """The target's name in docker-bake.hcl."""
    if requirement.environment.asked:
        return f"{requirement.device.value}-any"
    return f"{requirement.device.value}-{requirement.environment.name.replace('.', '-')}"


def dockerfile(root: Path, requirement: Requirement) -> Path:
    """The Dockerfile, in the project at `root`."""
    name = "ngc" if requirement.environment.gpu_image else requirement.device.value
    return root / "images" / f"{name}.Dockerfile"


def bases(root: Path, requirement: Requirement) -> Sequence[str]:
    """The images that it is made from: what its last stage starts from, then, where that is one, what has its CUDA."""
    environment = requirement.environment
    first = environment.gpu_image or last_stage(dockerfile(root, requirement), environment.python)
    with_cuda = requirement.device is Device.GPU and environment.cuda_image
    return (first, environment.cuda_image) if with_cuda else (first,)


def last_stage(path: Path, python: str) -> str:
    """The image that a Dockerfile's last stage starts from."""
    stages = re.findall(r"^FROM (\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not stages:
        raise HarnessError(f"{path} has no FROM line.")
    return str(stages[-1]).replace("${PYTHON}", python)


@cache
def digest(path: Path) -> str:
    """The hash of a Dockerfile and of what it copies: all that makes an image beside its lock and its bases."""
    parts = [path, *(path.parent / name for name in ("install.sh", "uv.txt"))]
    return sha256(b"".join(sha256(part.read_bytes()).digest() for part in parts)).hexdigest()


def settings(root: Path, requirement: Requirement, name: str) -> dict[str, str]:
    """What is set for the builder beside what the bake file says; `name` is the image's tag.

    A lock outside the project is read where it lies. Of an environment that is not in the bake file, all is set.
    """
    lock = requirement.lock.path
    found: dict[str, str] = {}
    if lock.parent.resolve() != (root / "images" / "locks").resolve():
        found |= {"contexts.locks": str(lock.parent.resolve()), "args.LOCK": lock.name}
    if requirement.environment.asked:
        found |= {"tags": name, "args.PYTHON": requirement.environment.python, "args.LOCK": lock.name}
        found |= _labels(requirement.environment, requirement.device)
    if requirement.environment.asked and len(bases(root, requirement)) > 1:
        found |= {"args.CUDA": "image", "args.CUDA_IMAGE": requirement.environment.cuda_image}
    return found


def _labels(environment: Environment, device: Device) -> dict[str, str]:
    said = {name: str(getattr(environment, name)) for name in _LABELS[device]}
    labels = {"environment": environment.name, "device": device.value, **said}
    return {f"labels.harness.{name}": value for name, value in labels.items()}
