"""The backend that runs each launch in a fresh container."""

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.backends.docker import bake, code_volumes, gpu_refusals, gpus, recipe
from harness.backends.docker.engine import NAME, Engine, connect
from harness.backends.docker.images import Images
from harness.backends.docker.priority import SHARES, Priority, find_priority
from harness.backends.docker.removal import remove_containers
from harness.backends.protocol import RegisteredBackend
from harness.backends.verification import Verification
from harness.machine import host
from harness.model.backend import BackendFacts, GpuWay, KeptImage, LaunchHandle, Preparation, Progress, WheelRecipe
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import GpuHost
from harness.model.launch import Job
from harness.model.texts import counted

if TYPE_CHECKING:
    from harness.backends.docker.launches import ContainerLaunches
    from harness.machine.doctor.check import CheckResult


class DockerBackend(RegisteredBackend):
    """Runs launches in containers. It contacts the engine only when it needs the engine.

    `root` is the folder with docker-bake.hcl and images/. `run` is the run's id, which labels its containers.
    """

    name = NAME
    leftovers = "containers"
    makes = "image"
    builds_in = "in a container without a network"

    def __init__(self, root: Path, run: str) -> None:
        self._root = root
        self._run = run
        self._ids: dict[str, str] = {}
        self._requested_gpus: Sequence[str] = ()
        self._untried_methods: Sequence[gpus.GpuAccess] = ()
        self._priority: Priority | None = None

    @cached_property
    def engine(self) -> Engine:
        """The engine. Raises CannotRunHereError if no engine is running."""
        return connect()

    @cached_property
    def images(self) -> Images:
        """The images of harness's environments in the engine."""
        return Images(self.engine, self._root)

    @cached_property
    def access(self) -> gpus.GpuAccess:
        """The method by which launches get GPUs. Until `try_gpus` has run, it is the preferred method.

        Raises CannotRunHereError.
        """
        return gpus.find(self.engine)[0]

    @cached_property
    def gpu_host(self) -> GpuHost:
        """The GPUs of the engine's machine, as far as they are known without a request to the engine."""
        return gpus.find_host()

    @cached_property
    def _launches(self) -> "ContainerLaunches":
        from harness.backends.docker.launches import ContainerLaunches  # noqa: PLC0415 - a plan does without it

        return ContainerLaunches(self.engine, self.gpu_host, self._run)

    @property
    def architecture(self) -> str:
        """The architecture of the engine's machine. Raises CannotRunHereError if no engine is running."""
        return self.engine.architecture

    def check(self) -> str:
        """Return a description of the engine. Raises CannotRunHereError if no engine is running."""
        return self.engine.facts.engine

    def check_tools(self) -> None:
        """Raise CannotRunHereError in a container that has the engine's socket but no `docker` command.

        GitHub jobs that run in a container are an example.
        """
        if host.detect_container() and bake.get_version() is None:
            raise CannotRunHereError(
                "This container has the socket of a Docker Engine, but not the docker command with buildx, "
                "which builds images."
            )

    def check_gpus(self, wanted: Sequence[str], via: GpuWay | None = None) -> None:
        """Find the methods that may give these GPUs to containers. Raises CannotRunHereError if there is none."""
        self._untried_methods = gpus.select_able(gpus.find(self.engine, via), wanted)
        self._requested_gpus, self.access = wanted, self._untried_methods[0]

    def try_gpus(self, requirements: Sequence[Requirement]) -> list[str]:
        """Choose the first method that gives a container the checked GPUs. Return messages about the methods.

        The test needs an image: an image of one of these environments or, before these are built, any GPU image of
        harness. Nothing is reported if there is no image, or if the GPUs were tested before.
        """
        image_id = next((image.id for requirement in requirements if (image := self.images.find(requirement))), "")
        if image_id or not self._untried_methods:
            return self._try_gpus(image_id)
        try:
            return self._try_gpus(self.images.any_for(Device.GPU))
        except gpu_refusals.GpuRefusedError:
            raise
        except CannotRunHereError:
            return []  # a problem with that image doesn't concern this run

    def _try_gpus(self, image: str) -> list[str]:
        if not self._untried_methods or not image:
            return []
        from harness.backends.docker import gpu_trial  # noqa: PLC0415 - a plan does without it

        self.access, messages = gpus.choose_working(
            self._untried_methods,
            lambda access: gpu_trial.try_access(
                self.engine, image, access.way, access.list_requested(self._requested_gpus), self._run
            )[0],
        )
        self._untried_methods = ()
        return messages

    def check_room(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError if there isn't enough disk space for the images that must be built."""
        space = self.images.room(requirements)
        if space.free is not None and space.free < space.needed:
            raise CannotRunHereError(
                f"{counted(space.images, 'image')} must be built. This needs about {space.needed / 1e9:.0f} GB of disk "
                f"space, but {space.folder} has only {space.free / 1e9:.1f} GB.",
                "Remove images that you no longer need (docker system df lists them), or request fewer environments "
                "(-e).",
            )

    def findings(self, requirements: Sequence[Requirement], wanted: Sequence[str]) -> "list[CheckResult]":
        """Return the doctor's results for the engine, its builder, the disk space for images, and access to GPUs."""
        from harness.machine.doctor import prerequisites  # noqa: PLC0415 - a plan does without it

        builder = prerequisites.check_buildx(bake.get_version())
        try:
            facts = self.engine.facts
        except CannotRunHereError as error:
            message = error.message.rstrip(".")
            return [prerequisites.report_missing_docker(message, error.advice, wanted=bool(wanted)), builder]
        engine = prerequisites.check_docker(self.engine.version, where=facts.where, is_podman=self.engine.is_podman)
        priority = prerequisites.check_priority(is_possible=find_priority(self.engine, [0]) is not None)
        checks = [engine, prerequisites.check_disk_space(self.images.room(requirements)), priority]
        checks[1:1] = [] if self.engine.is_podman else [builder]
        if wanted or not self.gpu_host.absent:
            checks.append(self._check_access(wanted, requirements))
        return checks

    def _check_access(self, gpus_wanted: Sequence[str], requirements: Sequence[Requirement]) -> "CheckResult":
        """Check how containers get GPUs.

        If GPUs are requested and an image exists, start a test container. Otherwise, read the engine's settings.

        The test can use any image of harness, but prefers images of these environments.
        """
        from harness.machine.doctor import prerequisites  # noqa: PLC0415 - a plan does without it

        needs_gpus = bool(gpus_wanted)
        try:
            accesses = gpus.find(self.engine)
            if not needs_gpus:
                return prerequisites.check_gpu_access(accesses[0].way.words, wanted=needs_gpus)
            self.check_gpus(gpus_wanted)
            messages = self.try_gpus(requirements)
            return prerequisites.check_gpu_access(self.access.way.words, told=messages, wanted=needs_gpus)
        except gpu_refusals.GpuRefusedError as error:
            do = error.do.removeprefix(gpus.DOCTOR_ADVICE) if needs_gpus else error.do
            advice = f"{do}{':' if error.command else '.'}"
            return prerequisites.report_missing_gpu_access(error.message, advice, error.command, wanted=needs_gpus)
        except CannotRunHereError as error:
            return prerequisites.report_missing_gpu_access(error.message, error.advice, wanted=needs_gpus)

    def build_wheel(self, recipe: WheelRecipe, folder: Path) -> None:
        """Build a wheel in a container without a network. Raises CannotRunHereError."""
        self.images.build_wheel(recipe, folder)

    def give_priority(self, cpus: Collection[int]) -> list[str]:
        """Give launches on these CPUs the largest CPU weight, if a test container can start with this weight.

        The test needs a prepared image. Without an image, nothing is launched anyway.
        """
        priority, image = find_priority(self.engine, cpus), next(iter(self._ids.values()), "")
        if priority is None or not image:
            return []
        if refusal := self._launches.try_priority(image, priority):
            return [refusal]
        self._priority = priority
        return []

    def facts(self) -> BackendFacts:
        """Return the engine's facts for run.json, and how it provides images, priority and GPUs."""
        facts = replace(self.engine.facts, registry=recipe.get_registry())
        if self._priority:
            facts = replace(facts, priority=f"{SHARES} CPU shares in the control group {self._priority.parent}")
        if not self._requested_gpus:
            return facts
        return replace(facts, gpus_by=self.access.way.words, gpu_groups=gpus.find_groups(self.engine))

    def states(self, requirements: Sequence[Requirement]) -> list[KeptImage]:
        """Return whether each image is built, and its size, with one request for all images."""
        return self.images.states(requirements)

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Return the environments whose image is missing or outdated."""
        return self.images.unprepared(requirements)

    def prepare(
        self, requirements: Sequence[Requirement], progress: Progress, jobs: int | None = None, *, emulate: bool = False
    ) -> Preparation:
        """Pull or build missing and outdated images, `jobs` at a time. The result contains each image's id."""
        prepared = self.images.prepare(requirements, progress, jobs, emulate=emulate)
        tags = {requirement.name: recipe.make_tag(requirement) for requirement in requirements}
        self._ids.update((tags[name], image) for name, image in prepared.images.items())
        return prepared

    def check_push(self) -> None:
        """Raise UsageError if there is no registry to push to."""
        if not recipe.get_registry():
            advice = "Set REGISTRY, with a slash at the end: REGISTRY=registry.example.org/team/"
            raise UsageError("REGISTRY is not set, so images can't be pushed.", advice)

    def can_move(self) -> bool:
        """Return whether launches can be moved: the engine is here, has all of the CPUs, and can pin containers."""
        info = self.engine.info
        is_able = self.engine.is_here and not self.engine.is_podman  # Podman's interface has no such request
        return is_able and bool(info.get("CPUSet")) and info.get("NCPU") == os.cpu_count()

    def hold(self, requirement: Requirement, job: Job) -> AbstractContextManager[LaunchHandle]:
        """Yield one launch in a new container, and remove the container after the block."""
        access = self.access if job.limits.gpus else None
        return self._launches.hold(requirement, job, self._get_image_id(requirement), access, self._priority)

    def verify(self, requirement: Requirement) -> Verification:
        """Compare the packages in the image with the lock, and read the image's GPU code if it was assumed.

        Raises CannotRunHereError if the image doesn't start.
        """
        from harness.backends.docker.image_verification import verify_image  # noqa: PLC0415 - a plan does without it

        return verify_image(self.engine, self._get_image_id(requirement), requirement, self._run)

    def clean(self, run: str) -> int:
        """Remove the containers of a run. Without a run, remove the containers of all ended runs of this user.

        Raises CannotRunHereError if some remain.
        """
        return remove_containers(self.engine, run)

    def clean_caches(self) -> int:
        """Remove the volumes of compiled GPU code, and return their number."""
        return code_volumes.remove_all(self.engine)

    def caches(self) -> list[str]:
        """Return the names of the engine's volumes with compiled GPU code, from all runs."""
        return code_volumes.list_names(self.engine)

    def _get_image_id(self, requirement: Requirement) -> str:
        """Return the id of the prepared image, even if its tag refers to another image now."""
        tag = recipe.make_tag(requirement)
        if tag not in self._ids:
            image = self.images.find(requirement)
            if image is None:
                build = f"harness images build {requirement.environment.name} --device {requirement.device.value}"
                raise CannotRunHereError(f"The image {tag} is missing.", f"Build it: {build}")
            self._ids[tag] = image.id
        return self._ids[tag]
