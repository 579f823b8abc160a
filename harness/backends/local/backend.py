"""The backend that runs each launch in a fresh process of a local virtual environment, without containers."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from harness.backends import worker
from harness.backends.artifacts import from_folder
from harness.backends.events import Events
from harness.backends.local.environments import Environments
from harness.backends.local.process import LocalProcess
from harness.backends.protocol import RegisteredBackend
from harness.backends.untrusted_text import Tail
from harness.backends.verification import SCRIPT, Verification, verified
from harness.files import cache_dir
from harness.machine import niceness
from harness.machine.lock import is_held, run_lock
from harness.machine.quota import read_quota
from harness.model.backend import BackendFacts, GpuWay, LaunchHandle, Meanwhile, Preparation, Progress, WheelRecipe
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, UnavailableError, UsageError
from harness.model.launch import Job, Outcome


class LocalBackend(RegisteredBackend):
    """Launches in local environments. There is no wall around a scenario here but the user's own rights.

    `root` is the folder with images/install.sh; `run` is the run's id, the name of its scratch folder.
    """

    name = "local"
    leftovers = "scratch folders"
    makes = "local environment"
    builds_in = "on this machine, without a container, because the backend is local"

    def __init__(self, root: Path, run: str) -> None:
        self._root = root
        self._run = run
        self._prior: Collection[int] = ()

    @cached_property
    def environments(self) -> Environments:
        """Environments in the user's cache folder."""
        return Environments(self._root)

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        """Those that are not installed."""
        return [each for each in requirements if not self.environments.is_ready(each)]

    def check(self) -> str:
        """Return a description; this backend works everywhere."""
        return "local environments"

    def check_gpus(self, wanted: Sequence[str], via: GpuWay | None = None) -> None:
        """Raise UsageError: GPUs are for containers."""
        raise UsageError(
            "--gpu needs containers: a local environment would take this machine's CUDA, which no lock pins.",
            f"Leave --backend {self.name} out.",
        )

    def build_wheel(self, recipe: WheelRecipe, folder: Path) -> None:
        """Build a wheel on this machine, with this user's rights. Raises CannotRunHereError."""
        self.environments.build_wheel(recipe, folder)

    def give_priority(self, cpus: Collection[int]) -> list[str]:
        """Give launches on these CPUs the lowest nice value, if this process may and other CPUs are left."""
        if len(cpus) < (os.cpu_count() or 1) and niceness.can_lower():
            self._prior = tuple(cpus)
        return []

    def facts(self) -> BackendFacts:
        """Return facts for run.json: there is no engine, and limits that aren't enforced."""
        more = {"pinning": "CPU affinity", "memory limit": "not enforced"}
        priority = f"nice value {niceness.LOWEST}" if self._prior else ""
        return BackendFacts(self.name, engine="none: virtual environments", priority=priority, more=more)

    def prepare(
        self, requirements: Sequence[Requirement], progress: Progress, meanwhile: Meanwhile | None = None
    ) -> Preparation:
        """Make the environments that are not there, one after another; the result has each lock's hash."""
        made: dict[str, str] = {}
        unavailable: dict[str, UnavailableError] = {}
        for each in requirements:
            try:
                self.environments.make(each, progress)
                made[each.environment.name] = each.lock.sha256
            except UnavailableError as error:
                unavailable[each.environment.name] = error
        return Preparation(made, unavailable).refuse_nothing()

    def can_move(self) -> bool:
        """Yes: they are this machine's processes."""
        return True

    @contextmanager
    def hold(self, requirement: Requirement, job: Job) -> Iterator[LaunchHandle]:
        """Yield a launch in its own folder, which is removed afterwards."""
        python = self._python(requirement)
        self.environments.check(requirement)
        with self._scratch(worker.files(job, die_with_parent=True)) as folder, _opened(folder) as artifacts:
            command, variables = [str(python), *worker.ARGUMENTS], _variables(python, folder, job)

            def conclude(events: Events, ending: worker.Ending, stderr: Tail) -> Outcome:
                image = requirement.lock.sha256
                left = from_folder(artifacts)
                _, quota = read_quota(Path("/"))
                return worker.outcome(events, ending, stderr, image=image, artifacts=left, quota=quota)

            process = LocalProcess(
                command, folder, variables, job.limits, takes_words=worker.takes_words(job), prior=self._prior
            )
            with closing(process):
                yield worker.HeldLaunch(process, job, job.limits.seconds, conclude)

    def verify(self, requirement: Requirement) -> Verification:
        """Compare what is installed in the environment with the lock."""
        done = subprocess.run(
            [self._python(requirement), "-I", "-B", "-c", SCRIPT], capture_output=True, text=True, check=False
        )
        if done.returncode:
            name = requirement.environment.name
            raise CannotRunHereError(f"The environment {name} could not list its packages:\n{done.stderr.strip()}")
        return verified(requirement.lock.pins, done.stdout)

    def clean(self, run: str) -> int:
        """Remove the folders of a run, or of all runs that aren't running; their processes ended with the harness."""
        every = (path for path in _scratch("").glob("*") if path.is_dir() and not is_held(run_lock(path.name)))
        parents = [_scratch(run)] if run else list(every)
        count = 0
        for parent in parents:
            count += sum(1 for _ in parent.glob("*"))
            _remove(parent)
        return count

    def _python(self, requirement: Requirement) -> Path:
        if not self.environments.is_ready(requirement):
            raise CannotRunHereError(
                f"The environment {requirement.environment.name} is not there.",
                "It is made again when a run needs it next.",
            )
        return self.environments.python(requirement)

    @contextmanager
    def _scratch(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        """Yield a new folder with the files of a launch."""
        parent = _scratch(self._run)
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=parent))
            _fill(folder, files)
        except OSError as error:
            raise CannotRunHereError(
                f"The folder {parent} cannot be written: {error.strerror}.", "HARNESS_CACHE_DIR names another."
            ) from None
        try:
            yield folder
        finally:
            _remove(folder)
            with suppress(OSError):  # another launch of this run may be there
                parent.rmdir()


def _remove(folder: Path) -> None:
    """Remove a folder with all that an untrusted script put into it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # it is nested deeper than Python removes
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / worker.ARTIFACTS).mkdir()


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of a launch's folder of artifacts, for as long as it lasts: a script may put a link in its place."""
    handle = os.open(folder / worker.ARTIFACTS, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _scratch(run: str) -> Path:
    """Return the parent of launches' folders: in the user's own cache, where nobody else can write."""
    return cache_dir() / "scratch" / re.sub(r"[^A-Za-z0-9-]", "_", run)


def _variables(python: Path, folder: Path, job: Job) -> dict[str, str]:
    """All that a launch sees of the environment: nothing of the user's shell comes in."""
    return {
        "PATH": os.pathsep.join([str(python.parent), os.defpath]),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONNOUSERSITE": "1",
        "CUDA_VISIBLE_DEVICES": "-1",
        **worker.ENVIRON,
        **job.environ,
    }
