"""Executes runs, from the preparation of environments to the report: measuring, resuming and profiling."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from harness import __version__
from harness.analysis import sizing
from harness.analysis.looks import find_first_looks
from harness.analysis.results import Results
from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.files import get_data_dir, hash_files
from harness.machine import cpus, host
from harness.machine.gpu import clocks
from harness.machine.gpu import selection as gpus
from harness.machine.gpu.host import keep_driver_loaded
from harness.machine.identity import load_machine
from harness.machine.lock import hold_lock, hold_machine, hold_run_lock, hold_slot
from harness.machine.slots import Slot
from harness.model.backend import (
    Backend,
    BackendFacts,
    GpuWay,
    Meanwhile,
    Preparation,
    PreparationStep,
    Progress,
    Supply,
)
from harness.model.environment import Device, Environment, Requirement, name_on
from harness.model.errors import CannotRunHereError, FileError, NothingPreparedError, UnavailableError
from harness.model.gpu import Gpu
from harness.model.launch import BROKEN, Launch, Limits, Status
from harness.model.run import RULES, Machine, Plan, Run, Stop, StopReason, describe_fallbacks
from harness.model.texts import joined, remove_password
from harness.plan.gpus import find_first_starts, fit
from harness.project import Project
from harness.report.sections import run_info
from harness.runner.executor import RunExecutor, WalkListener
from harness.runner.launching import LaunchMonitor, Watch
from harness.runner.rounds import RoundLog
from harness.runner.schedule import limit_to_budget
from harness.runner.stop_rules import find_stops
from harness.session.early_pilots import Pilots
from harness.session.images import keep_gpu_code
from harness.session.jobs import JobMaker
from harness.session.planning.plan import replace_fallbacks
from harness.session.planning.planned import Planned, drop_environments, set_environments
from harness.session.reporting import Written, load_results, report
from harness.session.resuming import Earlier, find_slot, load_earlier, make_changed_error, read_machine_facts
from harness.session.slot_plans import limit_to_slot
from harness.store.folder import RunFolder

#: The share of the free memory that the interleaved launches of all slots may use together.
HELD_SHARE = 0.5


class Listener(WalkListener):
    """Receives the events of a run, and ignores them. Override the methods that you need.

    `preparing` and `launching` are context managers that enclose a whole stage, for example to show a progress bar.
    The object that they yield receives the events of that stage. By default, it is this listener.
    """

    def say(self, sentence: str) -> None:
        """Receive a message for the user, such as the name of the selected backend."""

    def step(self, step: PreparationStep) -> None:
        """Receive a step of the preparation of an environment."""

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        """Enclose the preparation of the environments."""
        yield self.step

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Enclose the launches of a run, whose folder already exists."""
        yield self


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


@dataclass(frozen=True, slots=True)
class _ReadyRun:
    """A run that is ready to launch.

    `finished` are its earlier launches. If it is None, they are read from the folder. `is_longer` is true if the plan
    is longer than the plan in the folder.
    """

    folder: RunFolder
    run: Run
    requirements: Mapping[str, Requirement]
    jobs: JobMaker
    backend: Backend
    watch: Watch | None
    finished: list[Launch] | None = None
    is_longer: bool = False


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
        ready = _start_run(planned, command, observer, resources, max(1, len(slots)))
        return _execute_run(ready, observer, planned.refused)


def _take_slot(resources: ExitStack, slots: Sequence[Slot], report_wait: Callable[[str], object] | None) -> Slot:
    """Hold a free slot until `resources` are released. Keep this process on its CPUs, away from other slots."""
    slot = slots[resources.enter_context(hold_slot([candidate.names for candidate in slots], report_wait))]
    resources.enter_context(cpus.run_on_cpus(slot.cpus))
    return slot


