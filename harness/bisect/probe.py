"""Measures environments for a search, as small runs in the search's folder.

The runs are the state of the search. A resumed search reads its earlier results from the stored runs.
"""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from harness import session
from harness.analysis.results import Results
from harness.backends import registry
from harness.bisect.comparison import ProbeRun
from harness.bisect.folder import StepLog
from harness.bisect.request import BisectRequest
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.environments.requested import parse_requested
from harness.machine.lock import hold_machine, hold_run_lock
from harness.model.defaults import SEARCH_MEASURE, SEARCH_WARMUP
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, HarnessError, UsageError
from harness.model.launch import Interleave
from harness.model.scenario import STEP, Cell
from harness.plan.selection import resolve
from harness.project import Project
from harness.session import trust
from harness.session.planning.lengths import UNPILOTED
from harness.session.request import Request
from harness.session.sources import WheelMaker
from harness.store.folder import RunFolder

#: The smallest number of CPUs with which environments are built during a measurement. A build uses two CPUs, and a
#: launch one CPU.
CPUS_TO_BUILD = 4


class Probe:
    """Builds and measures the environments of a search. In all methods, a text is the value of -e for an environment.

    `spent` is the time of all launches in seconds, and `launched` is the number of launches. `runs` contains the ids of
    the runs. The listener receives the events of the runs.
    """

    def __init__(
        self, folder: Path, request: BisectRequest, listener: session.Listener, *, wait: bool = False, cpus: int = 0
    ) -> None:
        self.folder = folder
        self.log = StepLog(folder)
        self.spent = 0.0
        self.launched = 0
        self.runs: list[str] = []
        self.say = listener.say
        self._request = request
        self._measured: list[ProbeRun] = []
        self._listener = listener
        self._wait = wait
        self._project = Project.find()
        self._device = Device.GPU if request.gpu or request.gpus else Device.CPU
        is_parallel = (cpus or len(os.sched_getaffinity(0))) >= CPUS_TO_BUILD
        self._pool = ThreadPoolExecutor(1) if is_parallel else None
        self._builds: dict[str, Future[str]] = {}
        self._reasons: dict[str, str] = {}
        self._pins: dict[str, Mapping[str, str]] = {}
        self._untrusted: dict[str, str] = {}

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def measure(self, kind: str, texts: Sequence[str], rounds: int, *, with_control: bool = False) -> ProbeRun:
        """Measure rounds of environments. The first one is the baseline. `kind` is the kind of the step in the log.

        Raises the errors of session.plan and session.run, and KeyboardInterrupt if the run was interrupted.
        """
        key = (kind, list(texts), rounds)
        if stored_step := self.log.next(key):
            return self._record_run(session.read(self.folder / stored_step["run"]), stored_step["names"])
        names = {text: self._load_requirement(text).environment.name for text in texts}
        request = self._request
        planned = session.plan(
            Request(
                scenarios=[request.scenario],
                axes={axis: [value] for axis, value in request.axes.items()},
                environments=texts,
                rounds=rounds,
                backend=request.backend,
                trust=request.trust,
                share=request.share,
                gpu=request.gpu,
                gpus=request.gpus,
                cpus=request.cpus,
                timeout=request.timeout,
                margin=request.margin,
                warmup=SEARCH_WARMUP,
                measure=SEARCH_MEASURE,
                interleave=None if request.of == STEP else Interleave.LAUNCHES,
                results=self.folder,
                repository=request.repository,
            )
        )
        _check_axes(planned.cells)
        plan = replace(planned.plan, piloted=request.of not in UNPILOTED)
        if not with_control:
            plan = replace(plan, groups=[replace(group, control=None) for group in plan.groups])
        ended_run = session.run(replace(planned, plan=plan), self._listener, wait=self._wait)
        if ended_run.broken_off:
            raise ended_run.broken_off
        if ended_run.interrupted:
            raise KeyboardInterrupt
        self.log.append(key, run=ended_run.folder.name, names=names)
        return self._record_run(ended_run.results, names)

    def remove_leftovers(self) -> None:
        """Remove the leftovers of killed runs of this search. Their steps are measured again."""
        paths = self.folder.iterdir() if self.folder.exists() else ()
        unfinished_paths = [path for path in paths if path.is_dir() and path.name not in self.log.runs]
        for path in unfinished_paths:
            with hold_run_lock(path.name):
                for backend in registry.open_all(self._project.root):
                    with suppress(CannotRunHereError):  # the run had no containers if the engine is missing
                        backend.clean(path.name)
                if RunFolder.is_unbegun(path):
                    RunFolder(path).discard()

    @property
    def is_parallel(self) -> bool:
        """Return whether environments are built during a measurement."""
        return self._pool is not None

    def build_ahead(self, texts: Sequence[str]) -> None:
        """Start to build environments in the background. Does nothing on a machine with too few CPUs."""
        for text in texts if self._pool else ():
            if self._pool and text not in self._builds:
                self._builds[text] = self._pool.submit(self._build_environment, text, nullcontext)

    def why_not(self, text: str) -> str:
        """Build an environment unless it was built before. Return the reason if that fails, otherwise an empty text."""
        if text in self._builds:
            return self._builds[text].result()
        return self._build_environment(text, lambda: hold_machine(self._listener.say if self._wait else None))

    def estimated(self, environments: int, rounds: int, *, with_control: bool = False) -> float:
        """Return the estimated time of a measurement in seconds, from the earlier launches."""
        mean = self.spent / self.launched if self.launched else 0.0
        return mean * rounds * (environments + with_control)

    def pins(self, text: str) -> Mapping[str, str]:
        """Return the versions of an environment's packages, from its lock file."""
        if text not in self._pins:
            self._pins[text] = self._load_requirement(text).lock.pins
        return self._pins[text]

    def python(self, text: str) -> str:
        """Return the Python version of an environment, X.Y."""
        return self._load_requirement(text).environment.python

    def commits(self) -> dict[str, str]:
        """Return the commit of TensorFlow in each measured environment that reports one."""
        return {text: commit for run in self._measured for text in run.names if (commit := run.build(text))}

    def _load_requirement(
        self, text: str, lock: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Requirement:
        request = self._request
        maker = WheelMaker(
            self._project, request.backend, request.repository, is_trusted=request.trust, say=self.say, lock=lock
        )
        requested = parse_requested(text)
        environments, (name,) = maker.resolve(load_environments(self._project), [requested])
        resolve([name], list(environments), "environment")
        if not request.trust:
            kinds = trust.classify_environments([requested], [name], environments, self._project, request.repository)
            self._untrusted |= trust.find_untrusted({key: kind for key, kind in kinds.items() if key == name})
        return load_lock(self._project, environments[name], self._device)

    def _build_environment(self, text: str, lock: Callable[[], AbstractContextManager[None]]) -> str:
        if text not in self._reasons:
            key = ("why not", text)
            stored_step = self.log.next(key)
            reason = stored_step["why"] if stored_step else self._build_now(text, lock)
            self._reasons[text] = reason
            if reason and not stored_step and "does not answer" not in reason:
                self.log.append(key, why=reason)
        return self._reasons[text]

    def _build_now(self, text: str, lock: Callable[[], AbstractContextManager[None]]) -> str:
        try:
            requirement = self._load_requirement(text, lock)
        except HarnessError as error:
            return _shorten(error)
        environment_name = requirement.environment.name
        untrusted = {key: text for key, text in self._untrusted.items() if key == environment_name}
        name = f"bisect-{secrets.token_hex(2)}"
        backend, _ = registry.choose(self._request.backend, self._project.root, name, untrusted=untrusted)
        if not backend.unprepared([requirement]):
            return ""
        with lock():
            backend.check_room([requirement])
            try:
                with self._listener.preparing() as progress:
                    preparation = backend.prepare([requirement], progress)
            except CannotRunHereError as error:
                return _shorten(error)
        unavailable = preparation.unavailable.get(requirement.environment.name)
        return _shorten(unavailable) if unavailable else ""

    def _record_run(self, results: Results, names: Mapping[str, str]) -> ProbeRun:
        run = ProbeRun.of_quantity(results, names, self._request.of)
        self.runs.append(results.run.id)
        self._measured.append(run)
        self.launched += len(run.launches)
        self.spent += sum(launch.seconds for launch in run.launches)
        return run


def _check_axes(cells: Sequence[Cell]) -> None:
    """Raise UsageError if the cells differ in more than the environment."""
    count = len({tuple(cell.axes.items()) for cell in cells})
    if count > 1:
        open_axes = [axis for axis in cells[0].axes if len({cell.axes[axis] for cell in cells}) > 1]
        raise UsageError(
            f"A search measures one cell, but {count} cells match, because these axes have several values: "
            f"{', '.join(open_axes)}.",
            f"Choose one value of each axis: {' '.join(f'-a {axis}={cells[0].axes[axis]}' for axis in open_axes)}",
        )


def _shorten(error: HarnessError) -> str:
    """Return the message of an error as a reason on one line."""
    return " ".join(error.message.split()).rstrip(".")[:300]
