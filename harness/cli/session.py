"""A run from its first step to its last: prepare, launch, report, exit code."""

import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import __version__, shipped
from harness.cli import building, gate, gpus, problems
from harness.cli.choice import BackendName, announce, choose
from harness.cli.gate import FailOn
from harness.cli.interruption import interruptible
from harness.cli.jobs import JobMaker
from harness.cli.request import Prepared, Request, prepare
from harness.machine import cpus, host, topology
from harness.machine.lock import exclusive, machine_to_itself
from harness.model.cell import Cell
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError, Exit, UnavailableError, UsageError
from harness.model.gpu import Card, GpuHost
from harness.model.job import Limits
from harness.model.launch import BROKEN, Launch
from harness.model.run import Group, Run, Unavailable
from harness.plan.groups import control

if TYPE_CHECKING:
    from harness.machine.gpu.watch import Watch
    from harness.model.backend import Backend
    from harness.store.folder import RunFolder


def measure(
    request: Request, backend_name: BackendName, results: Path, *, json: bool, fail_on: FailOn | None = None
) -> Exit:
    """Do what was asked, in a new run's folder. Returns the exit code."""
    prepared = prepare(request)
    with machine_to_itself():
        code = _walk(begin(request, prepared, backend_name, results), finished=[], json=json, fail_on=fail_on)
    return problems.exit_code(prepared.refused, code)


@dataclass(frozen=True, slots=True)
class Session:
    """A run that is ready to be launched."""

    folder: "RunFolder"
    run: Run
    requirements: Mapping[str, Requirement]
    jobs: JobMaker
    backend: "Backend"
    watch: "Watch | None"


def begin(request: Request, prepared: Prepared, backend_name: BackendName, results: Path) -> Session:
    """Choose the backend, prepare the environments, and make the run's folder; nothing is launched yet."""
    from harness.cli import preflight
    from harness.store.folder import RunFolder

    now = datetime.now(UTC)
    identity = f"{now:%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"
    backend, why = choose(
        backend_name,
        prepared.project.root,
        identity,
        strangers=prepared.has_strangers,
        gpus=prepared.plan.limits.gpus,
    )
    announce(why)
    if prepared.plan.limits.gpus:
        preflight.check(prepared.project.root, prepared.needed, prepared.cards, _say)
    folder = RunFolder.create(results, identity)
    try:
        with interruptible(), building.show() as progress:
            images = backend.prepare(prepared.needed, progress)
    except BaseException:
        folder.discard()
        raise
    prepared = _without_unavailable(prepared, images)
    requirements = prepared.requirements
    jobs = JobMaker(prepared.project, prepared.scenarios, prepared.plan.limits)
    run = Run(
        id=identity,
        started=now.isoformat(timespec="seconds"),
        command=["harness", *sys.argv[1:]],
        harness=__version__,
        plan=prepared.plan,
        reference=prepared.reference,
        environments=prepared.environments,
        scenarios=list(prepared.scenarios.values()),
        backend={"name": backend.name, "why": why, **backend.facts()},
        host=_host(prepared.plan.limits, prepared.cards, prepared.gpu_host),
        folder=str(folder.path),
        commit=_commit(prepared.project.root),
        suite=request.suite,
        images={name: image for name, image in images.items() if isinstance(image, str)},
        pins={name: requirement.lock.pins for name, requirement in requirements.items()},
        sources=jobs.sources(),
    )
    folder.write_run(run)
    return Session(folder, run, requirements, jobs, backend, gpus.watch(prepared.cards, prepared.gpu_host))


def resume(path: Path, backend_name: BackendName, *, json: bool, fail_on: FailOn | None = None) -> Exit:
    """Go on with the run in a folder. Raises UsageError where what it measures has changed since it began."""
    with machine_to_itself():
        return _resume(path, backend_name, json=json, fail_on=fail_on)


def _resume(path: Path, backend_name: BackendName, *, json: bool, fail_on: FailOn | None) -> Exit:
    from harness.catalog.locks import load_lock
    from harness.catalog.project import Project
    from harness.store.folder import RunFolder

    folder = RunFolder.open(path)
    run = folder.read_run()
    if run.plan.profile_calls:
        raise UsageError(f"{path} holds profiles, and no measurement to go on with.", "Profile again: harness profile")
    project = Project.find()
    device = Device.GPU if run.plan.limits.gpus else Device.CPU
    requirements = {
        entry.name: load_lock(project, entry, device) for entry in run.environments if device in entry.devices
    }
    scenarios = {scenario.name: scenario for scenario in run.scenarios}
    jobs = JobMaker(project, scenarios, run.plan.limits)
    name = BackendName(str(run.backend["name"]))
    if backend_name not in (BackendName.AUTO, name):
        raise UsageError(f"{path} was begun with the backend {name.value}; it cannot go on with {backend_name.value}.")
    cards, gpu_host = gpus.found(run.plan.limits.gpus)
    changed = host.same_machine(dict(run.host), _host(run.plan.limits, cards, gpu_host))
    if changed:
        raise CannotRunHereError(
            f"{path} was begun on another machine: {', '.join(changed)} differ.", "Start a new run."
        )
    different = [name for name, digest in jobs.sources().items() if run.sources.get(name) != digest]
    if different:
        raise UsageError(
            f"Since {path} was begun, the scenario {', '.join(different)} has changed.", "Start a new run."
        )
    # the backend is the one that the run was begun with: a stranger's program was allowed or refused then
    backend, why = choose(name, project.root, run.id, strangers=False, gpus=run.plan.limits.gpus)
    announce(why)
    with interruptible(), building.show() as progress:
        images = backend.prepare([requirements[entry] for entry in run.images], progress)
    moved = [entry for entry, image in run.images.items() if images.get(entry) != image]
    if moved:
        raise UsageError(f"Since {path} was begun, the image of {', '.join(moved)} has changed.", "Start a new run.")
    session = Session(folder, run, requirements, jobs, backend, gpus.watch(cards, gpu_host))
    return _walk(session, finished=None, json=json, fail_on=fail_on)


