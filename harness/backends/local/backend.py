"""The backend that runs each launch in a fresh process of a local virtual environment, without containers."""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.backends.local.environments import Environments
from harness.backends.protocol import RegisteredBackend
from harness.backends.verification import SCRIPT, Verification, verify_output
from harness.files import get_cache_dir, remove_folder
from harness.machine import cpus, host, niceness
from harness.machine.gpu.host import find_driver_error
from harness.machine.gpu.host import read as read_gpu_host
from harness.machine.interpreters import find_supply
from harness.machine.lock import get_run_lock_path, is_held
from harness.machine.quota import read_quota
from harness.model.backend import (
    ENVIRONMENT_BYTES,
    BackendFacts,
    GpuWay,
    LaunchHandle,
    Preparation,
    Progress,
    Supply,
    WheelRecipe,
)
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, UnavailableError, UsageError
from harness.model.gpu import GpuHost
from harness.model.launch import Job
from harness.model.texts import format_plain

if TYPE_CHECKING:
    from harness.backends.local.launches import Launches


class LocalBackend(RegisteredBackend):
    """Runs launches in local environments. Only the user's permissions limit a scenario.

    `root` is the folder with images/install.sh; `run` is the run's id, the name of its scratch folder.
    """

    name = "local"
    leftovers = "scratch folders"
    makes = "local environment"
    builds_in = "on this machine, without a container, because the backend is local"

    def __init__(self, root: Path, run: str) -> None:
        self._run = run
        self._priority_cpus: Collection[int] = ()
        self._gpus: Sequence[str] = ()
        self._supply = cache(find_supply)
        self.environments = Environments(root)

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Return the environments that aren't installed."""
        return [requirement for requirement in requirements if not self.environments.is_ready(requirement)]

    def check(self) -> str:
        """Return a description of the backend, which works everywhere."""
        return "local environments"

    @cached_property
    def gpu_host(self) -> GpuHost:
        """Return the GPUs of this machine, or of the container that harness is in."""
        return replace(read_gpu_host(), needs_packages=True)

    def check_gpus(self, wanted: Sequence[str], via: GpuWay | None = None) -> None:
        """Raise CannotRunHereError if there is no driver, and UsageError for a method of containers."""
        if via is not None:
            raise UsageError(
                f"--gpu-via {via} applies only to containers, but this backend runs launches without containers.",
                "Pass --gpu.",
            )
        error = find_driver_error()
        if error:
            location = "in this container" if host.detect_container() else "on this machine"
            raise CannotRunHereError(
                f"--gpu: the NVIDIA driver is missing {location}: {error}.",
                "Give the job's container a GPU (docker run --gpus all)."
                if host.detect_container()
                else "Install the driver. To check the driver, run: nvidia-smi",
            )
        self._gpus = wanted

    def supply(self, requirement: Requirement) -> Supply:
        """Return whether the environment's interpreter is installed, or whether uv can download it."""
        return Supply.HERE if self.environments.is_ready(requirement) else self._supply(requirement.environment.python)

    def check_room(self, requirements: Sequence[Requirement]) -> None:
        """Raise CannotRunHereError if the disk has too little space for the missing environments."""
        needed = sum(ENVIRONMENT_BYTES[requirement.device] for requirement in self.unprepared(requirements))
        folder = next(path for path in [get_cache_dir(), *get_cache_dir().parents] if path.exists())
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise CannotRunHereError(
                f"Environments need about {needed / 1e9:.0f} GB in {get_cache_dir()}, but only {free / 1e9:.1f} GB are "
                "free.",
                "Request fewer environments (-e), or set HARNESS_CACHE_DIR to a folder on another disk.",
            )

    def build_wheel(self, recipe: WheelRecipe, folder: Path) -> None:
        """Build a wheel on this machine, with this user's rights. Raises CannotRunHereError."""
        self.environments.build_wheel(recipe, folder)

    def give_priority(self, cpus: Collection[int]) -> list[str]:
        """Give launches on these CPUs the lowest nice value, if this process may set it and other CPUs remain."""
        if len(cpus) < (os.cpu_count() or 1) and niceness.can_lower():
            self._priority_cpus = tuple(cpus)
        return []

    def facts(self) -> BackendFacts:
        """Return the facts for run.json: there is no engine, and this backend can't enforce several limits."""
        container, quota = host.detect_container(), read_quota(Path("/"))[1]
        uncontrolled = [
            "" if cpus.can_pin() else "CPU pinning, which this system forbids",
            "" if quota is None else f"CPU time (a quota of {format_plain(quota)} CPUs)",
            "network access",
            "memory (--memory)",
            f"the C library ({host.read_c_library()})",
        ]
        return BackendFacts(
            self.name,
            architecture=self.architecture,
            engine=f"none: virtual environments{f' in a {container} container' if container else ''}",
            priority=f"nice value {niceness.LOWEST}" if self._priority_cpus else "",
            gpus_by="the driver of this machine" if self._gpus else "",
            uncontrolled=[*filter(None, uncontrolled)],
            more={"pinning": "CPU affinity"} if cpus.can_pin() else {},
        )

    def prepare(self, requirements: Sequence[Requirement], progress: Progress) -> Preparation:
        """Make the missing environments, one after the other. The result has the hash of each lock."""
        hashes: dict[str, str] = {}
        unavailable: dict[str, UnavailableError] = {}
        for requirement in requirements:
            try:
                self.environments.make(requirement, progress)
                hashes[requirement.name] = requirement.lock.sha256
            except UnavailableError as error:
                unavailable[requirement.name] = error
        return Preparation(hashes, unavailable).refuse_nothing()

    def can_move(self) -> bool:
        """Return True, because launches are processes of this machine."""
        return True

    @cached_property
    def _launches(self) -> "Launches":
        from harness.backends.local.launches import Launches  # noqa: PLC0415 - a dry run launches nothing

        return Launches(self.environments, _get_scratch_folder(self._run), _get_code_folder(), lambda: self.gpu_host)

    def hold(self, requirement: Requirement, job: Job) -> AbstractContextManager[LaunchHandle]:
        """Return a context manager for a launch in a new folder, which is removed afterwards."""
        self._get_python(requirement)
        self.environments.check(requirement)
        return self._launches.hold(requirement, job, self._priority_cpus)

    def verify(self, requirement: Requirement) -> Verification:
        """Compare the installed packages of the environment with the lock, and read its GPU code if it was assumed."""
        process = subprocess.run(
            [self._get_python(requirement), "-I", "-B", "-c", SCRIPT], capture_output=True, text=True, check=False
        )
        if process.returncode:
            name = requirement.environment.name
            raise CannotRunHereError(f"The environment {name} could not list its packages:\n{process.stderr.strip()}")
        verification = verify_output(requirement.lock.pins, process.stdout)
        if requirement.device is Device.CPU or not requirement.environment.is_unread:
            return verification
        from harness.backends.local import cuda  # noqa: PLC0415 - only environments of nightly wheels need it

        return replace(
            verification, read=cuda.read_gpu_code(requirement.environment, self.environments.packages(requirement))
        )

    def clean(self, run: str) -> int:
        """Remove the folders of a run, or of all runs that aren't running. Their processes ended when harness ended."""
        ended_runs = (
            path
            for path in _get_scratch_folder("").glob("*")
            if path.is_dir() and not is_held(get_run_lock_path(path.name))
        )
        parents = [_get_scratch_folder(run)] if run else list(ended_runs)
        count = 0
        for parent in parents:
            count += sum(1 for _ in parent.glob("*"))
            remove_folder(parent)
        return count

    def caches(self) -> list[str]:
        """Return the names of the folders with compiled GPU code, from all runs."""
        return sorted(path.name for path in _get_code_folder().glob("*"))

    def clean_caches(self) -> int:
        """Remove the folders of compiled GPU code, and return their number."""
        names = self.caches()
        remove_folder(_get_code_folder())
        return len(names)

    def _get_python(self, requirement: Requirement) -> Path:
        if not self.environments.is_ready(requirement):
            raise CannotRunHereError(
                f"The environment {requirement.environment.name} is missing.",
                "The next run that needs this environment creates it again.",
            )
        return self.environments.python(requirement)


def _get_scratch_folder(run: str) -> Path:
    """Return the parent folder of launches' folders. It is in the user's cache, where nobody else can write."""
    return get_cache_dir() / "scratch" / re.sub(r"[^A-Za-z0-9-]", "_", run)


def _get_code_folder() -> Path:
    """Return the folder that contains the caches of compiled GPU code."""
    return get_cache_dir() / "gpu-code"
