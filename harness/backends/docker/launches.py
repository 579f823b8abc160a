"""Launches in containers: their specifications, their volumes of compiled code, and their outcomes."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from harness.backends import compiled_code, worker
from harness.backends.artifacts import Artifacts
from harness.backends.docker import code_volumes, gpus
from harness.backends.docker.container import create_container
from harness.backends.docker.engine import Engine
from harness.backends.docker.priority import Priority
from harness.backends.docker.specification import CELL_LABEL, RUN_LABEL, Specification
from harness.backends.events import Events
from harness.backends.untrusted_text import Tail
from harness.model.backend import LaunchHandle
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError
from harness.model.gpu import GpuHost
from harness.model.launch import Job, Limits, Outcome, Status

#: The time limit in seconds for a container that does nothing.
_TRIAL_SECONDS = 60.0


@dataclass(frozen=True)
class ContainerLaunches:
    """The launches of one run, whose id labels their containers.

    `started` are the volumes of compiled code with which a launch has succeeded.
    """

    engine: Engine
    gpu_host: GpuHost
    run: str
    started: set[str] = field(default_factory=set)

    @contextmanager
    def hold(
        self, requirement: Requirement, job: Job, image: str, access: gpus.GpuAccess | None, priority: Priority | None
    ) -> Iterator[LaunchHandle]:
        """Yield a launch in a new container of an image (id), and remove the container after the block.

        `access` is the method by which the launch gets GPUs, if it needs any.
        """
        specification = self._make_specification(requirement, job, image, access, priority)
        with (
            gpus.explain_access(self.engine, access.way, job.limits.gpus) if access else nullcontext(),
            create_container(self.engine, specification) as container,
        ):
            # the worker's parent is the container's init process, which ends the worker with the container
            container.put(worker.collect_files(job, die_with_parent=False), (worker.ARTIFACTS,))

            def conclude(events: Events, ending: worker.Ending, stderr: Tail) -> Outcome:
                outcome = worker.make_outcome(
                    events,
                    ending,
                    stderr,
                    image=image,
                    artifacts=container.artifacts(worker.ARTIFACTS) if events.artifacts else Artifacts(),
                    requested_at=container.requested_at if self.engine.is_here else None,
                    gpus=self.gpu_host.select(job.limits.gpus) if access else (),
                    quota=container.quota,
                )
                if outcome.status is Status.OK:
                    self.started.update(specification.volumes)
                return outcome

            yield worker.HeldLaunch(container, job, specification.limits.seconds, conclude)

    def try_priority(self, image: str, priority: Priority) -> str:
        """Start a container with priority. Return why launches get none if the engine refuses it; otherwise empty."""
        from docker.errors import APIError

        trial = Specification(
            image=image,
            command=("python", "-c", ""),
            environ={},
            labels={RUN_LABEL: self.run, CELL_LABEL: "priority"},
            limits=Limits(tuple(priority.cpus), seconds=_TRIAL_SECONDS),
            priority=priority,
        )
        try:
            with create_container(self.engine, trial) as container:
                container.run(Tail().feed, Tail().feed)
        except CannotRunHereError as error:
            if not isinstance(error.__cause__, APIError):
                raise
            return (
                "Launches share their CPUs with other work, because they get no priority: "
                f"{error.message.rstrip('.')}. Work of other processes on these CPUs makes launches longer and "
                "intervals wider."
            )
        return ""

    def _make_specification(
        self, requirement: Requirement, job: Job, image: str, access: gpus.GpuAccess | None, priority: Priority | None
    ) -> Specification:
        specification = Specification(
            image=image,
            command=("python", *worker.ARGUMENTS),
            environ={**worker.ENVIRON, **job.environ},
            labels={RUN_LABEL: self.run, CELL_LABEL: str(job.cell)},
            limits=job.limits,
            takes_words=worker.is_waiting_for_words(job),
            priority=priority if job.limits.cpus else None,
        )
        if access is None:
            return specification
        selected_gpus = self.gpu_host.select(job.limits.gpus)
        volume = compiled_code.name_cache(image, job.files, selected_gpus)
        first_volume = compiled_code.name_cache(image, {}, selected_gpus)
        has_first = first_volume in self.started and first_volume != volume
        first_caches = {first_volume: code_volumes.FIRST_FOLDER} if has_first else {}
        code_volumes.make(self.engine, volume)
        specification_with_cache = replace(
            specification,
            limits=compiled_code.allow_first_start(job.limits, requirement, selected_gpus, volume, self.started),
            # the variables of an axis take precedence
            environ={
                **compiled_code.make_environ(code_volumes.FOLDER, first_caches.get(first_volume, "")),
                **specification.environ,
            },
            volumes={volume: code_volumes.FOLDER, **first_caches},
            read_only=tuple(first_caches),
        )
        gpu_names = access.list_requested(job.limits.gpus)
        return gpus.add_gpus(specification_with_cache, access.way, gpu_names, gpus.find_groups(self.engine))
