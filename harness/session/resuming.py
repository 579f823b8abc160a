"""Checks whether a stored run can be resumed on this machine, and for how long."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import registry
from harness.backends.registry import AUTO
from harness.catalog.locks import load_locks
from harness.catalog.project import Project
from harness.machine import cpus, host, topology
from harness.machine.gpu import selection as gpus
from harness.machine.slots import Slot
from harness.model.defaults import MOST_CLAIM_ROUNDS, MOST_ROUNDS
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.launch import Limits
from harness.model.run import Run, StopReason
from harness.model.texts import counted
from harness.report.sections import run_info
from harness.runner.rounds import RoundLog
from harness.session.jobs import JobMaker
from harness.session.planning import Planned
from harness.session.request import Request
from harness.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Earlier:
    """A stored run that can be resumed: its `folder`, the `run`, and its plan on this machine (`planned`).

    `is_longer` is true if the plan was extended. `over` is the reason if nothing is left to measure, as a sentence;
    otherwise it is empty.
    """

    folder: RunFolder
    run: Run
    planned: Planned
    is_longer: bool = False
    over: str = ""


def find_slot(path: Path) -> Slot | None:
    """Return the slot of this machine in which a run started; None for a run that had the whole machine.

    Raises UsageError if there is no run.
    """
    folder = RunFolder.open(path)
    begun = folder.read_run()
    limits = begun.plan.limits
    numbers = begun.slot_cpus or limits.cpus  # older runs recorded only the CPUs of launches
    if begun.slots == 1 or not numbers or not folder.is_from_here():
        return None
    return Slot(tuple(numbers), next(iter(limits.gpus), ""))


def load_earlier(path: Path, wished: str = AUTO, *, rounds: int | None = None, budget: float | None = None) -> Earlier:
    """Return the stored run in a folder, with a plan to resume it here. `wished` is the requested backend.

    The run continues as planned, up to `rounds` in total, or for `budget` more seconds. Raises UsageError if a file or
    package of the run has changed, or if the run already has more than `rounds` rounds. Raises CannotRunHereError on
    another machine.
    """
    folder = RunFolder.open(path)
    begun = folder.read_run()
    if begun.merged:
        raise UsageError(f"{path} was merged from other runs.", "Continue one of the merged runs, and merge again.")
    if not folder.is_from_here():
        raise UsageError(
            f"{path} wasn't started by this user on this machine, or its run.json has changed since. So continuing it "
            "could run another user's commands.",
            "Start your own run: harness matrix. To write the report of this run again: harness report "
            f"{shlex.quote(str(path))}",
        )
    if begun.plan.profile_calls:
        raise UsageError(
            f"{path} has profiles instead of measurements, and can't be continued.",
            "To profile again, run: harness profile",
        )
    asks = rounds is not None or budget is not None
    ledger = RoundLog(begun.plan, folder.read_launches(begun))
    longer = _extend_plan(begun, ledger, path, rounds, budget) if asks else begun
    over = _explain_end(begun, ledger, path) if longer == begun else ""
    is_longer, begun = longer != begun, longer
    project, limits = Project.find(), begun.plan.limits
    devices = begun.plan.devices
    requirements = {
        name: requirement
        for environment in begun.environments
        if environment.name in begun.pins or not environment.line
        for name, requirement in load_locks(project, environment, devices).items()
    }
    scenarios = {scenario.name: scenario for scenario in begun.scenarios}
    sources = JobMaker(project, scenarios, limits).hash_sources()
    name = begun.backend.name
    if wished not in (AUTO, name):
        raise UsageError(f"{path} was started with the backend {name}; it can't continue with {wished}.")
    gpu_host = registry.find_gpu_host(name, project.root) if limits.gpus else CPU_ALONE
    cards = gpus.select_gpus(limits.gpus, gpu_host)
    differing = host.find_differing(begun.host, read_machine_facts(limits, cards, gpu_host, begun.plan.lock_clocks))
    if differing:
        changes = "; ".join(run_info.format_change(*difference) for difference in differing)
        raise CannotRunHereError(f"{path} was started on another machine: {changes}.", "Start a new run.")
    moved = [scenario for scenario, digest in sources.items() if begun.sources.get(scenario) != digest]
    if moved:
        raise make_changed_error(path, f"the scenario {', '.join(moved)}")
    request = Request(
        backend=name,
        cpus="" if limits.gpus else "all" if limits.cpus is None else str(len(limits.cpus)),
        device=devices,
        results=path.parent,
    )
    planned = Planned(
        request=request,
        suite=begun.suite,
        project=project,
        plan=begun.plan,
        environments=begun.environments,
        requirements=requirements,
        scenarios=scenarios,
        reference=begun.reference,
        gpu_host=gpu_host,
        cards=cards,
        refused={},
    )
    return Earlier(folder, begun, planned, is_longer, over)


def _extend_plan(run: Run, ledger: RoundLog, path: Path, rounds: int | None, budget: float | None) -> Run:
    """Return the run with the requested longer plan, and with one more look at its results.

    The user has seen the results so far before requesting more rounds. So the current numbers of rounds are recorded as
    a look, and analysis/looks.py allows for it in the verdicts.
    """
    counts = {group.name: ledger.rounds(group) for group in run.plan.groups}
    most = max(counts.values(), default=0)
    if rounds is not None and rounds < most:
        more = run_info.suggest_rounds([most])
        raise UsageError(
            f"{path} already has {counted(most, 'round')}, and --rounds {rounds} adds none: with --resume, --rounds "
            "includes the earlier rounds.",
            f"For {more - most} more rounds, use --rounds {more}.",
        )
    usual = max(run.plan.rounds, MOST_CLAIM_ROUNDS if run.plan.claims else MOST_ROUNDS)
    seconds = None if budget is None else ledger.seconds() + budget
    # the requested budget is strict, unlike the budget of a suite
    plan = replace(run.plan, rounds=rounds or usual, budget_seconds=seconds, budget_is_wish=False)
    final = {name for name, stop in run.stops.items() if stop.reason.is_final}
    is_enough = _has_ended(run) and all(count >= plan.rounds for name, count in counts.items() if name not in final)
    if plan == run.plan or is_enough:
        return run
    looks = [*run.looks, *([counts] if counts not in run.looks[-1:] else [])]
    return replace(run, plan=plan, looks=looks, stops={})


def _explain_end(run: Run, ledger: RoundLog, path: Path) -> str:
    """Return a sentence if the run has nothing left to measure; otherwise an empty text."""
    if not _has_ended(run) or any(ledger.rounds(group) < run.stops[group.name].rounds for group in run.plan.groups):
        return ""
    stops = list(run.stops.values())
    if all(stop.reason.is_final for stop in stops):
        return f"{path} is complete: none of its groups needs another round. To measure more, start a new run."
    most = max(stop.rounds for stop in stops)
    is_spent = any(stop.reason is StopReason.BUDGET for stop in stops)
    what = f"The budget of {path} is spent" if is_spent else f"{path} is complete"
    return (
        f"{what}: it has {counted(most, 'round')}. To continue it: harness matrix --resume {shlex.quote(str(path))} "
        f"--rounds {run_info.suggest_rounds([stop.rounds for stop in stops])}"
    )


def _has_ended(run: Run) -> bool:
    """Return whether all groups of a run have ended without an interruption."""
    stops = [run.stops.get(group.name) for group in run.plan.groups]
    return all(stop and stop.reason is not StopReason.INTERRUPTED for stop in stops)


def make_changed_error(path: Path, what: str) -> UsageError:
    """Return the error for a run that can't be resumed, because `what` has changed."""
    return UsageError(f"{what} has changed since {path} was started.", "Start a new run.")


def read_machine_facts(limits: Limits, cards: Sequence[Gpu], gpu_host: GpuHost, clock: str = "") -> dict[str, Any]:
    """Return the facts about this machine for run.json, with its GPUs and locked clocks if launches use GPUs."""
    of_gpus = gpus.collect_facts(cards, gpu_host, clock) if limits.gpus else {}
    # describes the pinned CPUs and what they share with other CPUs; empty if launches aren't pinned
    pinned = cpus.describe(limits.cpus, topology.read(), os.sched_getaffinity(0))
    return {**host.read_facts(), "pinned_to": pinned, **of_gpus}
