"""Early pilots: pilots that run in available environments while the images of other environments are being built."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import monotonic

from harness.machine import cpus
from harness.machine.lock import hold_run_lock
from harness.model.backend import Backend, PreparationStep, Progress, Stage
from harness.model.launch import BESIDE_BUILDS, Launch, Status
from harness.model.run import Plan
from harness.model.scenario import Cell
from harness.model.texts import counted
from harness.runner.executor import RunExecutor, WalkListener
from harness.runner.launching import LaunchMonitor, LaunchSlot
from harness.session.jobs import JobMaker
from harness.session.planning.planned import Planned
from harness.store.folder import RunFolder


class Pilots:
    """Launches the pilots of each environment that it is called with, and stores them when the run has started.

    Builds interfere with launches that run at the same time. So only pilots run early, because no statistic uses their
    times, and only if they don't determine the lengths of launches. On GPUs, pilots don't run early, because a cell's
    first launch is profiled.
    """

    def __init__(self, planned: Planned, run: str, backend: Backend, jobs: JobMaker) -> None:
        self._planned, self._run, self._backend, self._jobs = planned, run, backend, jobs
        self._memory_store = _MemoryStore()

    @staticmethod
    def can_run_early(plan: Plan) -> bool:
        """Return whether pilots can run during builds.

        They must wait if the plan has a fallback environment, because another environment may still replace it.
        """
        is_measured = plan.profile_calls is None and not plan.sampling.is_open
        return is_measured and not plan.limits.gpus and not plan.stand_ins

    def __call__(self, environment: str, progress: Progress, is_making: Callable[[], bool]) -> None:
        """Launch the pilots of an environment as long as `is_making` returns True, and report the steps.

        Raises the errors of launches.
        """
        plan, start, earlier_count = self._planned.plan, monotonic(), len(self._memory_store.launches)
        executor = RunExecutor(
            plan,
            self._memory_store,
            self._backend,
            self._planned.requirements,
            self._jobs,
            _PilotReporter(progress),
            widths=lambda _: {},
            watch=partial(LaunchMonitor, {BESIDE_BUILDS: 1.0}),
        )
        with hold_run_lock(self._run), cpus.keep_process_off(plan.limits.cpus):
            for pilot_plan in _plan_pilots(plan, environment):
                if is_making():  # a pilot during builds doesn't make the run longer
                    replace(executor, plan=pilot_plan).run([])
        count = len(self._memory_store.launches) - earlier_count
        if count:
            message = f"{counted(count, 'pilot')} in {monotonic() - start:.0f} s, while other images are prepared"
            progress(PreparationStep(environment, message, Stage.READY))

    def store(self, folder: RunFolder) -> list[Launch]:
        """Store the launches in the folder of the run, which has started, and return them."""
        return self._memory_store.store(folder)


def _plan_pilots(plan: Plan, environment: str) -> Iterator[Plan]:
    """Yield a plan for each pilot of the cells in one environment."""
    for group in plan.groups:
        cells = [cell for cell in group.cells if cell.environment == environment]
        if cells:
            pilot_group = replace(group, cells=cells, control=None)
            yield replace(plan, groups=[pilot_group], rounds=0, claims=[], budget_seconds=None)


class _PilotReporter(WalkListener):
    """Reports pilots as steps of the preparation of their environment."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def begin(self, cell: Cell, number: int) -> None:
        """Report the start of a pilot."""
        self._progress(PreparationStep(cell.environment, f"pilot: {cell}"))

    def end(self, launch: Launch) -> None:
        """Report a failed pilot. Success isn't reported."""
        if launch.status is not Status.OK:
            message = f"pilot: {launch.cell}: {launch.status.value}"
            self._progress(
                PreparationStep(launch.cell.environment, f"{message}: {launch.error}" if launch.error else message)
            )


class _MemoryStore:
    """Stores launches in memory, so that a run leaves no files if it is interrupted before its start."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self._artifacts: list[Mapping[str, bytes]] = []

    def write_artifacts(self, launch: str, artifacts: Mapping[str, bytes]) -> list[str]:
        """Store the artifacts of the next launch."""
        self._artifacts.append(artifacts)
        return []

    def append(self, launch: Launch) -> None:
        """Store a launch."""
        self.launches.append(launch)

    def store(self, folder: RunFolder) -> list[Launch]:
        """Store all launches in a run's folder, and return them with the paths of their artifacts."""
        stored_launches: list[Launch] = []
        for launch, artifacts in zip(self.launches, self._artifacts, strict=True):
            # each pilot was the first launch of its walk, and would overwrite the artifacts of another one
            order = sum(other.group == launch.group for other in stored_launches)
            slot = LaunchSlot(launch.group, launch.round, launch.attempt, order, launch.role)
            paths = folder.write_artifacts(slot.folder, artifacts)
            stored_launches.append(replace(launch, order=order, artifacts=paths))
            folder.append(stored_launches[-1])
        return stored_launches
