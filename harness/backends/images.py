"""The images of one engine: pulled or built where they are not there or not right, several at a time, and pushed."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

from harness.backends import image, recipe, transfer, wheels
from harness.backends.bake import Builder, Target, check
from harness.backends.engine import Engine, sentences
from harness.backends.image import Image, State
from harness.backends.preparing import refuse_nothing
from harness.backends.text import one_line
from harness.model.backend import Progress, Stage, Step
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UnavailableError, UsageError

#: Copying packages into layers keeps a disk busy: on a large machine more builds than this would wait for it.
_MOST_AT_A_TIME = 8


class Images:
    """The images of one engine. `root` is the folder with docker-bake.hcl and images/."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine = engine
        self._root = root
        self._registry = os.environ.get(image.REGISTRY, "")

    def tag(self, requirement: Requirement) -> str:
        """What the image is called, as docker-bake.hcl calls it."""
        return image.tag(requirement)

    def find(self, requirement: Requirement) -> Image | None:
        """The image, right or not, where the engine has it."""
        return self._inspect(self.tag(requirement))

    def labels(self, requirement: Requirement) -> dict[str, str]:
        """What makes an image the right one; the bases' ids are empty where the engine does not have them."""
        return image.labels(self._root, requirement, self._inspect)

    def right(self, requirement: Requirement) -> Image | None:
        """The image, where the engine has it and it is what a build would make."""
        found = self.find(requirement)
        return found if found is not None and found.is_right(self.labels(requirement)) else None

    def states(self, requirements: Sequence[Requirement]) -> list[tuple[State, Image | None]]:
        """Of each what the engine has, by one question for all."""
        with sentences("list images"):
            return image.states(self._root, requirements, lambda filters: self._engine.api.images(filters=filters))

    def prepare(
        self, requirements: list[Requirement], progress: Progress, jobs: int | None = None
    ) -> dict[str, str | Exception]:
        """Pull or build what is not right; returns for each environment its image's id, or an UnavailableError.

        `jobs` are made at a time, as many as there are CPUs by default. One that fails leaves the others to go on.
        Raises CannotRunHereError where there is no builder, or no image at all.
        """
        missing = [each for each in requirements if self.right(each) is None]
        failed = self._make(missing, progress, jobs or _jobs())
        results: dict[str, str | Exception] = {}
        for each in requirements:
            results[each.environment.name] = self._result(each, failed.get(each.environment.name))
        refuse_nothing(results)
        return results

    def push(self, requirements: Iterable[Requirement], progress: Progress) -> None:
        """Push images that the engine has to REGISTRY. Raises UsageError without one, CannotRunHereError."""
        check_registry()
        for each in requirements:
            name, tag = each.environment.name, self.tag(each)
            progress(Step(name, f"pushing {tag}"))
            transfer.push(self._engine, tag)
            progress(Step(name, "pushed", Stage.READY))

    def _result(self, requirement: Requirement, words: str | None) -> str | Exception:
        found = self.find(requirement) if words is None else None
        if found is not None:
            return found.id
        reason = words or "the builder left no image"
        message = f"The image {self.tag(requirement)} could not be built:\n{reason}"
        advice = "--backend local needs no image." if requirement.device is Device.CPU else ""
        return UnavailableError(message, advice)

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
        if self._registry and self._pull(requirement, builder, say):
            say(Step(name, f"pulled in {monotonic() - begun:.0f} s", Stage.READY))
            return ""
        check()
        say(Step(name, f"building {self.tag(requirement)}"))
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
        settings = {**recipe.settings(self._root, requirement, self.tag(requirement)), **labels}
        folder = wheels.folder()
        if folder is not None:
            locks = [requirement.lock.path, self._root / "images" / "uv.txt"]
            settings["contexts.wheels"] = str(stack.enter_context(wheels.selected(folder, locks)))
        return Target(recipe.target(requirement), settings)

    def _pull(self, requirement: Requirement, builder: Builder, say: Callable[[Step], None]) -> bool:
        """Pull the image from the registry; whether it is there now, and right."""
        name, tag = requirement.environment.name, self.tag(requirement)
        say(Step(name, f"pulling {tag}"))
        try:
            transfer.pull(self._engine, tag, lambda: builder.is_stopped)
        except CannotRunHereError as error:
            say(Step(name, f"{one_line(error.message)}; it will be built"))
            return False
        return self.right(requirement) is not None

    def _inspect(self, name: str) -> Image | None:
        from docker.errors import ImageNotFound

        with sentences(f"inspect {name}"):
            try:
                found: dict[str, Any] = self._engine.api.inspect_image(name)  # type: ignore[no-untyped-call]
            except ImageNotFound:
                return None
        return Image(found["Id"], found["Config"].get("Labels") or {}, found.get("Size", 0))


def check_registry() -> None:
    """Raise UsageError where there is no registry to push to."""
    if not os.environ.get(image.REGISTRY):
        advice = "Name it, with a slash at its end: REGISTRY=registry.example.org/team/"
        raise UsageError("REGISTRY is not set, so there is nowhere to push images to.", advice)


def _jobs() -> int:
    return min(max(2, os.cpu_count() or 2), _MOST_AT_A_TIME)