def prepare(planned: Planned, listener: Listener, *, wait: bool = False) -> dict[str, UnavailableError]:
    """Prepare the environments of a plan under the machine's lock. Return the unavailable ones with their errors.

    The listener gets messages about unavailable environments. Raises the errors of `run`.
    """
    untrusted, gpu_way = planned.untrusted, planned.request.gpu_via
    name, gpus_ = planned.request.backend, planned.plan.limits.gpus
    backend, _ = registry.choose(name, planned.project.root, "", untrusted=untrusted, gpus=gpus_, via=gpu_way)
    if not backend.unprepared(planned.needed):
        return {}
    with hold_machine(listener.say if wait else None):
        backend.check_room(planned.needed)
        unavailable = dict(_prepare_environments(backend, planned.needed, listener).unavailable)
    for sentence in _explain_unavailable(unavailable):
        listener.say(sentence)
    return unavailable


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
        return (
            _report_again(earlier_run, observer)
            if earlier_run.over
            else _execute_run(_reopen_run(earlier_run, observer, resources), observer, {})
        )


def _report_again(earlier_run: Earlier, listener: Listener) -> Ended:
    """Write the reports of a run that has nothing left to measure, and notify the listener."""
    listener.say(earlier_run.over)
    with hold_run(earlier_run.folder):
        earlier_run.folder.repair()  # the process may have been killed while it wrote the reports
        results = load_results(earlier_run.run, earlier_run.folder.read_launches(earlier_run.run))
        reports = report(earlier_run.folder, results)
    return Ended(earlier_run.folder.path, results, reports, interrupted=False, refused={})


def make_run_id(now: datetime) -> str:
    """Return a new id for a run that starts at this time."""
    return f"{now:%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"


def _start_run(
    planned: Planned, command: Sequence[str], listener: Listener, resources: ExitStack, slots: int
) -> _ReadyRun:
    """Create the folder of a new run, and prepare its environments. This launches no cell, except early pilots.

    `resources` are kept until the run has ended. `slots` is the number of the machine's slots.
    """
    root, limits, clock = planned.project.root, planned.plan.limits, planned.plan.lock_clocks
    _hold_gpus(resources, limits, planned.gpus, clock, listener)
    now = datetime.now(UTC)
    run_id = make_run_id(now)
    name = planned.request.backend
    untrusted, gpu_way = planned.untrusted, planned.request.gpu_via
    backend, reason = registry.choose(name, root, run_id, untrusted=untrusted, gpus=limits.gpus, via=gpu_way)
    listener.say(f"Backend: {reason}.")
    for sentence in filter(None, [planned.describe_rights(backend.name), *planned.line_sentences]):
        listener.say(sentence)
    planned.refuse_nothing()
    _announce_fallbacks(planned.plan, listener)
    lacks_python = any(not substitute.card for substitute in planned.plan.stand_ins)
    if lacks_python and (sentence := _suggest_environments(planned, backend)):
        listener.say(sentence)
    if limits.gpus:
        _try_gpus(backend, planned.needed, listener)  # before building images, with an existing image
    backend.check_room(planned.needed)
    if limits.gpus:
        for sentence in [*planned.first_starts, *gpus.list_sharing(planned.gpus)]:
            listener.say(sentence)
    folder = RunFolder.create(planned.request.results, run_id)
    try:
        jobs = JobMaker(planned.project, planned.scenarios, limits)
        pilots = Pilots(planned, run_id, backend, jobs)
        early_pilots = pilots if slots == 1 and pilots.can_run_early(planned.plan) else None
        planned, preparation = _prepare_available(planned, backend, listener, early_pilots, replan=slots == 1)
        planned.refuse_nothing()
        if planned.plan.stand_ins:  # the preparation may have replaced a fallback environment
            jobs = JobMaker(planned.project, planned.scenarios, limits)
        if limits.gpus:
            _try_gpus(backend, planned.needed, listener)
        if not planned.request.share:
            _give_priority(backend, limits, listener)
        facts = backend.facts()
        new_run = Run(
            id=run_id,
            started=now.isoformat(timespec="seconds"),
            command=[remove_password(word) for word in command or planned.request.command()],
            harness=__version__,
            plan=planned.plan,
            reference=planned.reference,
            environments=planned.environments,
            scenarios=list(planned.scenarios.values()),
            backend=replace(facts, why=reason),
            host=read_machine_facts(limits, planned.gpus, planned.gpu_host, clock),
            folder=str(folder.path),
            commit=_find_commit(planned.project),
            suite=planned.suite,
            images=preparation.images,
            pins={name: requirement.lock.pins for name, requirement in planned.requirements.items()},
            sources=jobs.hash_sources(),
            scripts=jobs.list_scripts(planned.project.scenario_folders),
            rules=RULES,
            own=jobs.hash_own_files(),
            kit=hash_files(jobs.kit),
            machine=_load_machine(facts, listener),
            slots=slots,
            slot_cpus=sorted(os.sched_getaffinity(0)) if slots > 1 else [],  # `_take_slot` keeps this process on them
        )
        folder.write_run(new_run, signed=True)
        finished_launches = pilots.store(folder)
    except BaseException:
        folder.discard()
        raise
    if not folder.is_from_here():
        listener.say(
            f"The secret that signs runs can't be saved in {get_data_dir()}. This run can't be continued (--resume) "
            "after it ends."
        )
    watch = gpus.choose_monitor(planned.gpus)
    return _ReadyRun(folder, new_run, planned.requirements, jobs, backend, watch, finished_launches)


