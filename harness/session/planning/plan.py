"""The steps from a request to a plan. Nothing is launched."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.backends import registry
from harness.machine import host
from harness.model.environment import Device
from harness.model.errors import UnavailableError
from harness.model.launch import Sampling
from harness.model.run import Plan
from harness.model.scenario import GPU_SUITE
from harness.plan.availability import list_compiled
from harness.plan.groups import group
from harness.project import Project
from harness.session.planning.cells import check_cells, select_cells, use_fallbacks
from harness.session.planning.draft import Draft
from harness.session.planning.inputs import load_scenarios, resolve_environments
from harness.session.planning.lengths import add_lengths
from harness.session.planning.machine import choose_machine
from harness.session.planning.parts import select_part
from harness.session.planning.planned import Planned, drop_environments
from harness.session.request import ProfileRequest, Request


def plan(
    request: Request | ProfileRequest,
    lacking: Mapping[str, UnavailableError] | None = None,
    *,
    say: Callable[[str], object] | None = None,
    wait: bool = False,
    builds: bool = True,
) -> Planned:
    """Plan a run for this machine. This launches nothing, and only writes locks and wheels to the user's cache.

    Wheels of sources are built, with a message to `say`. With `wait`, a build waits for the end of another run. Without
    `builds`, nothing is built: `say` gets a message about each missing wheel, and its environment has the packages of
    its base. Such a plan can't be run.
    `lacking` contains environments that turned out to be unavailable, with the reasons. Their cells are unavailable.
    If the default suite has nothing to compare on the GPUs, the suite GPU_SUITE is planned.

    Raises UsageError if the request is invalid, NothingSelectedError if it selects no cell, FileError if all selected
    scenarios have invalid files, UntrustedError if a build needs --trust, and CannotRunHereError if this machine
    doesn't have a requested GPU.
    """
    host.require_linux()
    project = Project.find()
    project = replace(project, architecture=registry.find_architecture(request.backend, project.root))
    draft = Draft(request=request, project=project, lacking=lacking or {})
    draft = choose_machine(draft)
    draft = load_scenarios(draft)
    draft = resolve_environments(draft, say, wait=wait, builds=builds)
    draft = select_cells(draft)
    draft = use_fallbacks(draft)
    draft = check_cells(draft, builds=builds)
    is_chosen = bool(request.suite or request.axes or draft.requested or draft.cells)
    if draft.gpus and not is_chosen and draft.suites.keys() >= {draft.suite, GPU_SUITE}:
        other = plan(replace(request, suite=GPU_SUITE), lacking, say=say, wait=wait, builds=builds)
        if other.plan.groups:
            (say or str)(f"On this GPU, the suite {draft.suite} has nothing to compare, so the suite is {GPU_SUITE}.")
            return other
    planned = drop_environments(_finish(draft), draft.lacking)
    return select_part(planned, request) if isinstance(request, Request) else planned


def _finish(draft: Draft) -> Planned:
    """Group the cells, and add the lengths. Raises UsageError for options that can't be combined."""
    request, scenarios = draft.request, draft.catalog.scenarios
    gpu_names = {cell.environment: None for cell in draft.cells if cell.device is Device.GPU}
    new_plan = Plan(
        groups=group(draft.cells, scenarios, draft.reference),
        rounds=0,
        seed=int.from_bytes(os.urandom(4)) if request.seed is None else request.seed,
        sampling=Sampling(),
        limits=draft.limits,
        unavailable=list(draft.unavailable),
        stand_ins=list(draft.fallbacks),
        compiled=list_compiled((draft.environments[name] for name in gpu_names), draft.gpus, draft.gpu_host),
    )
    if isinstance(request, Request):
        new_plan = add_lengths(new_plan, request, draft.suites.get(draft.suite), draft.claims)
    elif isinstance(request, ProfileRequest):  # every cell once, without rounds
        groups = [replace(planned_group, control=None) for planned_group in new_plan.groups]
        new_plan = replace(new_plan, groups=groups, profile_calls=request.calls)
    return Planned(
        request=request,
        suite=draft.suite,
        project=draft.project,
        plan=new_plan,
        environments=[draft.environments[name] for name in draft.names],
        requirements=draft.requirements,
        scenarios=draft.used,
        reference=draft.reference,
        gpu_host=draft.gpu_host,
        gpus=draft.gpus,
        refused=draft.refused,
        packages=draft.packages,
    )
