"""Executes runs, from the preparation of environments to the report: measuring, resuming and profiling."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.analysis import interval_widths
from harness.analysis.looks import find_first_looks
from harness.analysis.results import Results
from harness.backends import registry
from harness.machine import cpus, host
from harness.machine.lock import hold_lock, hold_machine, hold_run_lock, hold_slot, record_end
from harness.machine.slots import Slot
from harness.model.backend import Backend
from harness.model.environment import Device, name_on
from harness.model.errors import CannotRunHereError, FileError
from harness.model.launch import BROKEN, Launch, Status
from harness.model.run import Run, Stop, StopReason
from harness.plan.gpus import find_first_starts
from harness.runner.executor import RunExecutor, WalkListener
from harness.runner.rounds import RoundLog
from harness.runner.schedule import limit_to_budget
from harness.runner.stop_rules import find_stops
from harness.session.listener import Listener
from harness.session.planning.planned import Planned, drop_environments
from harness.session.preparing import prepare
from harness.session.reporting import Written, load_results, report
from harness.session.resuming import Earlier, find_slot, load_earlier
from harness.session.slot_plans import limit_to_slot
from harness.session.starting import ReadyRun, reopen_run, start_run
from harness.store.folder import RunFolder

#: The share of the free memory that the interleaved launches of all slots may use together.
HELD_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished or interrupted run.

    - `folder`: the folder of the run; `written`: its reports
    - `results`: the launches, comparisons and verdicts
    - `interrupted`: whether an interruption ended the run early
    - `broken_off`: another error that ended the run early, such as a Docker Engine that no longer responds
    - `refused`: selected scenarios with invalid files
    """

    folder: Path
    results: Results
    written: Written
    interrupted: bool
    refused: Mapping[str, FileError]
    broken_off: CannotRunHereError | None = None

    @property
    def broken(self) -> list[Launch]:
        """Failed launches that weren't repeated."""
        return [
            launch for launch in self.results.launches if launch.status in BROKEN and not launch.ended_under_profiler
        ]


def run(
    planned: Planned,
    listener: Listener | None = None,
    *,
    command: Sequence[str] = (),
    wait: bool = False,
    slots: Sequence[Slot] = (),
    at: int | None = None,
) -> Ended:
    """Prepare the environments, measure into a new folder, and write the reports.

    `command` is the command line that the report shows. By default, it is built from the request. Without `slots`, no
    other run measures on this machine at the same time. With `slots`, the run takes the first free slot, or the slot at
    index `at`, and other runs can measure in other slots.

    A KeyboardInterrupt ends the run early, with the finished launches. A second KeyboardInterrupt is raised. If Docker
    Engine stops responding after the first launch, the run ends early too.

    Raises CannotRunHereError if another run measures on this machine and `wait` is false, or if this machine can't run
    any cell. Raises UsageError if the backend doesn't support the request.
    """
    observer = listener or Listener()
    report_wait = observer.say if wait else None
    with ExitStack() as resources:
        if slots:
            # builds interfere with other slots, so they hold the machine's lock, and a failed build isn't repeated
            planned = drop_environments(planned, prepare(planned, observer, wait=wait))
            slot = _take_slot(resources, slots if at is None else slots[at : at + 1], report_wait)
            planned = limit_to_slot(planned, slot, len(slots))
        else:
            resources.enter_context(hold_machine(report_wait))
        ready = start_run(planned, command, observer, resources, max(1, len(slots)))
        return _execute_run(ready, observer, planned.refused)


def _take_slot(resources: ExitStack, slots: Sequence[Slot], report_wait: Callable[[str], object] | None) -> Slot:
    """Hold a free slot until `resources` are released. Keep this process on its CPUs, away from other slots."""
    slot = slots[resources.enter_context(hold_slot([candidate.names for candidate in slots], report_wait))]
    resources.enter_context(cpus.run_on_cpus(slot.cpus))
    return slot


def resume(
    folder: Path,
    listener: Listener | None = None,
    *,
    backend: str = "auto",
    wait: bool = False,
    rounds: int | None = None,
    budget: float | None = None,
    unsettled: bool = False,
) -> Ended:
    """Resume the run in a folder: as planned, up to `rounds` in total, or for `budget` more seconds.

    With `unsettled`, only groups with an unclear comparison get more rounds. If nothing is left to measure, the reports
    are written again, and the listener gets a message. Raises the errors of `run`, and UsageError if a scenario, an
    image or a package has changed since the start.
    """
    host.require_linux()
    observer = listener or Listener()
    report_wait = observer.say if wait else None
    with ExitStack() as resources:
        slot = find_slot(folder)
        if slot:
            _take_slot(resources, [slot], report_wait)
        else:
            resources.enter_context(hold_machine(report_wait))
        wished = registry.check_backend(backend)
        earlier_run = load_earlier(folder, wished, rounds=rounds, budget=budget, unsettled=unsettled)
        if earlier_run.over:
            return _report_again(earlier_run, observer)
        return _execute_run(reopen_run(earlier_run, observer, resources), observer, {})


def _report_again(earlier_run: Earlier, listener: Listener) -> Ended:
    """Write the reports of a run that has nothing left to measure, and notify the listener."""
    listener.say(earlier_run.over)
    with hold_run(earlier_run.folder):
        earlier_run.folder.repair()  # the process may have been killed while it wrote the reports
        results = load_results(earlier_run.run, earlier_run.folder.read_launches(earlier_run.run))
        reports = report(earlier_run.folder, results)
    return Ended(earlier_run.folder.path, results, reports, interrupted=False, refused={})


