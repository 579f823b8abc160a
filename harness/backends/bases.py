"""The images that others are made from, to and from files: for a machine that reaches no registry."""

import re
from pathlib import Path

from harness.backends import recipe, transfer
from harness.backends.engine import Engine, sentences
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError


def all_bases(root: Path, requirement: Requirement) -> list[str]:
    """Every image that a build of this environment's image needs, also for the stages that are not in it."""
    text = recipe.dockerfile(root, requirement).read_text(encoding="utf-8")
    named = re.findall(r"^FROM (\S+:\S+)", text, flags=re.MULTILINE)
    helpers = [name for name in named if "$" not in name]
    return list(dict.fromkeys([*helpers, *recipe.bases(root, requirement)]))


def obtain(engine: Engine, reference: str) -> str:
    """The id of an image that the engine has, or pulls now. Raises CannotRunHereError."""
    found = _id(engine, reference)
    if found is not None:
        return found
    advice = "Pull it where a registry answers, or leave images out: --no-images"
    try:
        transfer.pull(engine, reference, lambda: False)
    except CannotRunHereError as error:
        raise CannotRunHereError(error.message, advice) from None
    found = _id(engine, reference)
    if found is None:
        raise CannotRunHereError(f"The Docker Engine pulled {reference} and does not have it.", advice)
    return found


def save(engine: Engine, reference: str, path: Path) -> None:
    """Write an image that the engine has to a file. Raises CannotRunHereError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with sentences(f"save {reference}"), part.open("wb") as out:
            for block in engine.api.get_image(reference):
                out.write(block)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(engine: Engine, path: Path, reference: str) -> None:
    """Give the engine the image in a file. Raises CannotRunHereError where it is not there after that."""
    with sentences(f"load {path}"), path.open("rb") as file:
        for _ in engine.api.load_image(file):  # type: ignore[no-untyped-call]
            pass
    if _id(engine, reference) is None:
        raise CannotRunHereError(f"{path} does not hold the image {reference}.")


def _id(engine: Engine, reference: str) -> str | None:
    from docker.errors import ImageNotFound

    with sentences(f"inspect {reference}"):
        try:
            return str(engine.api.inspect_image(reference)["Id"])  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None
