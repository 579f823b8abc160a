"""The images of environments: which are right, and how the others are made.

An image is right when its labels say that it was made from this lock, by this recipe, for this Python, on the base that
this engine has.
A base that the engine does not have is pulled by the builder, which keeps it to itself: then its id is not known and
not compared, and what is recorded of a launch is the image's own id.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.backends.bake import Target, bake, bake_quietly, check
from harness.backends.engine import Engine, sentences
from harness.backends.preparing import refuse_nothing
from harness.backends.text import one_line
from harness.model.backend import Progress
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, HarnessError, UnavailableError

LOCK = "harness.lock"
RECIPE = "harness.recipe"
PYTHON = "harness.python"
BASE = "harness.base"


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has."""

    id: str
    labels: Mapping[str, str]


class Images:
    """The images of one engine. `root` is the folder with docker-bake.hcl and images/."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine = engine
        self._root = root
        self._registry = os.environ.get("REGISTRY", "")

    def tag(self, requirement: Requirement) -> str:
        """What the image is called, as docker-bake.hcl calls it."""
        return f"{self._registry}harness/{requirement.environment.name}:{requirement.device.value}"

    def find(self, requirement: Requirement) -> Image | None:
        """The image, right or not, where the engine has it."""
        return self._inspect(self.tag(requirement))

    def labels(self, requirement: Requirement) -> dict[str, str]:
        """What makes an image the right one; `harness.base` is empty where the engine does not have the base."""
        dockerfile = self._root / "images" / f"{requirement.device.value}.Dockerfile"
        base = self._inspect(base_of(dockerfile, requirement.environment.python))
        return {
            LOCK: requirement.lock.sha256,
            RECIPE: recipe(dockerfile),
            PYTHON: requirement.environment.python,
            BASE: base.id if base is not None else "",
        }

    def right(self, requirement: Requirement) -> Image | None:
        """The image, where the engine has it and it is what a build would make."""
        image = self.find(requirement)
        if image is None:
            return None
        wanted = {label: value for label, value in self.labels(requirement).items() if value}
        return image if wanted.items() <= image.labels.items() else None

    def prepare(self, requirements: list[Requirement], progress: Progress) -> dict[str, str | Exception]:
        """Pull or build what is not right; returns for each environment its image's id, or an UnavailableError.

        Raises CannotRunHereError where there is no builder, or no image at all.
        """
        missing = [each for each in requirements if self.right(each) is None]
        if self._registry:
            missing = [each for each in missing if not self._pull(each, progress)]
        failed = self._build(missing, progress) if missing else {}
        results = {each.environment.name: self._result(each, failed.get(self.tag(each))) for each in requirements}
        refuse_nothing(results)
        return results

    def _result(self, requirement: Requirement, words: str | None) -> str | Exception:
        image = self.find(requirement) if words is None else None
        if image is not None:
            return image.id
        reason = words or "the builder left no image"
        message = f"The image {self.tag(requirement)} could not be built:\n{reason}"
        return UnavailableError(message, "--backend local needs no image.")

    def _build(self, requirements: list[Requirement], progress: Progress) -> dict[str, str]:
        """Build images; returns, by tag, the builder's last words for each that failed."""
        check()
        targets = {self.tag(each): Target(target(each), self.labels(each)) for each in requirements}
        progress(f"building {', '.join(targets)}")
        words = bake(self._root, list(targets.values()), progress)
        if not words:
            return {}
        if len(targets) == 1:
            return dict.fromkeys(targets, words)
        # one that fails stops the others; what is done is in the builder's cache
        alone = {tag: bake_quietly(self._root, [each], progress) for tag, each in targets.items()}
        return {tag: words for tag, words in alone.items() if words}

    def _pull(self, requirement: Requirement, progress: Progress) -> bool:
        """Pull the image from the registry; whether it is there now, and right."""
        tag = self.tag(requirement)
        progress(f"pulling {tag}")
        try:
            with sentences(f"pull {tag}"):
                self._engine.api.pull(tag)
        except CannotRunHereError as error:
            progress(f"{one_line(error.message)}; it will be built")
            return False
        return self.right(requirement) is not None

    def _inspect(self, name: str) -> Image | None:
        from docker.errors import ImageNotFound

        with sentences(f"inspect {name}"):
            try:
                found: dict[str, Any] = self._engine.api.inspect_image(name)  # type: ignore[no-untyped-call]
            except ImageNotFound:
                return None
        return Image(found["Id"], found["Config"].get("Labels") or {})


def target(requirement: Requirement) -> str:
    """The target's name in docker-bake.hcl."""
    return f"{requirement.device.value}-{requirement.environment.name.replace('.', '-')}"


@cache
def recipe(dockerfile: Path) -> str:
    """The hash of all that makes an image beside its lock and its base."""
    parts = [dockerfile, *(dockerfile.parent / name for name in ("install.sh", "uv.txt"))]
    return sha256(b"".join(sha256(part.read_bytes()).digest() for part in parts)).hexdigest()


def base_of(dockerfile: Path, python: str) -> str:
    """The image that a Dockerfile's last stage starts from."""
    stages = re.findall(r"^FROM (\S+)", dockerfile.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not stages:
        raise HarnessError(f"{dockerfile} has no FROM line.")
    return str(stages[-1]).replace("${PYTHON}", python)
