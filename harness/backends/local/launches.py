"""Launches in local environments: their folders, their variables and their processes."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.backends import compiled_code, worker
from harness.backends.artifacts import open_entry, read_folder
from harness.backends.events import Events
from harness.backends.local import cuda
from harness.backends.local.environments import Environments
from harness.backends.local.process import LocalProcess
from harness.backends.untrusted_text import Tail
from harness.files import remove_folder
from harness.machine.quota import read_quota
from harness.model.backend import LaunchHandle
from harness.model.environment import Requirement
from harness.model.errors import explain_unwritable
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import Job, Outcome, Status


@dataclass(frozen=True)
class Launches:
    """The launches of one run.

    `scratch_folder` is the parent of their folders, and `code_folder` contains the caches of compiled GPU code.
    `read_gpu_host` returns the GPUs of this machine. `started` are the caches with which a launch has succeeded.
    """

    environments: Environments
    scratch_folder: Path
    code_folder: Path
    read_gpu_host: Callable[[], GpuHost]
    started: set[str] = field(default_factory=set)

    @contextmanager
    def hold(self, requirement: Requirement, job: Job, prior: Collection[int]) -> Iterator[LaunchHandle]:
        """Yield a launch in a new folder, which is removed afterwards. On CPUs in `prior`, it has priority."""
        python = self.environments.python(requirement)
        limits, cache_name, gpus = job.limits, "", list[Gpu]()
        with (
            self._create_scratch_folder(worker.collect_files(job, die_with_parent=True)) as folder,
            # keep this folder open during the launch, because a script could replace it with a link
            open_entry(folder / worker.ARTIFACTS, flags=os.O_DIRECTORY) as artifacts,
        ):
            variables = _make_variables(python, folder, job)
            if limits.gpus:
                gpu_host = self.read_gpu_host()
                gpus = gpu_host.select(limits.gpus)
                cache_name = compiled_code.name_cache(requirement.lock.sha256, job.files, gpus)
                limits = compiled_code.allow_first_start(limits, requirement, gpus, cache_name, self.started)
                own_variables = {**self._make_cache(requirement, cache_name, gpus), **variables}
                packages = self.environments.packages(requirement)
                variables = cuda.make_variables(packages, limits.gpus, gpu_host, own_variables)

            def conclude(events: Events, ending: worker.Ending, stderr: Tail) -> Outcome:
                outcome = worker.make_outcome(
                    events,
                    ending,
                    stderr,
                    image=requirement.lock.sha256,
                    artifacts=read_folder(artifacts),
                    gpus=gpus,
                    quota=read_quota(Path("/"))[1],
                )
                if cache_name and outcome.status is Status.OK:
                    self.started.add(cache_name)
                return outcome

            command, takes_words = [str(python), *worker.ARGUMENTS], worker.is_waiting_for_words(job)
            process = LocalProcess(command, folder, variables, limits, takes_words=takes_words, prior=prior)
            with closing(process):
                yield worker.HeldLaunch(process, job, limits.seconds, conclude)

    def _make_cache(self, requirement: Requirement, name: str, gpus: Sequence[Gpu]) -> dict[str, str]:
        """Create the cache of compiled GPU code `name`, and return the launch's variables for it."""
        (self.code_folder / name).mkdir(parents=True, exist_ok=True)
        first_name = compiled_code.name_cache(requirement.lock.sha256, {}, gpus)
        has_first = first_name in self.started and first_name != name
        first_folder = str(self.code_folder / first_name) if has_first else ""
        return compiled_code.make_environ(str(self.code_folder / name), first_folder)

    @contextmanager
    def _create_scratch_folder(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        """Yield a new folder with the files of a launch."""
        parent = self.scratch_folder
        with explain_unwritable(f"The folder {parent}", "To use another folder, set HARNESS_CACHE_DIR."):
            parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=parent))
            for name, content in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            (folder / worker.ARTIFACTS).mkdir()
        try:
            yield folder
        finally:
            remove_folder(folder)
            with suppress(OSError):  # the folder may contain another launch of this run
                parent.rmdir()


def _make_variables(python: Path, folder: Path, job: Job) -> dict[str, str]:
    """Return the environment variables of a launch. It inherits no variables from the user's shell."""
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
