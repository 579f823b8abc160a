"""Shards of a plan: assigns groups to shards, and identifies the plan that shards come from.

Each shard is a run on another machine. Shards contain whole groups, because the cells of a group are compared with each
other.
"""

import hashlib
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.model.run import Group, Plan, Shard


def assign_shards(groups: Sequence[str], of: int) -> dict[str, int]:
    """Return the shard of each group, from 1 to `of`. The hash of its number and the group's name is the highest.

    The result is the same on every machine, and doesn't depend on other groups. If you add a shard, a group stays in
    its shard or moves to the new shard. This is rendezvous hashing: D. G. Thaler and C. V. Ravishankar, "Using
    name-based mappings to increase hit rates", IEEE/ACM Transactions on Networking 6, 1998.
    """

    def weight(group: str, number: int) -> bytes:
        return hashlib.sha256(f"{number}/{group}".encode()).digest()

    return {group: max(range(1, of + 1), key=lambda number: weight(group, number)) for group in groups}


def balance_shards(
    seconds: Mapping[str, float | None], of: int, together: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return the shard of each group, so that all shards take about the same time. `seconds` has each group's duration.

    Groups with the same text in `together` stay in one shard, unless they take longer than an average shard. The units
    (groups that stay together, and other groups alone) are assigned in descending order of duration, each to the shard
    with the least time so far. For a group without a duration (None), the median of the other groups is used. The
    longest shard takes at most 4/3 of the best possible time for these units (R. L. Graham, "Bounds on multiprocessing
    timing anomalies", SIAM Journal on Applied Mathematics 17, 1969).
    """
    measured = [duration for duration in seconds.values() if duration is not None]
    median = statistics.median(measured) if measured else 1.0

    def total(groups: Iterable[str]) -> float:
        durations = (seconds[group] for group in groups)
        return math.fsum(median if duration is None else duration for duration in durations)

    candidates = defaultdict[str, list[str]](list)
    for group in seconds:
        candidates[(together or {}).get(group, group)].append(group)
    average = total(seconds) / of
    units: list[list[str]] = []
    for groups in candidates.values():
        units += [groups] if total(groups) <= average else [[group] for group in groups]
    loads = dict.fromkeys(range(1, of + 1), 0.0)
    shards = {}
    for unit in sorted(units, key=lambda unit: (-total(unit), min(unit))):
        number = min(loads, key=lambda number: (loads[number], number))
        shards.update(dict.fromkeys(unit, number))
        loads[number] += total(unit)
    return shards


def list_aspects(
    plan: Plan, *, harness: str, reference: str, sources: Mapping[str, str], packages: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Return the properties that are the same in all shards of a plan, as JSON values. The keys are used in messages.

    A shard's groups and the properties of its machine (memory, CPU and GPU numbers) aren't included.
    """
    return {
        "the version of harness": harness,
        "the seed": plan.seed,
        "the rounds": plan.rounds,
        "the precision": plan.precision,
        "the budget": plan.budget_seconds,
        "the margin": plan.margin,
        "the sampling": asdict(plan.sampling),
        "the clock": plan.clock.value,
        "the order of launches (--interleave)": plan.interleave.value,
        "the time limit": plan.limits.seconds,
        "the number of CPUs per launch": None if plan.limits.cpus is None else len(plan.limits.cpus),
        "the number of GPUs per launch": len(plan.limits.gpus),
        "the clocks of GPUs": plan.lock_clocks,
        "the claims": list(plan.claims),
        "the profiled calls": plan.profile_calls,
        "the reference": reference,
        "the scenarios or the kit": dict(sorted(sources.items())),
        "the locks": {name: dict(sorted(pins.items())) for name, pins in sorted(packages.items())},
    }


def cells_of(groups: Sequence[Group]) -> dict[str, list[str]]:
    """Return the cells of each group as sorted texts, which are the same on every machine."""
    return {
        group.name: sorted(json.dumps([*cell.key[:3], dict(cell.key[3])]) for cell in group.cells) for group in groups
    }


def plan_digest(properties: Mapping[str, Any], groups: Mapping[str, Sequence[str]], *, without: str = "") -> str:
    """Return 16 hexadecimal digits that identify a plan. They depend on `properties` and on the cells of all groups.

    `without` is a property that is left out.
    """
    document = [{name: value for name, value in properties.items() if name != without}, groups]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def shard(plan: Plan, number: int, of: int, places: Mapping[str, int], digest: str) -> Shard:
    """Return the record of a shard for its run. `places` contains the shards of all groups of the `plan`."""
    names = [group.name for group in plan.groups]
    return Shard(number, of, digest, {name: places[name] for name in names if places[name] != number})