def _walk(session: Session, *, finished: list[Launch] | None, json: bool, fail_on: FailOn | None) -> Exit:
    """Launch what `finished` does not hold (None: what is stored, of a run to go on with), and report."""
    from harness.analysis import precision
    from harness.cli import progress, report
    from harness.machine.cpus import keeping_off
    from harness.runner.rounds import Ledger
    from harness.runner.stopping import stops
    from harness.runner.walk import Walk

    folder, plan, backend = session.folder, session.run.plan, session.backend
    widths = partial(precision.widths, session.run)
    again = f"harness matrix --resume {shlex.quote(str(folder.path))}"
    interrupted = False
    with exclusive(folder.path / ".lock", f"{folder.path} is being measured."):
        if finished is None:
            backend.clean(session.run.id)
            folder.repair()
            finished = folder.read_launches()
        try:
            with interruptible(), keeping_off(plan.limits.cpus), progress.show(plan) as listener:
                walk = Walk(plan, folder, backend, session.requirements, session.jobs, listener, widths, session.watch)
                walk.run(finished)
        except KeyboardInterrupt:
            interrupted = True
            backend.clean(session.run.id)
        ended = stops(plan, Ledger(plan, folder.read_launches()), widths, interrupted=interrupted)
        folder.write_run(replace(session.run, stops=ended))
    if json:
        sys.stdout.write((folder.path / "launches.jsonl").read_text(encoding="utf-8"))
    report.write(folder, show=not json)
    if interrupted:
        _say(f"Interrupted. Go on with: {again}")
        return Exit.INTERRUPTED
    launches = folder.read_launches()
    return _exit(launches) or (gate.check(session.run, launches) if fail_on else Exit.OK)


def _host(limits: Limits, cards: Sequence[Card], gpu_host: GpuHost) -> dict[str, Any]:
    """What run.json tells of this machine; of its GPUs where launches get some."""
    of_gpus = gpus.facts(cards, gpu_host) if limits.gpus else {}
    return {**host.facts(), "pinned_to": _pinned(limits.cpus), **of_gpus}


def _pinned(chosen: tuple[int, ...] | None) -> str:
    """What the launches' CPUs share with others; empty where they are not pinned."""
    return cpus.describe(chosen, topology.read(), os.sched_getaffinity(0))


def _exit(launches: list[Launch]) -> Exit:
    return Exit.CELLS_FAILED if any(launch.status in BROKEN for launch in launches) else Exit.OK


def _without_unavailable(prepared: Prepared, images: dict[str, str | Exception]) -> Prepared:
    """The plan less the environments that this machine cannot have; their cells are not available, with the reason."""
    missing = {name: error for name, error in images.items() if isinstance(error, UnavailableError)}
    if not missing:
        return prepared
    plan = prepared.plan
    gone = [cell for cell in plan.cells if cell.environment in missing]
    unavailable = [
        Unavailable(cell=cell, reason=missing[cell.environment].message, advice=missing[cell.environment].advice)
        for cell in gone
    ]
    for name, error in missing.items():
        _say(f"{name} is not available here: {error}")
    groups = [_less(group, set(gone), prepared.reference) for group in plan.groups]
    kept = [group for group in groups if group.cells]
    return replace(prepared, plan=replace(plan, groups=kept, unavailable=[*plan.unavailable, *unavailable]))


def _less(group: Group, gone: set[Cell], reference: str) -> Group:
    cells = [cell for cell in group.cells if cell not in gone]
    return replace(group, cells=cells, control=control(cells, reference))


def _commit(root: Path) -> str:
    """The project's git commit, with `+` where the work tree differs; empty outside a checkout."""
    if shipped.IS_INSTALLED and root == shipped.FOLDER:
        return ""  # whatever repository the installation lies in, it is not the harness's
    try:
        git = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _say(line: object) -> None:
    print(line, file=sys.stderr, flush=True)
