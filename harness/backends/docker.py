"""The backend that gives each launch a fresh container of its own."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.backends import gpus, kernels, worker
from harness.backends.artifacts import Artifacts
from harness.backends.container import CELL_LABEL, RUN_LABEL, Specification, created
from harness.backends.engine import Engine, connect, sentences
from harness.backends.events import Events
from harness.backends.image import REGISTRY
from harness.backends.images import Images
from harness.backends.installed import SCRIPT, Differences, compare, listed
from harness.backends.outcome import outcome
from harness.backends.text import Tail
from harness.model.backend import Progress
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UnavailableError
from harness.model.gpu import Card, GpuCode, GpuHost
from harness.model.job import Job, Limits
from harness.model.launch import Outcome, Status

#: How long listing an image's packages may take, in seconds.
_VERIFY_SECONDS = 60.0


class DockerBackend:
    """Launches in containers. Nothing is asked of an engine before it is needed.

    `root` is the folder with docker-bake.hcl and images/; `run` is the run's id, the label of its containers.
    """

    name = "docker"

    def __init__(self, root: Path, run: str) -> None:
        self._root = root
        self._run = run
        self._ids: dict[str, str] = {}
        self._facts: dict[str, str] = {}
        self._started: set[str] = set()  # the volumes of compiled code in which a launch has gone well

    @cached_property
    def engine(self) -> Engine:
        """The engine. Raises CannotRunHereError where none answers."""
        return connect()

    @cached_property
    def images(self) -> Images:
        """The engine's images of our environments."""
        return Images(self.engine, self._root)

    @cached_property
    def access(self) -> gpus.Access:
        """How containers get GPUs. Raises CannotRunHereError where they get none."""
        return gpus.find(self.engine)

    @cached_property
    def gpu_host(self) -> GpuHost:
        """What is known of the GPUs of the engine's machine."""
        return gpus.host()

    def check_gpus(self, wanted: Sequence[str]) -> None:
        """Raise CannotRunHereError, with what to do, where containers cannot get these GPUs, as far as that is told."""
        gpus.check(self.access, wanted)
        self._facts["gpus_by"] = self.access.way.value

    def facts(self) -> Mapping[str, Any]:
        """What the report says of the engine, and what it asks it for images and GPUs by."""
        registry = os.environ.get(REGISTRY, "")
        return {**self.engine.facts, **({"registry": registry} if registry else {}), **self._facts}

    def prepare(self, requirements: list[Requirement], progress: Progress) -> dict[str, str | Exception]:
        """Build what is not there or not right; returns each environment's image id, or its UnavailableError."""
        prepared = self.images.prepare(requirements, progress)
        for each in requirements:
            found = prepared[each.environment.name]
            if isinstance(found, str):
                self._ids[self.images.tag(each)] = found
        return prepared

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        """Execute one launch in a container, and remove it."""
        specification = self._specification(requirement, job)
        events, stderr = Events(), Tail()
        with gpus.refusals(job.limits.gpus), created(self.engine, specification) as container:
            # its parent is the container's own init, which ends it when the container ends
            container.put(worker.files(job, die_with_parent=False), (worker.ARTIFACTS,))
            asked, ending = container.run(events.feed, stderr.feed)
            artifacts = container.artifacts(worker.ARTIFACTS) if events.artifacts else Artifacts()
        ended = outcome(
            events,
            ending,
            stderr,
            image=specification.image,
            artifacts=artifacts,
            asked=asked if self.engine.is_here else None,
        )
        if ended.status is Status.OK:
            self._started.update(specification.volumes)
        return ended

    def verify(self, requirement: Requirement) -> Differences:
        """Compare what is installed in the image with the lock. Raises CannotRunHereError where it does not start."""
        specification = Specification(
            image=self._image(requirement),
            command=("python", "-c", SCRIPT),
            environ={},
            labels={RUN_LABEL: self._run, CELL_LABEL: "verify"},
            limits=Limits(seconds=_VERIFY_SECONDS),
        )
        stdout, stderr = Tail(1024**2), Tail()
        with created(self.engine, specification) as container:
            _, ending = container.run(stdout.feed, stderr.feed)
        if not ending.clean:
            name = self.images.tag(requirement)
            raise CannotRunHereError(f"{name} could not list its packages ({ending}):\n{stderr.text()}")
        return compare(requirement.lock.pins, listed(stdout.text()))

    def clean(self, run: str) -> int:
        """Remove the containers of a run, or of all runs, by their label."""
        label = f"{RUN_LABEL}={run}" if run else RUN_LABEL
        with sentences("remove containers"):
            left = self.engine.api.containers(all=True, quiet=True, filters={"label": label})
            for container in left:
                self.engine.api.remove_container(container["Id"], force=True, v=True)
        return len(left)

    def clean_caches(self) -> int:
        """Remove the volumes of compiled GPU code; returns how many there were."""
        return kernels.remove(self.engine)

    def caches(self) -> list[str]:
        """The volumes of compiled GPU code that the engine has, of any run."""
        return kernels.kept(self.engine)

    def _specification(self, requirement: Requirement, job: Job) -> Specification:
        specification = Specification(
            image=self._image(requirement),
            command=("python", *worker.ARGUMENTS),
            environ={**worker.ENVIRON, **job.environ},
            labels={RUN_LABEL: self._run, CELL_LABEL: str(job.cell)},
            limits=job.limits,
        )
        return self._with_gpus(specification, requirement, job) if job.limits.gpus else specification

    def _with_gpus(self, specification: Specification, requirement: Requirement, job: Job) -> Specification:
        limits, cards = job.limits, self.gpu_host.chosen(job.limits.gpus)
        volume = kernels.volume(specification.image, [card.name for card in cards])
        kernels.make(self.engine, volume)
        if volume not in self._started and self._may_compile(requirement, cards):
            limits = replace(limits, seconds=max(limits.seconds, limits.first_start_seconds))
        return replace(
            specification,
            limits=limits,
            # an axis may set what these do
            environ={**kernels.ENVIRON, **specification.environ},
            devices=gpus.requests(self.access, limits.gpus),
            volumes={volume: kernels.FOLDER},
        )

    def _may_compile(self, requirement: Requirement, cards: Sequence[Card]) -> bool:
        """Whether the driver may have to compile the release's GPU code; yes where the GPU is not known."""
        code = GpuCode.parse(requirement.environment.gpu_code)
        return not cards or any(not code.runs_on(card.capability) for card in cards)

    def _image(self, requirement: Requirement) -> str:
        """The image's id: of what was prepared, not of what a tag means by now."""
        tag = self.images.tag(requirement)
        if tag not in self._ids:
            found = self.images.find(requirement)
            if found is None:
                build = f"harness images build {requirement.environment.name} --device {requirement.device.value}"
                raise UnavailableError(f"There is no image {tag}.", f"Make it: {build}")
            self._ids[tag] = found.id
        return self._ids[tag]
