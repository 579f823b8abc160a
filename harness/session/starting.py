"""Makes a run ready to launch: a new one, or one that is resumed."""

import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from harness import __version__
from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.files import get_data_dir, hash_files
from harness.machine.gpu import selection as gpus
from harness.machine.identity import load_machine
from harness.model.backend import Backend, BackendFacts, GpuWay
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import Launch
from harness.model.run import RULES, Machine, Run, describe_fallbacks
from harness.model.texts import remove_password
from harness.project import Project
from harness.runner.launching import Watch
from harness.session.jobs import JobMaker
from harness.session.listener import Listener
from harness.session.planning.planned import Planned
from harness.session.preparing import (
    give_priority,
    hold_gpus,
    prepare_available,
    prepare_environments,
    suggest_environments,
    try_gpus,
)
from harness.session.resuming import Earlier, make_changed_error, read_machine_facts
from harness.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class ReadyRun:
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


def make_run_id(now: datetime) -> str:
    """Return a new id for a run that starts at this time."""
    return f"{now:%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"


def start_run(
    planned: Planned, command: Sequence[str], listener: Listener, resources: ExitStack, slots: int
) -> ReadyRun:
    """Create the folder of a new run, and prepare its environments. This launches no cell.

    `resources` are kept until the run has ended. `slots` is the number of the machine's slots.
    """
    limits = planned.plan.limits
    hold_gpus(resources, limits, planned.gpus, planned.plan.lock_clocks, listener)
    now = datetime.now(UTC)
    run_id = make_run_id(now)
    backend, reason = _open_backend(planned, run_id, listener)
    folder = RunFolder.create(planned.request.results, run_id)
    try:
        planned, preparation = prepare_available(planned, backend, listener)
        planned.refuse_nothing()
        jobs = JobMaker(planned.project, planned.scenarios, limits)
        try_gpus(backend, planned.needed, listener)
        if not planned.request.share:
            give_priority(backend, limits, listener)
        facts = replace(backend.facts(), why=reason)
        new_run = replace(
            _describe_run(planned, run_id, now, jobs, facts),
            command=[remove_password(word) for word in command or planned.request.command()],
            folder=str(folder.path),
            images=preparation.images,
            machine=_load_machine(facts, listener),
            slots=slots,
            slot_cpus=sorted(os.sched_getaffinity(0)) if slots > 1 else [],  # `run` keeps this process on the slot
        )
        folder.write_run(new_run, signed=True)
    except BaseException:
        folder.discard()
        raise
    if not folder.is_from_here():
        listener.say(
            f"The secret that signs runs can't be saved in {get_data_dir()}. This run can't be continued (--resume) "
            "after it ends."
        )
    watch = gpus.choose_monitor(planned.gpus)
    return ReadyRun(folder, new_run, planned.requirements, jobs, backend, watch, finished=[])


def _open_backend(planned: Planned, run_id: str, listener: Listener) -> tuple[RegisteredBackend, str]:
    """Return the backend of a run and the reason for it, after the checks that need no environment.

    The listener gets messages about the backend and the environments. Raises CannotRunHereError.
    """
    backend, reason = planned.choose_backend(run_id)
    listener.say(f"Backend: {reason}.")
    for sentence in filter(None, [planned.describe_rights(backend.name), *planned.line_sentences]):
        listener.say(sentence)
    planned.refuse_nothing()
    if sentence := describe_fallbacks(planned.plan.stand_ins):
        listener.say(sentence)
    lacks_python = any(not substitute.card for substitute in planned.plan.stand_ins)
    if lacks_python and (sentence := suggest_environments(planned, backend)):
        listener.say(sentence)
    try_gpus(backend, planned.needed, listener)  # before building images, with an existing image
    backend.check_room(planned.needed)
    for sentence in [*planned.first_starts, *gpus.list_sharing(planned.gpus)]:
        listener.say(sentence)
    return backend, reason


def _describe_run(planned: Planned, run_id: str, now: datetime, jobs: JobMaker, facts: BackendFacts) -> Run:
    """Return a new run with the facts about its plan, its files and its machine."""
    plan = planned.plan
    return Run(
        id=run_id,
        started=now.isoformat(timespec="seconds"),
        command=[],
        harness=__version__,
        plan=plan,
        reference=planned.reference,
        environments=planned.environments,
        scenarios=list(planned.scenarios.values()),
        backend=facts,
        host=read_machine_facts(plan.limits, planned.gpus, planned.gpu_host, plan.lock_clocks),
        commit=_find_commit(planned.project),
        suite=planned.suite,
        pins={name: requirement.lock.pins for name, requirement in planned.requirements.items()},
        sources=jobs.hash_sources(),
        scripts=jobs.list_scripts(planned.project.scenario_folders),
        rules=RULES,
        own=jobs.hash_own_files(),
        kit=hash_files(jobs.kit),
    )


def reopen_run(earlier_run: Earlier, listener: Listener, resources: ExitStack) -> ReadyRun:
    """Prepare to resume a run. `resources` are kept until the run has ended.

    Raises UsageError if a file or image of the run has changed.
    """
    stored_run, planned, path = earlier_run.run, earlier_run.planned, earlier_run.folder.path
    limits, selected_gpus, root = stored_run.plan.limits, planned.gpus, planned.project.root
    jobs = JobMaker(planned.project, planned.scenarios, limits)
    hold_gpus(resources, limits, selected_gpus, stored_run.plan.lock_clocks, listener)
    # use the original backend, because the decision to run an untrusted script was made for it
    gpu_way = next((way for way in GpuWay if way.words == stored_run.backend.gpus_by), None)
    backend, reason = registry.choose(
        stored_run.backend.name, root, stored_run.id, gpus=limits.gpus, via=gpu_way, is_resumed=True
    )
    listener.say(f"Backend: {reason}.")
    if sentence := describe_fallbacks(stored_run.plan.stand_ins):
        listener.say(sentence)
    requirements = [planned.requirements[name] for name in stored_run.images]
    preparation = prepare_environments(backend, requirements, listener)
    try_gpus(backend, requirements, listener)
    if stored_run.backend.priority:  # new launches get the same priority as earlier ones
        give_priority(backend, limits, listener)
    changed_names = [name for name, image in stored_run.images.items() if preparation.images.get(name) != image]
    if changed_names:
        raise make_changed_error(path, f"the image of {', '.join(changed_names)}")
    watch = gpus.choose_monitor(selected_gpus)
    return ReadyRun(
        earlier_run.folder, stored_run, planned.requirements, jobs, backend, watch, is_longer=earlier_run.is_longer
    )


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
