"""What makes the image of an environment: its Dockerfile, its bases, its target in docker-bake.hcl; is it right?

An image is right when its labels say that it was made from this lock, by this recipe, for this Python, on the bases
that this engine has.
A base that the engine does not have is pulled by the builder, which keeps it to itself: then its id is not known and
not compared, and what is recorded of a launch is the image's own id.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.model.backend import ImageState, KeptImage
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

#: Asks an engine for its images that pass a filter, as its API lists them.
ListImages = Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]]

#: What the bake file's labels say of an environment in its list, and the harness says of one that is not.
_SAID = {
    Device.CPU: ("tensorflow", "keras", "python", "as_of"),
    Device.GPU: ("tensorflow", "keras", "python", "as_of", "cuda", "cudnn"),
}


def registry() -> str:
    """Where images are pushed to and pulled from, with a slash at its end; empty where nothing is named."""
    return os.environ.get(REGISTRY, "")


def tag(requirement: Requirement) -> str:
    """What the image is called, as docker-bake.hcl calls it."""
    return f"{registry()}harness/{requirement.environment.name}:{requirement.device.value}"


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


def settings(root: Path, requirement: Requirement) -> dict[str, str]:
    """What is set for the builder beside what the bake file says.

    A lock outside the project is read where it lies. Of an environment that is not in the bake file, all is set.
    """
    lock = requirement.lock.path
    found: dict[str, str] = {}
    if lock.parent.resolve() != (root / "images" / "locks").resolve():
        found |= {"contexts.locks": str(lock.parent.resolve()), "args.LOCK": lock.name}
    if requirement.environment.asked:
        found |= {"tags": tag(requirement), "args.PYTHON": requirement.environment.python, "args.LOCK": lock.name}
        found |= _said(requirement.environment, requirement.device)
    if requirement.environment.asked and len(bases(root, requirement)) > 1:
        found |= {"args.CUDA": "image", "args.CUDA_IMAGE": requirement.environment.cuda_image}
    return found


def _said(environment: Environment, device: Device) -> dict[str, str]:
    said = {name: str(getattr(environment, name)) for name in _SAID[device]}
    labels = {"environment": environment.name, "device": device.value, **said}
    return {f"labels.harness.{name}": value for name, value in labels.items()}


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has. `size_bytes` counts what it shares with others too."""

    id: str
    labels: Mapping[str, str]
    size_bytes: int = 0

    def is_right(self, labels: Mapping[str, str]) -> bool:
        """Whether it has these labels; one that is empty is not known, and not compared."""
        return {label: value for label, value in labels.items() if value}.items() <= self.labels.items()


def all_bases(root: Path, requirement: Requirement) -> list[str]:
    """Every image that a build of this environment's image needs, also for the stages that are not in it."""
    text = dockerfile(root, requirement).read_text(encoding="utf-8")
    helpers = [name for name in re.findall(r"^FROM (\S+:\S+)", text, flags=re.MULTILINE) if "$" not in name]
    return list(dict.fromkeys([*helpers, *bases(root, requirement)]))


def labels(root: Path, requirement: Requirement, find: Callable[[str], Image | None]) -> dict[str, str]:
    """What makes an image the right one; the ids of the bases that `find` does not have are empty."""
    wanted = bases(root, requirement)
    images = [find(base) for base in wanted]
    ids = [image.id if image is not None else "" for image in images]
    return {
        LOCK: requirement.lock.sha256,
        RECIPE: digest(dockerfile(root, requirement)),
        PYTHON: requirement.environment.python,
        FROM: " ".join(wanted),
        BASE: ids[0],
        CUDA: "".join(ids[1:]),
    }


def states(root: Path, requirements: Sequence[Requirement], ask: ListImages) -> list[KeptImage]:
    """Of each what the engine has, by one question for all. `root` is the folder with images/."""
    names = {tag(each) for each in requirements}
    names |= {base for each in requirements for base in bases(root, each)}
    had = {
        name: Image(entry["Id"], entry.get("Labels") or {}, entry.get("Size", 0))
        for entry in ask({"reference": sorted(names)})
        for name in entry.get("RepoTags") or ()
    }

    def state(requirement: Requirement) -> KeptImage:
        image = had.get(tag(requirement))
        if image is None:
            return KeptImage(ImageState.NOT_BUILT)
        is_right = image.is_right(labels(root, requirement, had.get))
        return KeptImage(ImageState.BUILT if is_right else ImageState.OUTDATED, image.id, image.size_bytes)

    return [state(each) for each in requirements]
