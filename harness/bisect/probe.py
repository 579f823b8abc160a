"""Measures environments for a search, as small runs in the search's folder.

The runs are the state of the search. A resumed search reads its earlier results from the stored runs.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness import session
from harness.analysis.results import Results
from harness.backends import registry
from harness.bisect.folder import StepLog
from harness.bisect.request import BisectRequest
from harness.environments.catalog import load_environments
from harness.environments.locks import Builds, load_lock
from harness.environments.requested import parse_requested
from harness.machine.lock import hold_machine, hold_run_lock
from harness.model.defaults import SEARCH_MEASURE, SEARCH_WARMUP
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, HarnessError, UsageError
from harness.model.launch import Interleave
from harness.model.scenario import STEP, Cell
from harness.paired.comparison import PairedRun
from harness.plan.selection import resolve
from harness.project import Project
from harness.session.planning.lengths import UNPILOTED
from harness.session.request import Request
from harness.session.sources import WheelMaker
from harness.store.folder import RunFolder

#: The kinds of steps that compare two environments, and so need an A/A control.
COMPARING = ("ends", "pair")


class Probe:
    """Measures the environments of a search. In all methods, a text is the value of -e for an environment.

    `spent` is the time of all launches in seconds, and `launched` is the number of launches. `runs` contains the ids of
    the runs. The listener receives the events of the runs.
    """

    def __init__(self, folder: Path, request: BisectRequest, listener: session.Listener, *, wait: bool = False) -> None:
        self.folder = folder
        self.log = StepLog(folder)
        self.spent = 0.0
        self.launched = 0
        self.runs: list[str] = []
        self.say = listener.say
        self._request = request
        self._measured: list[PairedRun] = []
        self._listener = listener
        self._wait = wait
        self._project = Project.find()
        self._device = Device.GPU if request.gpu or request.gpus else Device.CPU
        self._requirements: dict[str, Requirement] = {}

    def measure(self, kind: str, texts: Sequence[str], rounds: int, earlier: PairedRun | None = None) -> PairedRun:
        """Measure rounds of environments. The first one is the baseline. `kind` is the kind of the step in the log.

        The run `earlier` is continued up to this number of rounds, and so is an interrupted run of this step. Raises
        the errors of session.plan, session.run and session.resume, and KeyboardInterrupt if the run was interrupted.
        """
        key, request = (kind, list(texts), rounds), self._request
        if step := self.log.next(key):
            return self._record_run(session.read(self.folder / step["run"]), step["names"], rounds, earlier)
        names = {text: self._load_requirement(text).environment.name for text in texts}
        folder = self.folder / earlier.results.run.id if earlier else self._find_interrupted(kind, names.values())
        if folder:
            ended_run = session.resume(folder, self._listener, backend=request.backend, wait=self._wait, rounds=rounds)
        else:
            ended_run = session.run(self._plan(kind, texts, rounds), self._listener, wait=self._wait)
        if ended_run.broken_off:
            raise ended_run.broken_off
        if ended_run.interrupted:
            raise KeyboardInterrupt
        self.log.append(key, run=ended_run.folder.name, names=names)
        return self._record_run(ended_run.results, names, rounds, earlier)

    def _plan(self, kind: str, texts: Sequence[str], rounds: int) -> session.Planned:
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
        plan = replace(planned.plan, piloted=request.of not in UNPILOTED and kind != "count")
        if kind not in COMPARING:
            plan = replace(plan, groups=[replace(group, control=None) for group in plan.groups])
        return replace(planned, plan=plan)

    def _find_interrupted(self, kind: str, names: Collection[str]) -> Path | None:
        """Return the folder of an interrupted run of these environments, which no step in the log has."""
        for path in sorted(self.folder.glob("*/run.json"), reverse=True):
            if path.parent.name not in {*self.log.runs, *self.runs}:
                plan = RunFolder(path.parent).read_run().plan
                cells = [*plan.cells, *(unavailable.cell for unavailable in plan.unavailable)]
                has_control = any(group.control for group in plan.groups)
                if {cell.environment for cell in cells} == {*names} and has_control == (kind in COMPARING):
                    return path.parent
        return None

    def remove_leftovers(self) -> None:
        """Remove the leftovers of killed runs of this search, but keep their results."""
        paths = self.folder.iterdir() if self.folder.exists() else ()
        unfinished_paths = [path for path in paths if path.is_dir() and path.name not in self.log.runs]
        for path in unfinished_paths:
            with hold_run_lock(path.name):
                for backend in registry.open_all(self._project.root):
                    with suppress(CannotRunHereError):  # the run had no containers if the engine is missing
                        backend.clean(path.name)
                if RunFolder.is_unbegun(path):
                    RunFolder(path).discard()

    def why_not(self, text: str) -> str:
        """Return why an environment isn't possible; empty if it is. A package from a source is built for this."""
        try:
            self._load_requirement(text)
        except HarnessError as error:
            return " ".join(error.message.split()).rstrip(".")[:300]
        return ""

    def estimated(self, environments: int, rounds: int, *, with_control: bool = False) -> float:
        """Return the estimated time of a measurement in seconds, from the earlier launches."""
        mean = self.spent / self.launched if self.launched else 0.0
        return mean * rounds * (environments + with_control)

    def pins(self, text: str) -> Mapping[str, str]:
        """Return the versions of an environment's packages, from its lock file."""
        return self._load_requirement(text).lock.pins

    def python(self, text: str) -> str:
        """Return the Python version of an environment, X.Y."""
        return self._load_requirement(text).environment.python

    def commits(self) -> dict[str, str]:
        """Return the commit of TensorFlow in each measured environment that reports one."""
        return {text: commit for run in self._measured for text in run.names if (commit := run.build(text))}

    def _load_requirement(self, text: str) -> Requirement:
        if text not in self._requirements:
            request = self._request
            maker = WheelMaker(
                self._project,
                request.backend,
                request.repository,
                is_trusted=request.trust,
                say=self.say,
                lock=lambda: hold_machine(self.say if self._wait else None),
            )
            architecture = registry.find_architecture(request.backend, self._project.root)
            project = replace(self._project, architecture=architecture)
            environments, (name,) = maker.resolve(load_environments(project), [parse_requested(text)])
            resolve([name], list(environments), "environment")
            self._requirements[text] = load_lock(
                project, environments[name], self._device, builds=Builds.ALL if request.trust else Builds.KNOWN
            )
        return self._requirements[text]

    def _record_run(
        self, results: Results, names: Mapping[str, str], rounds: int, earlier: PairedRun | None
    ) -> PairedRun:
        """Return the first `rounds` rounds of a run. Count the launches that the run `earlier` doesn't have."""
        launches = [launch for launch in results.launches if launch.round <= rounds]
        # a search has its own levels for its looks
        run = PairedRun(Results(replace(results.run, looks=[]), launches), names, self._request.of)
        new_launches = launches[len(earlier.results.launches) :] if earlier else launches
        if not earlier:
            self.runs.append(results.run.id)
            self._measured.append(run)
        self.launched += len(new_launches)
        self.spent += sum(launch.seconds for launch in new_launches)
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
