"""The steps from a request to a plan, and the part of the plan that this machine measures. Nothing is launched."""

import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.backends import registry
from harness.machine import host
from harness.model.environment import Device
from harness.model.errors import UnavailableError, UsageError
from harness.model.launch import Role, Sampling, Status
from harness.model.run import Group, Plan, Shard
from harness.model.scenario import GPU_SUITE
from harness.plan import shards
from harness.plan.availability import list_compiled
from harness.plan.groups import group
from harness.project import Project
from harness.session.options import EVENLY
from harness.session.planning.cells import check_cells, select_cells, use_fallbacks
from harness.session.planning.draft import Draft
from harness.session.planning.inputs import choose_machine, load_scenarios, resolve_environments
from harness.session.planning.lengths import add_lengths
from harness.session.planning.planned import Planned, drop_environments
from harness.session.request import ProfileRequest, Request
from harness.store.folder import RunFolder, pause_garbage_collection


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
    say = say or (lambda _: None)
    project = Project.find()
    project = replace(project, architecture=registry.find_architecture(request.backend, project.root))
    draft = choose_machine(Draft(request=request, project=project))
    draft = load_scenarios(draft)
    draft = resolve_environments(draft, say, wait=wait, builds=builds)
    draft = select_cells(draft)
    draft = use_fallbacks(draft)
    draft = check_cells(draft, builds=builds)
    is_chosen = bool(request.suite or request.axes or draft.requested or draft.cells)
    if draft.gpus and not is_chosen and draft.suites.keys() >= {draft.suite, GPU_SUITE}:
        other = plan(replace(request, suite=GPU_SUITE), lacking, say=say, wait=wait, builds=builds)
        if other.plan.groups:
            say(f"On this GPU, the suite {draft.suite} has nothing to compare, so the suite is {GPU_SUITE}.")
            return other
    planned = drop_environments(_finish(draft), lacking or {})
    return _select_part(planned, request) if isinstance(request, Request) else planned


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


def _select_part(planned: Planned, request: Request) -> Planned:
    """Return the part of a plan that this machine measures, with one A/A control.

    If shards run in slots of one machine, only one shard has the control. The machines of a cluster get `--slots auto`
    (fleet/ray.py), so each of their shards has a control. In a plan for other machines, each group has a control.
    """
    if request.slots.isdecimal():
        planned = planned.with_one_control()
    part = _select_shard(planned, request, request.shard) if request.shard else planned
    return part if request.on or request.slots.isdecimal() else part.with_one_control()


def _select_shard(planned: Planned, request: Request, shard: Shard) -> Planned:
    """Return the requested shard of a plan. If this machine can't run any cell of a group, every shard reports that.

    Without --seed, all shards have the same seed, which is a hash of the plan.
    """
    if request.on:
        raise UsageError("--on divides a run into shards itself.", "Omit --shard.")
    plan, aspects = planned.plan, planned.aspects
    cells = [cell for cell in (*plan.cells, *(entry.cell for entry in plan.unavailable)) if planned.group_of(cell)]
    whole = group(cells, planned.scenarios, planned.reference)
    all_groups = shards.cells_of(whole)
    if request.seed is None:
        plan = replace(plan, seed=int(shards.plan_digest(aspects, all_groups, without="the seed")[:8], 16))
        planned = replace(planned, plan=plan)
        aspects = planned.aspects
    names = [planned_group.name for planned_group in plan.groups]
    if request.balance == EVENLY:  # all groups count, because other machines may be able to run other groups
        sizes = {name: len(members) for name, members in all_groups.items()}
        # a claim's outcome depends on the number of claims of its scenario in the run, so in a run of claims, a shard
        # has all groups of a scenario if the shards stay balanced
        scenarios = {planned_group.name: planned_group.scenario for planned_group in whole} if plan.claims else {}
        shard_numbers = shards.balance_shards(sizes, shard.of, scenarios)
        shard_numbers = {name: shard_numbers[name] for name in names}
    elif request.balance:
        shard_numbers = shards.balance_shards(_read_round_seconds(request.balance, plan.groups), shard.of)
    else:
        shard_numbers = shards.assign_shards(names, shard.of)
    part = planned.only([name for name in all_groups if shard_numbers.get(name, shard.number) == shard.number])
    new_shard = shards.shard(plan, shard.number, shard.of, shard_numbers, shards.plan_digest(aspects, all_groups))
    return replace(part, plan=replace(part.plan, shard=new_shard))


def _read_round_seconds(path: Path, groups: Sequence[Group]) -> dict[str, float | None]:
    """Return the seconds that a round of each group takes, from the run in a folder; None if the run has no such group.

    Raises UsageError if none of the groups is in the run.
    """
    with pause_garbage_collection():
        folder = RunFolder.open(path)
        launches = folder.read_launches(folder.read_run())
    seconds = defaultdict(list)
    for launch in launches:
        if launch.status is Status.OK and launch.role is not Role.PILOT:
            seconds[launch.cell].append(launch.seconds)
    typical_seconds = {cell: statistics.median(times) for cell, times in seconds.items()}

    def average_round(planned_group: Group) -> float | None:
        times = [typical_seconds[cell] for cell, _ in planned_group.slots if cell in typical_seconds]
        # assume that a cell without a result takes as long as the other cells of its group
        return statistics.fmean(times) * len(planned_group.slots) if times else None

    by_name = {planned_group.name: average_round(planned_group) for planned_group in groups}
    if groups and not any(by_name.values()):
        raise UsageError(
            f"--balance {path}: the run has no launches of this plan's groups.", "Omit --balance, or pass another run."
        )
    return by_name
