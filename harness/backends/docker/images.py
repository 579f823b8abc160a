"""The images of one engine: pulled or built where they are not right, pushed; and bases, to and from files."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

from harness.backends import wheels
from harness.backends.docker import recipe
from harness.backends.docker.bake import Builder, Target, check
from harness.backends.docker.engine import Engine, sentences
from harness.backends.docker.recipe import Image
from harness.backends.text import one_line
from harness.model.backend import KeptImage, Preparation, Progress, Stage, Step
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UnavailableError, UsageError

#: Copying packages into layers keeps a disk busy: on a large machine more builds than this would wait for it.
_MOST_AT_A_TIME = 8


class Images:
    """The images of one engine. `root` is the folder with docker-bake.hcl and images/."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine = engine
        self._root = root

    def find(self, requirement: Requirement) -> Image | None:
        """The image, right or not, where the engine has it."""
        return self._inspect(recipe.tag(requirement))

    def labels(self, requirement: Requirement) -> dict[str, str]:
        """What makes an image the right one; the bases' ids are empty where the engine does not have them."""
        return recipe.labels(self._root, requirement, self._inspect)

    def right(self, requirement: Requirement) -> Image | None:
        """The image, where the engine has it and it is what a build would make."""
        found = self.find(requirement)
        return found if found is not None and found.is_right(self.labels(requirement)) else None

    def states(self, requirements: Sequence[Requirement]) -> list[KeptImage]:
        """Of each what the engine has, by one question for all."""
        with sentences("list images"):
            return recipe.states(self._root, requirements, lambda filters: self._engine.api.images(filters=filters))

    def prepare(self, requirements: Sequence[Requirement], progress: Progress, jobs: int | None = None) -> Preparation:
        """Pull or build what is not right; the result has each image's id.

        `jobs` are made at a time, as many as there are CPUs by default. One that fails leaves the others to go on.
        Raises CannotRunHereError where there is no builder, or no image at all.
        """
        missing = [each for each in requirements if self.right(each) is None]
        failed = self._make(missing, progress, jobs or _jobs())
        images: dict[str, str] = {}
        unavailable: dict[str, UnavailableError] = {}
        for each in requirements:
            name = each.environment.name
            found = self.find(each) if name not in failed else None
            if found is not None:
                images[name] = found.id
            else:
                unavailable[name] = self._unavailable(each, failed.get(name, "the builder left no image"))
        return Preparation(images, unavailable).refuse_nothing()

    def push(self, requirements: Iterable[Requirement], progress: Progress) -> None:
        """Push images that the engine has to REGISTRY. Raises UsageError without one, CannotRunHereError."""
        check_registry()
        for each in requirements:
            name, tag = each.environment.name, recipe.tag(each)
            progress(Step(name, f"pushing {tag}"))
            push(self._engine, tag)
            progress(Step(name, "pushed", Stage.READY))

    def _unavailable(self, requirement: Requirement, words: str) -> UnavailableError:
        """What is said of an image that could not be built, with the builder's last `words`."""
        lacking = [base for base in recipe.all_bases(self._root, requirement) if base in words]
        advice = [_advice_on_base(base) for base in lacking if self._inspect(base) is None]
        if requirement.device is Device.CPU:
            advice.append("--backend local needs no image.")
        return UnavailableError(f"The image {recipe.tag(requirement)} could not be built:\n{words}", "\n".join(advice))

    def _make(self, requirements: list[Requirement], progress: Progress, jobs: int) -> dict[str, str]:
        """Pull or build images; returns, by environment, the builder's last words for each that failed."""
        if not requirements:
            return {}
        builder, one_at_a_time = Builder(self._root), threading.Lock()

        def say(step: Step) -> None:
            with one_at_a_time:
                if not builder.is_stopped:
                    progress(step)

        for each in requirements:
            say(Step(each.environment.name, "waiting", Stage.WAITING))
        with ThreadPoolExecutor(jobs, thread_name_prefix="image") as pool:
            futures = {each.environment.name: pool.submit(self._one, each, builder, say) for each in requirements}
            try:
                wait(futures.values())
            except BaseException:
                builder.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        words = {name: future.result() for name, future in futures.items()}
        return {name: each for name, each in words.items() if each}

    def _one(self, requirement: Requirement, builder: Builder, say: Callable[[Step], None]) -> str:
        """Pull or build one image; returns nothing where it is there now, else the builder's last words."""
        name, begun = requirement.environment.name, monotonic()
        if recipe.registry() and self._pull(requirement, builder, say):
            say(Step(name, f"pulled in {monotonic() - begun:.0f} s", Stage.READY))
            return ""
        check()
        say(Step(name, f"building {recipe.tag(requirement)}"))
        with ExitStack() as stack:
            target = self._target(requirement, stack)
            words = builder.build(target, lambda words: say(Step(name, words)))
        took = f"{monotonic() - begun:.0f} s"
        if words:
            say(Step(name, f"failed after {took}: {words.splitlines()[0].rstrip(':')}", Stage.FAILED))
        else:
            say(Step(name, f"built in {took}", Stage.READY))
        return words

    def _target(self, requirement: Requirement, stack: ExitStack) -> Target:
        labels = {f"labels.{label}": value for label, value in self.labels(requirement).items()}
        settings = {**recipe.settings(self._root, requirement), **labels}
        folder = wheels.folder()
        if folder is not None:
            locks = [requirement.lock.path, self._root / "images" / "uv.txt"]
            settings["contexts.wheels"] = str(stack.enter_context(wheels.selected(folder, locks)))
        return Target(recipe.target(requirement), settings)

    def _pull(self, requirement: Requirement, builder: Builder, say: Callable[[Step], None]) -> bool:
        """Pull the image from the registry; whether it is there now, and right."""
        name, tag = requirement.environment.name, recipe.tag(requirement)
        say(Step(name, f"pulling {tag}"))
        try:
            pull(self._engine, tag, lambda: builder.is_stopped)
        except CannotRunHereError as error:
            say(Step(name, f"{one_line(error.message)}; it will be built"))
            return False
        return self.right(requirement) is not None

    def _inspect(self, name: str) -> Image | None:
        return inspect(self._engine, name)


