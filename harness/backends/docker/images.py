"""The images of one engine: pull, build and push them, and save and load their base images."""

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from harness.backends import wheels
from harness.backends.docker import recipe
from harness.backends.docker.bake import Builder
from harness.backends.docker.engine import Engine, raise_as_sentences
from harness.backends.docker.recipe import Image
from harness.backends.untrusted_text import join_lines
from harness.backends.wheels import BUILD_SECONDS
from harness.files import replace_file
from harness.model.backend import (
    ENVIRONMENT_BYTES,
    DiskSpace,
    ImageState,
    KeptImage,
    Preparation,
    PreparationStep,
    Progress,
    Stage,
    WheelRecipe,
)
from harness.model.environment import Device, Requirement, normalize_architecture
from harness.model.errors import CannotRunHereError, UnavailableError
from harness.model.texts import joined

#: The largest number of builds at a time. With more, builds would wait for the disk, because they copy packages.
_MAX_BUILDS = 8

#: The assumed size in bytes of an image that adds a wheel to another image.
OVERLAY_BYTES = 10**8


class Images:
    """The images of one engine. `root` is the folder with docker-bake.hcl and images/."""

    def __init__(self, engine: Engine, root: Path) -> None:
        self._engine = engine
        self._root = root

    def find(self, requirement: Requirement) -> Image | None:
        """Return the image if the engine has it, even if it is outdated."""
        return self._inspect(recipe.make_tag(requirement))

    def any_for(self, device: Device) -> str:
        """Return the id of a harness image of any environment for a device; empty if the engine has none."""
        with raise_as_sentences("list images"):
            images = self._engine.api.images(filters={"reference": f"{recipe.get_registry()}harness/*:{device.value}"})
        return str(images[0]["Id"]) if images else ""

    def labels(self, requirement: Requirement) -> dict[str, str]:
        """Return the labels of an up-to-date image. The id of a base is empty if the engine doesn't have the base."""
        return recipe.make_labels(self._root, requirement, self._inspect)

    def states(self, requirements: Sequence[Requirement]) -> list[KeptImage]:
        """Return the state of each image, with one request for all."""
        needed = [*requirements, *(requirement.base for requirement in requirements if requirement.base)]
        names = {recipe.make_tag(requirement) for requirement in needed}
        names |= {base for requirement in needed for base in recipe.find_bases(self._root, requirement)}
        if self._engine.is_podman:  # it lists images by other names: docker.io/harness/…, localhost/harness/…
            images_by_tag = {name: image for name in names if (image := self._inspect(name))}
        else:
            with raise_as_sentences("list images"):
                summaries = self._engine.api.images(filters={"reference": sorted(names)})
            images_by_tag = {name: _make_image(entry, entry) for entry in summaries for name in entry["RepoTags"] or ()}

        def state(requirement: Requirement) -> KeptImage:
            image = images_by_tag.get(recipe.make_tag(requirement))
            if image is None:
                return KeptImage(ImageState.NOT_BUILT)
            is_current = image.is_right(recipe.make_labels(self._root, requirement, images_by_tag.get))
            if requirement.base and state(requirement.base).state is not ImageState.BUILT:
                is_current = False
            return KeptImage(ImageState.BUILT if is_current else ImageState.OUTDATED, image.id, image.size_bytes)

        return [state(requirement) for requirement in requirements]

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Return the environments whose image is missing or outdated."""
        states = self.states(requirements) if requirements else []
        pairs = zip(requirements, states, strict=True)
        return [requirement for requirement, image in pairs if image.state is not ImageState.BUILT]

    def room(self, requirements: Sequence[Requirement]) -> DiskSpace:
        """Return the disk space for the images to build, and the free space if the disk is visible here."""
        missing = self.unprepared(requirements)
        missing += [base for base in self.unprepared(_find_bases(missing)) if base not in missing]
        image_folder = str(self._engine.info.get("DockerRootDir", "")) if self._engine.is_here else ""
        try:
            free = shutil.disk_usage(image_folder).free if image_folder else None
        except OSError:  # this process can't see the engine's folder
            free = None
        needed = sum(
            OVERLAY_BYTES if requirement.base else ENVIRONMENT_BYTES[requirement.device] for requirement in missing
        )
        return DiskSpace(free, needed, len(missing), image_folder)

    def prepare(
        self, requirements: Sequence[Requirement], progress: Progress, jobs: int | None = None, *, emulate: bool = False
    ) -> Preparation:
        """Pull or build images that aren't up to date. The result has the id of each image.

        Up to `jobs` images are built at a time; the default depends on the number of CPUs. If a build fails, the other
        builds continue. Raises CannotRunHereError if there is no builder, if no image is available at all, or, without
        `emulate`, if the engine would have to emulate another processor.
        """
        if not emulate:
            self._refuse_emulation(requirements)
        at_a_time = jobs or min(max(2, os.cpu_count() or 2), _MAX_BUILDS)
        if self._engine.is_podman:  # a build that ends unmounts the stages that other builds use
            at_a_time = 1
        missing = self.unprepared(requirements)
        missing_bases = self.unprepared(_find_bases(missing))
        errors = self._prepare_images(missing_bases, progress, at_a_time)
        errors |= {target.name: text for target in missing if target.base and (text := errors.get(target.base.name))}
        missing = [target for target in missing if target not in missing_bases and target.name not in errors]
        errors |= self._prepare_images(missing, progress, at_a_time)
        images: dict[str, str] = {}
        unavailable: dict[str, UnavailableError] = {}
        for requirement in requirements:
            name = requirement.name
            image = self.find(requirement) if name not in errors else None
            if image is not None:
                images[name] = image.id
            else:
                reason = errors.get(name, "the build produced no image")
                unavailable[name] = self._make_unavailable_error(requirement, reason)
        return Preparation(images, unavailable).refuse_nothing()

    def _refuse_emulation(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError if containers would be for another architecture than the engine's."""
        default = os.environ.get("DOCKER_DEFAULT_PLATFORM", "").split("/")[1:2]
        wanted = {requirement.environment.architecture for requirement in requirements}
        wanted.update(map(normalize_architecture, default))
        if others := sorted(wanted - {self._engine.architecture}):
            reason = "DOCKER_DEFAULT_PLATFORM asks for" if default else "The environments are for"
            raise CannotRunHereError(
                f"{reason} {joined(others)}, but the Docker Engine runs on {self._engine.architecture}. It would "
                "emulate the processor, and emulated times say nothing about a real one.",
                f"{'Unset DOCKER_DEFAULT_PLATFORM, or measure' if default else 'Measure'} with an engine on "
                f"{joined(others)}. To only check images: harness images verify --emulate",
            )

    def push(self, requirements: Iterable[Requirement], progress: Progress) -> None:
        """Push images of the engine to the registry in REGISTRY. Raises CannotRunHereError."""
        for requirement in requirements:
            name, tag = requirement.environment.name, recipe.make_tag(requirement)
            progress(PreparationStep(name, f"pushing {tag}"))
            self._transfer("push", tag)
            progress(PreparationStep(name, "pushed", Stage.READY))

    def bases(self, requirements: Iterable[Requirement]) -> list[str]:
        """Return the base images of these environments' images, each once."""
        bases = (base for requirement in requirements for base in recipe.find_all_bases(self._root, requirement))
        return list(dict.fromkeys(bases))

    def save(self, reference: str, path: Path) -> None:
        """Write an image to a file. If the engine doesn't have it, pull it first.

        Raises CannotRunHereError, and OSError if the file can't be written.
        """
        if self._inspect(reference) is None:
            try:
                self._transfer("pull", reference)
            except CannotRunHereError as error:
                advice = (
                    f"If you can reach a registry, run `docker pull {reference}`. To pack without images, pass "
                    "--no-images."
                )
                raise CannotRunHereError(error.message, advice) from None
        with replace_file(path) as part, part.open("wb") as file:
            file.writelines(self._read(reference))

    def _read(self, reference: str) -> Iterator[bytes]:
        """Yield the bytes of an image."""
        with raise_as_sentences(f"save {reference}"):
            yield from self._engine.api.get_image(reference)

    def load(self, path: Path) -> list[str]:
        """Load the images in a file into the engine, and return their references. Raises CannotRunHereError."""
        with raise_as_sentences(f"load {path}"), path.open("rb") as file:
            messages = "".join(
                message.get("stream", "")
                for message in self._engine.api.load_image(file)  # type: ignore[no-untyped-call]
            )
        references = re.findall(r"(?m)^Loaded image: (\S+)$", messages)
        if not references:
            raise CannotRunHereError(f"{path} doesn't contain an image with a name.")
        return references

    def _make_unavailable_error(self, requirement: Requirement, last_lines: str) -> UnavailableError:
        """Return the error for an image that couldn't be built. `last_lines` are the last lines of the builder."""
        advice = [
            f"Docker Engine doesn't have the base image {base}. If you can reach a registry: docker pull "
            f"{base}\nOtherwise, run `harness images pack FOLDER` on a machine with access to a registry, then "
            "`harness images unpack FOLDER` here."
            for base in recipe.find_all_bases(self._root, requirement)
            if base in last_lines and self._inspect(base) is None
        ]
        if requirement.device is Device.CPU:
            advice.append("--backend local doesn't need images.")
        return UnavailableError(
            f"The image {recipe.make_tag(requirement)} could not be built:\n{last_lines}", "\n".join(advice)
        )

    def _prepare_images(self, requirements: list[Requirement], progress: Progress, jobs: int) -> dict[str, str]:
        """Pull or build images. Return the builder's last lines for each failed build, by environment."""
        if not requirements:
            return {}
        architecture = requirements[0].environment.architecture
        builder, progress_lock = self._make_builder(architecture), threading.Lock()

        def report(step: PreparationStep) -> None:
            with progress_lock:
                if not builder.is_stopped:
                    progress(step)

        for queued in requirements:
            report(PreparationStep(queued.name, "waiting", Stage.WAITING))
        with ThreadPoolExecutor(jobs, thread_name_prefix="image") as pool:
            futures = [pool.submit(self._prepare_image, target, builder, report) for target in requirements]
            try:
                wait(futures)
            except BaseException:
                builder.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        errors = {target.name: future.result() for target, future in zip(requirements, futures, strict=True)}
        return {name: message for name, message in errors.items() if message}

    def _prepare_image(self, requirement: Requirement, builder: Builder, say: Callable[[PreparationStep], None]) -> str:
        """Pull or build one image.

        Return an empty text if the image is then available, otherwise the builder's last lines.
        """
        name, start_time = requirement.name, monotonic()
        if recipe.get_registry() and self._pull(requirement, builder, say):
            say(PreparationStep(name, f"pulled in {monotonic() - start_time:.0f} s", Stage.READY))
            return ""
        builder.check(uses_images=requirement.base is not None)
        say(PreparationStep(name, f"building {recipe.make_tag(requirement)}"))
        with self._make_settings(requirement) as settings:
            target = recipe.name_target(requirement.environment, requirement.device)
            error = builder.build(target, settings, lambda words: say(PreparationStep(name, words)))
        duration = f"{monotonic() - start_time:.0f} s"
        if error:
            say(PreparationStep(name, f"failed after {duration}: {error.splitlines()[0].rstrip(':')}", Stage.FAILED))
        else:
            say(PreparationStep(name, f"built in {duration}", Stage.READY))
        return error

    @contextmanager
    def _make_settings(self, requirement: Requirement) -> Iterator[dict[str, str]]:
        """Yield the builder's settings. If a folder of packages is set, they name a folder with the needed files."""
        settings = recipe.make_settings(self._root, requirement, is_complete=self._engine.is_podman)
        settings |= {f"labels.{label}": value for label, value in self.labels(requirement).items()}
        folder = wheels.find_folder()
        if folder is None:
            yield settings
            return
        with wheels.select_wheels(folder, [requirement.lock.path, self._root / "images" / "uv.txt"]) as selected:
            yield settings | {"contexts.wheels": str(selected)}

    def build_wheel(self, wheel: WheelRecipe, folder: Path) -> None:
        """Build a wheel from a source in a container without a network, into a folder. Raises CannotRunHereError."""
        builder = self._make_builder(self._engine.architecture)
        builder.check(uses_images=True)
        settings = {
            "contexts.source": str(wheel.source),
            "contexts.locks": str(wheel.lock.parent),
            "args.PYTHON": wheel.python,
            "args.VERSION": wheel.version,
            "args.SOURCE_DATE_EPOCH": str(wheel.instant),
        }
        timer = threading.Timer(BUILD_SECONDS, builder.stop)
        timer.start()
        try:
            build_error = builder.build("wheel", settings, lambda _: None, folder)
        finally:
            timer.cancel()
        if builder.is_stopped:
            build_error = f"it took longer than {BUILD_SECONDS} s"
        if build_error:
            raise CannotRunHereError(f"The wheel of {wheel.package} could not be built:\n{build_error}")

    def _make_builder(self, architecture: str) -> Builder:
        if self._engine.is_podman:
            from harness.backends.docker.podman import PodmanBuilder  # noqa: PLC0415 - Docker does without it

            return PodmanBuilder(self._root, self._engine)
        return Builder(self._root, architecture)

    def _pull(self, requirement: Requirement, builder: Builder, say: Callable[[PreparationStep], None]) -> bool:
        """Pull the image from the registry; return whether it is available and up to date."""
        name, tag = requirement.name, recipe.make_tag(requirement)
        say(PreparationStep(name, f"pulling {tag}"))
        try:
            self._transfer("pull", tag, lambda: builder.is_stopped)
        except CannotRunHereError as error:
            say(PreparationStep(name, f"{join_lines(error.message)}; the image will be built"))
            return False
        return not self.unprepared([requirement])

    def _transfer(
        self, direction: Literal["pull", "push"], tag: str, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Pull or push an image, until the transfer has finished or `is_stopped` returns True.

        Raises CannotRunHereError with the message of the registry.

        Once an engine has started a transfer, it reports errors in its messages instead of the HTTP status.
        """
        with raise_as_sentences(f"{direction} {tag}"):
            for message in getattr(self._engine.api, direction)(tag, stream=True, decode=True):
                if "error" in message:
                    reason = join_lines(str(message["error"]))
                    raise CannotRunHereError(f"Docker Engine refused to {direction} {tag}: {reason}")
                if is_stopped():
                    return

    def _inspect(self, name: str) -> Image | None:
        from docker.errors import ImageNotFound

        with raise_as_sentences(f"inspect {name}"):
            try:
                inspection: dict[str, Any] = self._engine.api.inspect_image(name)  # type: ignore[no-untyped-call]
            except ImageNotFound:
                return None
        return _make_image(inspection, inspection["Config"])


def _find_bases(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Return the environments on which these environments are based, each once."""
    return list({requirement.base.name: requirement.base for requirement in requirements if requirement.base}.values())


def _make_image(entry: Mapping[str, Any], labelled: Mapping[str, Any]) -> Image:
    return Image(entry["Id"], labelled.get("Labels") or {}, entry.get("Size", 0))