def _prepare_available(
    planned: Planned, backend: RegisteredBackend, listener: Listener, early_pilots: Meanwhile | None, *, replan: bool
) -> tuple[Planned, Preparation]:
    """Prepare the environments. Return the plan with those that are available here, and the preparation.

    `early_pilots` is called with each available environment while others are being prepared. If `replan` is true, the
    next environment in the suite's list replaces an unavailable fallback environment.
    """
    unavailable: dict[str, UnavailableError] = {}
    while True:
        try:
            preparation = _prepare_environments(backend, planned.needed, listener, early_pilots)
        except NothingPreparedError as error:
            error.advice = "\n".join(filter(None, [error.advice, _suggest_environments(planned, backend)]))
            raise
        for sentence in _explain_unavailable(preparation.unavailable):
            listener.say(sentence)
        unavailable |= preparation.unavailable
        new_plan = replace_fallbacks(planned, unavailable) if replan else None
        if new_plan is None:
            planned, refused = _read_gpu_code(planned, unavailable, backend, listener)
            return drop_environments(planned, {**preparation.unavailable, **refused}), preparation
        planned = new_plan
        _announce_fallbacks(planned.plan, listener)


def _read_gpu_code(
    planned: Planned, unavailable: Container[str], backend: RegisteredBackend, listener: Listener
) -> tuple[Planned, dict[str, UnavailableError]]:
    """Read and save the GPU code of wheels that are newer than the catalog.

    Return the plan with this code, and errors for the wheels that can't run on the GPU.
    """
    actual: dict[str, Environment] = {}
    for requirement in planned.needed:
        name = requirement.environment.name
        if requirement.device is Device.CPU or not requirement.environment.is_unread or requirement.name in unavailable:
            continue
        try:
            verification = backend.verify(requirement)
        except CannotRunHereError as error:
            listener.say(f"The GPU code of {name} could not be read: {error.message}")
            continue
        if verification.read is not None:
            keep_gpu_code(verification)
            actual[name] = verification.read
            listener.say(f"GPU code of {name}: {verification.read.gpu_code}.")
    if not actual:
        return planned, {}
    new_planned, refused = set_environments(planned, actual)
    for sentence in _explain_unavailable(refused):
        listener.say(sentence)
    return new_planned, refused


def _explain_unavailable(unavailable: Mapping[str, UnavailableError]) -> Iterator[str]:
    """Yield a sentence for each reason, with the environments that aren't available."""
    by_reason: dict[str, list[str]] = {}
    for environment, error in unavailable.items():
        by_reason.setdefault(str(error), []).append(environment)
    for reason, names in by_reason.items():
        yield f"{joined(names)} {'is' if len(names) == 1 else 'are'} not available here: {reason}"