def inspect(engine: Engine, name: str) -> Image | None:
    """The image of this name, None where the engine does not have it."""
    from docker.errors import ImageNotFound

    with sentences(f"inspect {name}"):
        try:
            found: dict[str, Any] = engine.api.inspect_image(name)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None
    return Image(found["Id"], found["Config"].get("Labels") or {}, found.get("Size", 0))


def check_registry() -> None:
    """Raise UsageError where there is no registry to push to."""
    if not recipe.registry():
        advice = "Name it, with a slash at its end: REGISTRY=registry.example.org/team/"
        raise UsageError("REGISTRY is not set, so there is nowhere to push images to.", advice)


def _jobs() -> int:
    return min(max(2, os.cpu_count() or 2), _MOST_AT_A_TIME)


def _advice_on_base(reference: str) -> str:
    return (
        f"This engine does not have the base image {reference}. Where a registry answers: docker pull {reference}\n"
        "Without a registry: harness images pack FOLDER on a machine that has one, then harness images unpack FOLDER "
        "here."
    )


def push(engine: Engine, tag: str) -> None:
    """Push an image that the engine has. Raises CannotRunHereError with the registry's own words."""
    with sentences(f"push {tag}"):
        _heed(engine.api.push(tag, stream=True, decode=True), f"push {tag}")


def pull(engine: Engine, tag: str, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Pull an image, until it is there or `is_stopped`. Raises CannotRunHereError with the registry's own words."""
    with sentences(f"pull {tag}"):
        _heed(engine.api.pull(tag, stream=True, decode=True), f"pull {tag}", is_stopped)


def _heed(messages: Iterable[Mapping[str, Any]], what: str, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Follow a transfer to its end: an engine that has begun one tells of errors on the way, not by its status."""
    for message in messages:
        if "error" in message:
            raise CannotRunHereError(f"The Docker Engine would not {what}: {one_line(str(message['error']))}")
        if is_stopped():
            return


class DockerBases:
    """The images that others are made from, to and from files: for a machine that reaches no registry."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine = engine
        self._root = root

    def named(self, requirements: Iterable[Requirement]) -> list[str]:
        """What builds of these environments' images start from, each once."""
        return list(dict.fromkeys(base for each in requirements for base in recipe.all_bases(self._root, each)))

    def obtain(self, reference: str) -> str:
        """The id of an image that the engine has, or pulls now. Raises CannotRunHereError."""
        found = inspect(self._engine, reference)
        if found is None:
            advice = "Pull it where a registry answers, or leave images out: --no-images"
            try:
                pull(self._engine, reference)
            except CannotRunHereError as error:
                raise CannotRunHereError(error.message, advice) from None
            found = inspect(self._engine, reference)
            if found is None:
                raise CannotRunHereError(f"The Docker Engine pulled {reference} and does not have it.", advice)
        return found.id

    def save(self, reference: str, path: Path) -> None:
        """Write an image that the engine has to a file. Raises CannotRunHereError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        try:
            with sentences(f"save {reference}"), part.open("wb") as out:
                for block in self._engine.api.get_image(reference):
                    out.write(block)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def load(self, path: Path, reference: str) -> None:
        """Give the engine the image in a file. Raises CannotRunHereError where it is not there after that."""
        with sentences(f"load {path}"), path.open("rb") as file:
            for _ in self._engine.api.load_image(file):  # type: ignore[no-untyped-call]
                pass
        if inspect(self._engine, reference) is None:
            raise CannotRunHereError(f"{path} does not hold the image {reference}.")
