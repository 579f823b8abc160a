"""The last step of a plan: the part that this machine measures."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.model.errors import UsageError
from harness.model.launch import Role, Status
from harness.model.run import Group, Shard
from harness.plan import shards
from harness.plan.groups import group
from harness.session.options import EVENLY
from harness.session.planning.planned import Planned
from harness.session.request import Request
from harness.store.folder import RunFolder, pause_garbage_collection


def select_part(planned: Planned, request: Request) -> Planned:
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
