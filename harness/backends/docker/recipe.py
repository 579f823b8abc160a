"""Recipe of an environment's image: its Dockerfile, its base images and its target in docker-bake.hcl.

An image is up to date if its labels name this lock, this recipe, this Python version and the base images of this Docker
Engine. If the engine doesn't have a base image, the builder pulls it for itself, so the id of this image is unknown and
isn't compared. A launch records the id of the environment's image.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from harness.files import get_wheel_path
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import HarnessError

#: The variable with the registry for pushing and pulling images, with a slash at its end. The bake file uses it too.
REGISTRY = "REGISTRY"


def get_registry() -> str:
    """Return the registry of images, with a slash at its end; empty if none is set."""
    return os.environ.get(REGISTRY, "")


def make_tag(requirement: Requirement) -> str:
    """Return the name of the image, as in docker-bake.hcl. It starts with the registry in REGISTRY."""
    environment = requirement.environment
    return f"{get_registry()}harness/{environment.name}:{requirement.device.value}{environment.suffix}"


def name_target(environment: Environment, device: Device) -> str:
    """Return the target's name in docker-bake.hcl."""
    if environment.wheel:
        return "source-any"
    return f"{device.value}-{'any' if environment.asked else environment.name.replace('.', '-')}"


def find_dockerfile(root: Path, requirement: Requirement) -> Path:
    """Return the path of the Dockerfile in the project at `root`."""
    environment = requirement.environment
    over_base = "source" if environment.wheel else "added" if requirement.base else requirement.device.value
    return root / "images" / f"{'ngc' if environment.gpu_image else over_base}.Dockerfile"


def find_bases(root: Path, requirement: Requirement) -> tuple[str, ...]:
    """Return the image's bases: the base of its last stage and, if CUDA is copied from another image, that image."""
    environment = requirement.environment
    if requirement.base:
        return (make_tag(requirement.base),)
    stages = _read_stages(root, requirement)
    last_stage_base = environment.gpu_image or stages[-1].replace("${PYTHON}", environment.python)
    copies_cuda = requirement.device is Device.GPU and environment.cuda_image
    return (last_stage_base, environment.cuda_image) if copies_cuda else (last_stage_base,)


def find_all_bases(root: Path, requirement: Requirement) -> list[str]:
    """Return all images that a build of this environment's image needs, including images of intermediate stages."""
    if requirement.base:
        return find_all_bases(root, requirement.base)
    helpers = [stage for stage in _read_stages(root, requirement) if ":" in stage and "$" not in stage]
    return list(dict.fromkeys([*helpers, *find_bases(root, requirement)]))


def _read_stages(root: Path, requirement: Requirement) -> list[str]:
    """Return the base of each stage of the Dockerfile: an image, or an earlier stage."""
    path = find_dockerfile(root, requirement)
    stages = re.findall(r"^FROM (\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not stages:
        raise HarnessError(f"{path} doesn't contain a FROM line.")
    if requirement.environment.suffix:  # the registry's own name for Python's images of one architecture
        names = (f"{requirement.environment.architecture}v8/{stage}" for stage in stages)
        stages = [name if "/python:" in name else stage for name, stage in zip(names, stages, strict=True)]
    return stages


@cache
def hash_recipe(path: Path) -> str:
    """Return the hash of a Dockerfile and the files that it copies, except the lock."""
    names = ("overlay.sh", "uv.txt") if path.name == "source.Dockerfile" else ("install.sh", "uv.txt")
    parts = [path, *(path.parent / name for name in names)]
    return sha256(b"".join(sha256(part.read_bytes()).digest() for part in parts)).hexdigest()


def make_settings(root: Path, requirement: Requirement, *, is_complete: bool = False) -> dict[str, str]:
    """Return the builder's settings that aren't in the bake file, or all of them if `is_complete`.

    A lock outside the project is read from its own folder. For an environment that isn't in the bake file, the result
    contains all settings.
    """
    environment, device, lock = requirement.environment, requirement.device, requirement.lock.path
    overrides: dict[str, str] = {}
    if requirement.base:
        overrides |= {"args.BASE": make_tag(requirement.base)}
    if environment.wheel:
        wheel = get_wheel_path(environment.wheel)
        overrides |= {"contexts.wheel": str(wheel.parent), "args.WHEEL": wheel.name}
        overrides |= {"args.REPLACED": " ".join(environment.replaced)}
    elif requirement.base:
        overrides |= {"dockerfile": find_dockerfile(root, requirement).name}
    if not environment.wheel and lock.parent.resolve() != (root / "images" / "locks").resolve():
        overrides |= {"contexts.locks": str(lock.parent.resolve()), "args.LOCK": lock.name}
    if is_complete:
        overrides |= {"dockerfile": find_dockerfile(root, requirement).name}
        overrides |= {"args.GPU_IMAGE": environment.gpu_image} if environment.gpu_image else {}
    if environment.asked or is_complete:
        pins = ["tensorflow", "keras", "python", "as_of", *(["cuda", "cudnn"] if device is Device.GPU else [])]
        labels = {"environment": environment.name, "device": device.value}
        labels |= {name: str(getattr(environment, name)) for name in pins}
        overrides |= {"tags": make_tag(requirement)}
        overrides |= {} if environment.wheel else {"args.PYTHON": environment.python, "args.LOCK": lock.name}
        overrides |= {f"labels.harness.{name}": value for name, value in labels.items()}
        if len(find_bases(root, requirement)) > 1:
            overrides |= {"args.CUDA": "image", "args.CUDA_IMAGE": environment.cuda_image}
    return overrides


@dataclass(frozen=True, slots=True)
class Image:
    """An image in the engine. `size_bytes` includes layers that it shares with other images."""

    id: str
    labels: Mapping[str, str]
    size_bytes: int = 0

    def is_right(self, labels: Mapping[str, str]) -> bool:
        """Return whether the image has these labels. Empty labels are unknown, and aren't compared."""
        return {label: value for label, value in labels.items() if value}.items() <= self.labels.items()


def make_labels(root: Path, requirement: Requirement, find: Callable[[str], Image | None]) -> dict[str, str]:
    """Return the labels that an up-to-date image has. The id of a base that `find` doesn't return is empty."""
    references = find_bases(root, requirement)
    ids = [image.id if image is not None else "" for image in map(find, references)]
    return {
        "harness.lock": requirement.lock.sha256,
        "harness.recipe": hash_recipe(find_dockerfile(root, requirement)),
        "harness.python": requirement.environment.python,
        "harness.from": " ".join(references),
        "harness.base": ids[0],
        "harness.cuda_base": "".join(ids[1:]),
    }