def _execute_run(ready: ReadyRun, listener: Listener, refused_scenarios: Mapping[str, FileError]) -> Ended:
    """Run the missing launches of a run, and write the reports."""
    folder = ready.folder
    with hold_run(folder):
        ended_run, launches, end = _run_launches(ready, listener)
        results = load_results(ended_run, launches)
        reports = report(folder, results)
    if isinstance(end, CannotRunHereError):
        return Ended(folder.path, results, reports, interrupted=False, refused=refused_scenarios, broken_off=end)
    return Ended(folder.path, results, reports, interrupted=end is not None, refused=refused_scenarios)


@contextmanager
def hold_run(folder: RunFolder) -> Iterator[None]:
    """Hold the locks of the folder and the run, so that no other process measures or cleans up this run."""
    with hold_lock(folder.path / ".lock", f"{folder.path} is being measured."), hold_run_lock(folder.path.name):
        yield


def _run_launches(
    ready: ReadyRun, listener: Listener
) -> tuple[Run, list[Launch], KeyboardInterrupt | CannotRunHereError | None]:
    """Run the missing launches, and record how the groups ended.

    Return the run, its launches, and the error that ended the run early, or None.
    """
    folder, plan, backend, finished_launches = ready.folder, ready.run.plan, ready.backend, ready.finished
    end: KeyboardInterrupt | CannotRunHereError | None = None
    if finished_launches is None:
        _remove_leftovers(backend, ready.run.id, listener)
        folder.repair()
        if ready.is_longer:
            folder.write_run(ready.run, signed=True)
        finished_launches = folder.read_launches(ready.run)
    try:
        with cpus.keep_process_off(plan.limits.cpus):
            _run_first_starts(ready, listener)
        with cpus.keep_process_off(plan.limits.cpus), listener.launching(ready.run) as walk_listener:
            began = time.time() - sum(launch.seconds for launch in finished_launches)
            executor = _make_executor(ready, walk_listener, began)
            if plan.profile_calls:
                executor.profile()
            else:
                executor.run(finished_launches)
    except (KeyboardInterrupt, CannotRunHereError) as error:
        if _is_second_interruption(error):
            raise
        end = error
        _remove_leftovers(backend, ready.run.id, listener)
    launches = folder.read_launches(ready.run)
    if plan.profile_calls:
        return ready.run, launches, end
    ended_run = replace(ready.run, stops=_find_stops(ready.run, launches, interrupted=end is not None))
    folder.write_run(ended_run, signed=True)
    return ended_run, launches, end


def _make_executor(ready: ReadyRun, walk_listener: WalkListener, began: float) -> RunExecutor:
    """Return the executor of the launches, with a share of the free memory for interleaved launches.

    `began` is the time of the first launch (`time.time()`), for the estimated end.
    """
    measured_run, plan, facts = ready.run, ready.run.plan, ready.run.backend
    free_memory = facts.memory_bytes if facts.is_remote else host.read_free_memory()
    return RunExecutor(
        plan,
        ready.folder,
        ready.backend,
        ready.requirements,
        ready.jobs,
        walk_listener,
        partial(interval_widths.widths, measured_run),
        HELD_SHARE * free_memory / measured_run.slots,
        looks=find_first_looks(measured_run),
        pairs=interval_widths.pairs(measured_run),
        starts=cpus.choose_starting_cpus(plan.limits.cpus, os.sched_getaffinity(0)) if ready.backend.can_move() else (),
        gpu_watch=ready.watch,
        record_end=lambda seconds: record_end(measured_run.id, began + seconds),
        facts={"slots": measured_run.slots} if measured_run.slots > 1 else {},
    )


def _find_stops(measured_run: Run, launches: Sequence[Launch], *, interrupted: bool) -> dict[str, Stop]:
    """Return how each group ended, by name. If cells of a group were left out, the reason is the budget."""
    plan, widths = measured_run.plan, partial(interval_widths.widths, measured_run)
    limited_plan = limit_to_budget(plan, launches, interval_widths.pairs(measured_run))
    by_group = find_stops(limited_plan, RoundLog(limited_plan, launches), widths, interrupted=interrupted)
    stops = {group.name: by_group.get(group.name, Stop(StopReason.BUDGET, 0)) for group in plan.groups}
    for group in plan.groups:
        if group not in limited_plan.groups and stops[group.name].reason is StopReason.ROUNDS:
            stops[group.name] = replace(stops[group.name], reason=StopReason.BUDGET)
    return stops


def _run_first_starts(ready: ReadyRun, listener: Listener) -> None:
    """Let the driver compile the GPU code of each environment that needs it, once and before any scenario runs."""
    for name in find_first_starts(ready.run.plan):
        listener.say(f"First start of {name}: the driver compiles its GPU code, unless an earlier run saved it.")
        requirement = ready.requirements[name_on(name, Device.GPU, ready.requirements)]
        outcome = ready.backend.launch(requirement, ready.jobs.make_first_start(name))
        if outcome.status is not Status.OK:
            listener.say(
                f"The first start of {name} failed ({outcome.status}): {outcome.error.rstrip('.')}. So the driver "
                "compiles the GPU code again for each scenario."
            )


def _remove_leftovers(backend: Backend, run: str, listener: Listener) -> None:
    """Remove the leftovers of launches. Only report errors, so that the results are still stored."""
    try:
        backend.clean(run)
    except CannotRunHereError as error:
        listener.say(f"{error}\nTo remove leftovers of the launches: harness clean {run}")


def _is_second_interruption(interruption: BaseException) -> bool:
    """Return whether the interruption came while another one was being handled."""
    earlier = interruption.__context__
    return earlier is not None and (isinstance(earlier, KeyboardInterrupt) or _is_second_interruption(earlier))
