"""Recipe of an environment's image: its Dockerfile, its base images and its target in docker-bake.hcl.

An image is up to date if its labels name this lock, this recipe, this Python version and the base images of this
Docker Engine. If the engine doesn't have a base image, the builder pulls it for itself. The id of that base image is
unknown then, and isn't compared. A launch records the id of the image itself.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import HarnessError

#: The variable that names where images are pushed to and pulled from, with a slash at its end; the bake file has it too
REGISTRY = "REGISTRY"

LOCK = "harness.lock"
RECIPE = "harness.recipe"
PYTHON = "harness.python"
FROM = "harness.from"
BASE = "harness.base"
CUDA = "harness.cuda_base"


def registry() -> str:
    """Where images are pushed to and pulled from, with a slash at its end; empty where nothing is named."""
    return os.environ.get(REGISTRY, "")


def tag(requirement: Requirement) -> str:
    """What the image is called with the registry that REGISTRY names."""
    return reference(registry(), requirement.environment, requirement.device)


def reference(registry: str, environment: Environment, device: Device) -> str:
    """What the image is called, as docker-bake.hcl calls it."""
    return f"{registry}harness/{environment.name}:{device.value}"


def target(environment: Environment, device: Device) -> str:
    """The target's name in docker-bake.hcl."""
    return f"{device.value}-{'any' if environment.asked else environment.name.replace('.', '-')}"


def dockerfile(root: Path, requirement: Requirement) -> Path:
    """The Dockerfile, in the project at `root`."""
    name = "ngc" if requirement.environment.gpu_image else requirement.device.value
    return root / "images" / f"{name}.Dockerfile"


def bases(root: Path, requirement: Requirement) -> tuple[str, ...]:
    """The images that it is made from: what its last stage starts from, then, where that is one, what has its CUDA."""
    environment = requirement.environment
    stages = _stages(root, requirement)
    first = environment.gpu_image or stages[-1].replace("${PYTHON}", environment.python)
    with_cuda = requirement.device is Device.GPU and environment.cuda_image
    return (first, environment.cuda_image) if with_cuda else (first,)


def all_bases(root: Path, requirement: Requirement) -> list[str]:
    """Every image that a build of this environment's image needs, also for the stages that are not in it."""
    helpers = [stage for stage in _stages(root, requirement) if ":" in stage and "$" not in stage]
    return list(dict.fromkeys([*helpers, *bases(root, requirement)]))


def _stages(root: Path, requirement: Requirement) -> list[str]:
    """What each stage of the Dockerfile starts from: an image, or a stage before it."""
    path = dockerfile(root, requirement)
    stages = re.findall(r"^FROM (\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not stages:
        raise HarnessError(f"{path} has no FROM line.")
    return stages


@cache
def digest(path: Path) -> str:
    """The hash of a Dockerfile and of what it copies: all that makes an image but its lock and its bases."""
    parts = [path, *(path.parent / name for name in ("install.sh", "uv.txt"))]
    return sha256(b"".join(sha256(part.read_bytes()).digest() for part in parts)).hexdigest()


def settings(root: Path, requirement: Requirement) -> dict[str, str]:
    """What is set for the builder in addition to what the bake file says.

    A lock outside the project is read where it lies. Of an environment that is not in the bake file, all is set.
    """
    environment, device, lock = requirement.environment, requirement.device, requirement.lock.path
    found: dict[str, str] = {}
    if lock.parent.resolve() != (root / "images" / "locks").resolve():
        found |= {"contexts.locks": str(lock.parent.resolve()), "args.LOCK": lock.name}
    if environment.asked:
        pins = ["tensorflow", "keras", "python", "as_of", *(["cuda", "cudnn"] if device is Device.GPU else [])]
        labels = {"environment": environment.name, "device": device.value}
        labels |= {name: str(getattr(environment, name)) for name in pins}
        found |= {"tags": tag(requirement), "args.PYTHON": environment.python, "args.LOCK": lock.name}
        found |= {f"labels.harness.{name}": value for name, value in labels.items()}
        if len(bases(root, requirement)) > 1:
            found |= {"args.CUDA": "image", "args.CUDA_IMAGE": environment.cuda_image}
    return found


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has. `size_bytes` counts what it shares with others too."""

    id: str
    labels: Mapping[str, str]
    size_bytes: int = 0

    def is_right(self, labels: Mapping[str, str]) -> bool:
        """Whether it has these labels; one that is empty is not known, and not compared."""
        return {label: value for label, value in labels.items() if value}.items() <= self.labels.items()


def labels(root: Path, requirement: Requirement, find: Callable[[str], Image | None]) -> dict[str, str]:
    """What makes an image the right one; the ids of the bases that `find` does not have are empty."""
    wanted = bases(root, requirement)
    ids = [image.id if image is not None else "" for image in map(find, wanted)]
    return {
        LOCK: requirement.lock.sha256,
        RECIPE: digest(dockerfile(root, requirement)),
        PYTHON: requirement.environment.python,
        FROM: " ".join(wanted),
        BASE: ids[0],
        CUDA: "".join(ids[1:]),
    }