def _suggest_environments(planned: Planned, backend: RegisteredBackend) -> str:
    """Return a sentence about environments that this machine can create, with a command; empty if there are none.

    In a container that can't create any environment, the sentence recommends another container image.
    """
    device, devices = Device.GPU if planned.plan.limits.gpus else Device.CPU, planned.plan.devices
    candidates = [
        environment
        for environment in load_environments(planned.project).values()
        if set(devices) <= set(environment.devices)
        and not fit(environment, planned.gpus, planned.gpu_host).is_impossible
    ]

    def is_here(environment: Environment) -> bool:
        return backend.supply(load_lock(planned.project, environment, device)) is Supply.HERE

    usable_names = [environment.name for environment in candidates if is_here(environment)]
    if usable_names:
        command = replace(planned.request, environments=usable_names[-2:], reference="").command()
        return f"This machine can create {joined(usable_names)}. Example: {shlex.join(command)}"
    if not candidates or not host.detect_container() or registry.is_contained(backend.name):
        return ""
    python = max(candidates, key=lambda environment: environment.release).python
    names = [environment.name for environment in candidates if environment.python == python]
    return f"Use a container image with Python {python}, such as python:{python}-slim, for {joined(names)}."


def _reopen_run(earlier_run: Earlier, listener: Listener, resources: ExitStack) -> _ReadyRun:
    """Prepare to resume a run. `resources` are kept until the run has ended.

    Raises UsageError if a file or image of the run has changed.
    """
    stored_run, planned, path = earlier_run.run, earlier_run.planned, earlier_run.folder.path
    limits, cards, root = stored_run.plan.limits, planned.gpus, planned.project.root
    jobs = JobMaker(planned.project, planned.scenarios, limits)
    _hold_gpus(resources, limits, cards, stored_run.plan.lock_clocks, listener)
    # use the original backend, because the decision to run an untrusted script was made for it
    gpu_way = next((way for way in GpuWay if way.words == stored_run.backend.gpus_by), None)
    backend, reason = registry.choose(
        stored_run.backend.name, root, stored_run.id, gpus=limits.gpus, via=gpu_way, is_resumed=True
    )
    listener.say(f"Backend: {reason}.")
    _announce_fallbacks(stored_run.plan, listener)
    requirements = [planned.requirements[name] for name in stored_run.images]
    preparation = _prepare_environments(backend, requirements, listener)
    if limits.gpus:
        _try_gpus(backend, requirements, listener)
    if stored_run.backend.priority:  # new launches get the same priority as earlier ones
        _give_priority(backend, limits, listener)
    changed_names = [name for name, image in stored_run.images.items() if preparation.images.get(name) != image]
    if changed_names:
        raise make_changed_error(path, f"the image of {', '.join(changed_names)}")
    watch = gpus.choose_monitor(cards)
    return _ReadyRun(
        earlier_run.folder, stored_run, planned.requirements, jobs, backend, watch, is_longer=earlier_run.is_longer
    )


def _announce_fallbacks(plan: Plan, listener: Listener) -> None:
    sentence = describe_fallbacks(plan.stand_ins)
    if sentence:
        listener.say(sentence)


