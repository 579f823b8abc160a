"""The image of an environment: what an engine has of it, and whether that is the right one.

An image is right when its labels say that it was made from this lock, by this recipe, for this Python, on the bases
that this engine has.
A base that the engine does not have is pulled by the builder, which keeps it to itself: then its id is not known and
not compared, and what is recorded of a launch is the image's own id.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.backends import recipe
from harness.model.environment import Requirement

#: The variable that names where images are pushed to and pulled from, with a slash at its end; the bake file has it too
REGISTRY = "REGISTRY"

LOCK = "harness.lock"
RECIPE = "harness.recipe"
PYTHON = "harness.python"
FROM = "harness.from"
BASE = "harness.base"
CUDA = "harness.cuda_base"

#: Asks an engine for its images that pass a filter, as its API lists them.
List = Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]]


class State(StrEnum):
    """What an engine has of an image."""

    BUILT = "built"
    OUTDATED = "outdated"
    NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has. `size_bytes` counts what it shares with others too."""

    id: str
    labels: Mapping[str, str]
    size_bytes: int = 0

    def is_right(self, labels: Mapping[str, str]) -> bool:
        """Whether it has these labels; one that is empty is not known, and not compared."""
        return {label: value for label, value in labels.items() if value}.items() <= self.labels.items()


def tag(requirement: Requirement) -> str:
    """What the image is called, as docker-bake.hcl calls it."""
    return recipe.tag(os.environ.get(REGISTRY, ""), requirement)


def labels(root: Path, requirement: Requirement, find: Callable[[str], Image | None]) -> dict[str, str]:
    """What makes an image the right one; the ids of the bases that `find` does not have are empty."""
    bases = recipe.bases(root, requirement)
    images = [find(base) for base in bases]
    ids = [image.id if image is not None else "" for image in images]
    return {
        LOCK: requirement.lock.sha256,
        RECIPE: recipe.digest(recipe.dockerfile(root, requirement)),
        PYTHON: requirement.environment.python,
        FROM: " ".join(bases),
        BASE: ids[0],
        CUDA: "".join(ids[1:]),
    }


def states(root: Path, requirements: Sequence[Requirement], ask: List) -> list[tuple[State, Image | None]]:
    """Of each what the engine has, by one question for all. `root` is the folder with images/."""
    names = {tag(each) for each in requirements}
    names |= {base for each in requirements for base in recipe.bases(root, each)}
    had = {
        name: Image(entry["Id"], entry.get("Labels") or {}, entry.get("Size", 0))
        for entry in ask({"reference": sorted(names)})
        for name in entry.get("RepoTags") or ()
    }

    def state(requirement: Requirement) -> tuple[State, Image | None]:
        image = had.get(tag(requirement))
        if image is None:
            return State.NOT_BUILT, None
        is_right = image.is_right(labels(root, requirement, had.get))
        return State.BUILT if is_right else State.OUTDATED, image

    return [state(each) for each in requirements]