def _execute_run(ready: _ReadyRun, listener: Listener, refused_scenarios: Mapping[str, FileError]) -> Ended:
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
    ready: _ReadyRun, listener: Listener
) -> tuple[Run, list[Launch], KeyboardInterrupt | CannotRunHereError | None]:
    """Run the missing launches, and record how the groups ended.

    Return the run, its launches, and the error that ended the run early, or None.
    """
    folder, plan, backend, finished_launches = ready.folder, ready.run.plan, ready.backend, ready.finished
    widths, pairs = partial(sizing.widths, ready.run), sizing.pairs(ready.run)
    run_so_far = ready.run
    end: KeyboardInterrupt | CannotRunHereError | None = None
    if finished_launches is None:
        _remove_leftovers(backend, run_so_far.id, listener)
        folder.repair()
        if ready.is_longer:
            folder.write_run(run_so_far, signed=True)
        finished_launches = folder.read_launches(run_so_far)

    def watch(monitor: Watch | None) -> Watch | None:
        return partial(LaunchMonitor, {"slots": run_so_far.slots}, monitor) if run_so_far.slots > 1 else monitor

    starts = cpus.choose_starting_cpus(plan.limits.cpus, os.sched_getaffinity(0)) if backend.can_move() else ()
    try:
        with cpus.keep_process_off(plan.limits.cpus):
            _run_first_starts(ready, listener)
        with cpus.keep_process_off(plan.limits.cpus), listener.launching(run_so_far) as walk_listener:
            free_memory = run_so_far.backend.memory_bytes if run_so_far.backend.is_remote else host.read_free_memory()
            executor = RunExecutor(
                plan,
                folder,
                backend,
                ready.requirements,
                ready.jobs,
                walk_listener,
                widths,
                watch(None),
                HELD_SHARE * free_memory / run_so_far.slots,
                looks=find_first_looks(run_so_far, plan),
                pairs=pairs,
                starts=starts,
                gpu_watch=watch(ready.watch),
            )
            if plan.profile_calls:
                executor.profile()
            else:
                executor.run(finished_launches)
    except (KeyboardInterrupt, CannotRunHereError) as error:
        if _is_second_interruption(error):
            raise
        end = error
        _remove_leftovers(backend, run_so_far.id, listener)
    launches = folder.read_launches(run_so_far)
    if not plan.profile_calls:
        limited_plan, names = limit_to_budget(plan, launches, pairs), [group.name for group in plan.groups]
        by_group = find_stops(limited_plan, RoundLog(limited_plan, launches), widths, interrupted=end is not None)
        complete_groups = {group.name for group in limited_plan.groups if group in plan.groups}
        stops = {name: _choose_stop(by_group.get(name), is_whole=name in complete_groups) for name in names}
        run_so_far = replace(run_so_far, stops=stops)
        folder.write_run(run_so_far, signed=True)
    return run_so_far, launches, end


def _run_first_starts(ready: _ReadyRun, listener: Listener) -> None:
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


def _choose_stop(stop: Stop | None, *, is_whole: bool) -> Stop:
    """Return how a group ended. If cells of the group were left out, the reason is the budget."""
    if stop is None:
        return Stop(StopReason.BUDGET, 0)
    return stop if is_whole or stop.reason is not StopReason.ROUNDS else replace(stop, reason=StopReason.BUDGET)


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


def _try_gpus(backend: RegisteredBackend, requirements: Sequence[Requirement], listener: Listener) -> None:
    for sentence in backend.try_gpus([requirement for requirement in requirements if requirement.device is Device.GPU]):
        listener.say(sentence)


def _give_priority(backend: RegisteredBackend, limits: Limits, listener: Listener) -> None:
    """Give pinned launches priority on their CPUs. Launches on all CPUs get none, so that other work can run."""
    if limits.cpus:
        for sentence in backend.give_priority(limits.cpus):
            listener.say(sentence)


def _prepare_environments(
    backend: Backend, requirements: Sequence[Requirement], listener: Listener, early_pilots: Meanwhile | None = None
) -> Preparation:
    with listener.preparing() as progress:
        return backend.prepare(list(requirements), progress, early_pilots)


def _hold_gpus(resources: ExitStack, limits: Limits, cards: Sequence[Gpu], clock: str, listener: Listener) -> None:
    """Keep the GPUs' driver loaded, and their clocks locked if requested, until `resources` are released."""
    if limits.gpus:
        resources.enter_context(keep_driver_loaded(cards))
        resources.enter_context(clocks.lock_clocks(cards, clock))
    if clock:
        listener.say(f"The clocks of the GPUs are locked for this run, {run_info.clock(clock)}.")


def _load_machine(facts: BackendFacts, listener: Listener) -> Machine | None:
    """Return the id of this machine; None for a remote engine. If no id can be stored, report that and return None."""
    if facts.is_remote and "HARNESS_MACHINE_ID" not in os.environ:
        return None
    try:
        return load_machine()
    except CannotRunHereError as error:
        listener.say(f"{error} A history can't record which machine measured this run.")
        return None


def _find_commit(project: Project) -> str:
    """Return the git commit of the user's scenarios, or otherwise of the project; empty outside a repository.

    It ends with `+` if the working tree differs. The files of an installed harness aren't in a repository.
    """
    folders = [] if project.is_installed else [project.root]
    if project.own and project.own.is_dir():
        folders.insert(0, project.own)
    for folder in folders:
        with suppress(OSError, subprocess.SubprocessError):
            git = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
            return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return ""
