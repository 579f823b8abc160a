"""Checks whether a stored run can be resumed on this machine, and for how long."""

import os
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.backends import registry
from harness.backends.registry import AUTO
from harness.environments.locks import load_locks
from harness.machine import cpus, host, topology
from harness.machine.gpu import selection as gpus
from harness.machine.slots import Slot
from harness.model.defaults import FEWEST_ROUNDS, MOST_CLAIM_ROUNDS, MOST_ROUNDS
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.launch import Limits
from harness.model.run import Run, StopReason
from harness.model.texts import counted
from harness.project import Project
from harness.report.sections import continuation, run_info
from harness.runner.rounds import RoundLog
from harness.session.jobs import JobMaker
from harness.session.planning.planned import Planned
from harness.session.reporting import load_results
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
    run = folder.read_run()
    limits = run.plan.limits
    slot_cpus = run.slot_cpus or limits.cpus  # older runs recorded only the CPUs of launches
    if run.slots == 1 or not slot_cpus or not folder.is_from_here():
        return None
    return Slot(tuple(slot_cpus), next(iter(limits.gpus), ""))


def load_earlier(
    path: Path, wished: str = AUTO, *, rounds: int | None = None, budget: float | None = None, unsettled: bool = False
) -> Earlier:
    """Return the stored run in a folder, with a plan to resume it here. `wished` is the requested backend.

    The run continues as planned, up to `rounds` in total, or for `budget` more seconds. With `unsettled`, only groups
    with an unclear comparison continue. Raises UsageError if a file or package of the run has changed, or if the run
    already has more than `rounds` rounds. Raises CannotRunHereError on another machine.
    """
    folder = RunFolder.open(path)
    stored_run = folder.read_run()
    _check_resumable(folder, stored_run)
    is_extended = rounds is not None or budget is not None
    launches = folder.read_launches(stored_run)
    ledger = RoundLog(stored_run.plan, launches)
    if unsettled and not is_extended:
        raise UsageError("--unsettled needs --rounds or --budget.", "Add the number of rounds, such as --rounds 20.")
    names = [group.name for group in stored_run.plan.groups]
    if unsettled:
        names = load_results(stored_run, launches).unsettled_groups
        is_extended = bool(names)
    extended_run = (
        _extend_plan(stored_run, ledger, path, names, rounds=rounds, budget=budget) if is_extended else stored_run
    )
    end_sentence = _explain_end(stored_run, ledger, path) if extended_run == stored_run else ""
    if not names:
        end_sentence = (
            f"In {path}, more rounds would probably not give another comparison a verdict. To continue all groups, "
            "omit --unsettled."
        )
    planned = _make_planned(extended_run, path, wished)
    return Earlier(folder, extended_run, planned, extended_run != stored_run, end_sentence)


def estimate_rest(earlier: Earlier) -> dict[str, tuple[int, float]]:
    """Return the launches that are left and the seconds that they take at most, by the name of the group.

    The seconds are estimated from the group's own launches, or from all launches of the run if it has none. All of them
    take at most the rest of the budget. But a suite's budget is exceeded for the rounds that verdicts need.
    """
    plan, rest, fewest_seconds = earlier.run.plan, dict[str, tuple[int, float]](), 0.0
    ledger = RoundLog(plan, earlier.folder.read_launches(earlier.run))
    launches = ledger.ended
    for group in plan.groups:
        numbers = range(ledger.rounds(group) + 1, plan.settled.get(group.name, plan.rounds) + 1)
        counts = [len(ledger.slots(group, number)) for number in numbers]
        seconds = [launch.seconds for launch in launches if launch.group == group.name and launch.round > 0]
        typical_seconds = fmean(seconds or [launch.seconds for launch in launches] or [0.0])
        fewest_seconds += typical_seconds * sum(counts[: max(0, FEWEST_ROUNDS - ledger.rounds(group))])
        if any(counts):
            rest[group.name] = sum(counts), typical_seconds * sum(counts)
    total_seconds = sum(seconds for _, seconds in rest.values())
    if plan.budget_seconds is None or not total_seconds:
        return rest
    left = max(0.0, plan.budget_seconds - ledger.seconds(), fewest_seconds if plan.budget_is_wish else 0.0)
    share = min(1.0, left / total_seconds)
    return {name: (count, seconds * share) for name, (count, seconds) in rest.items()}


def _check_resumable(folder: RunFolder, stored_run: Run) -> None:
    """Raise UsageError for a run that can't be continued: a merged one, another user's, or one with profiles."""
    path = folder.path
    if stored_run.merged:
        raise UsageError(f"{path} was merged from other runs.", "Continue one of the merged runs, and merge again.")
    if not folder.is_from_here():
        raise UsageError(
            f"The run {path} wasn't started by this user on this machine, or its run.json has changed since. So "
            "continuing it could run another user's commands.",
            "Start your own run: harness matrix. To write the report of this run again: harness report "
            f"{shlex.quote(str(path))}",
        )
    if stored_run.plan.profile_calls:
        raise UsageError(
            f"{path} has profiles instead of measurements, and can't be continued.",
            "To profile again, run: harness profile",
        )


def _make_planned(stored_run: Run, path: Path, wished: str) -> Planned:
    """Return the plan of a stored run with its inputs on this machine.

    Raises UsageError for another backend and for changed scenarios, and CannotRunHereError on another machine.
    """
    project, limits, backend = Project.find(), stored_run.plan.limits, stored_run.backend.name
    requirements = {
        name: requirement
        for environment in stored_run.environments
        if environment.name in stored_run.pins or not environment.line
        for name, requirement in load_locks(project, environment, stored_run.plan.devices).items()
    }
    scenarios = {scenario.name: scenario for scenario in stored_run.scenarios}
    sources = JobMaker(project, scenarios, limits).hash_sources()
    if wished not in (AUTO, backend):
        raise UsageError(f"{path} was started with the backend {backend}; it can't continue with {wished}.")
    gpu_host = registry.find_gpu_host(backend, project.root) if limits.gpus else CPU_ALONE
    selected_gpus = gpus.select_gpus(limits.gpus, gpu_host)
    machine_facts = read_machine_facts(limits, selected_gpus, gpu_host, stored_run.plan.lock_clocks)
    differences = host.find_differing(stored_run.host, machine_facts)
    if differences:
        changes = "; ".join(run_info.format_change(*difference) for difference in differences)
        raise CannotRunHereError(f"{path} was started on another machine: {changes}.", "Start a new run.")
    changed_scenarios = [scenario for scenario, digest in sources.items() if stored_run.sources.get(scenario) != digest]
    if changed_scenarios:
        raise make_changed_error(path, f"the scenario {', '.join(changed_scenarios)}")
    return Planned(
        request=Request(
            backend=backend,
            cpus="" if limits.gpus else "all" if limits.cpus is None else str(len(limits.cpus)),
            device=stored_run.plan.devices,
            results=path.parent,
        ),
        suite=stored_run.suite,
        project=project,
        plan=stored_run.plan,
        environments=stored_run.environments,
        requirements=requirements,
        scenarios=scenarios,
        reference=stored_run.reference,
        gpu_host=gpu_host,
        gpus=selected_gpus,
        refused={},
        packages={},
    )


def _extend_plan(
    run: Run, ledger: RoundLog, path: Path, names: Collection[str], *, rounds: int | None, budget: float | None
) -> Run:
    """Return the run with the requested longer plan, and with one more look at its results.

    Only the groups `names` continue. The user has seen the results so far before requesting more rounds. So the current
    numbers of rounds are recorded as a look, and analysis/looks.py allows for it in the verdicts.
    """
    counts = {group.name: ledger.rounds(group) for group in run.plan.groups}
    settled = {name: count for name, count in counts.items() if name not in names}
    largest_count = max((counts[name] for name in names), default=0)
    if rounds is not None and rounds < largest_count:
        suggested_rounds = continuation.suggest_rounds([largest_count])
        raise UsageError(
            f"{path} already has {counted(largest_count, 'round')}, and --rounds {rounds} adds none: with --resume, "
            "--rounds includes the earlier rounds.",
            f"For {suggested_rounds - largest_count} more rounds, use --rounds {suggested_rounds}.",
        )
    default_rounds = max(run.plan.rounds, MOST_CLAIM_ROUNDS if run.plan.claims else MOST_ROUNDS)
    seconds = None if budget is None else ledger.seconds() + budget
    # the requested budget is strict, unlike the budget of a suite
    plan = replace(
        run.plan, rounds=rounds or default_rounds, budget_seconds=seconds, budget_is_wish=False, settled=settled
    )
    final_names = {*settled, *(name for name, stop in run.stops.items() if stop.reason.is_final)}
    open_counts = [count for name, count in counts.items() if name not in final_names]
    is_enough = not run.unfinished and all(count >= plan.rounds for count in open_counts)
    if plan == run.plan or is_enough:
        return run
    looks = [*run.looks, *([counts] if counts not in run.looks[-1:] else [])]
    return replace(run, plan=plan, looks=looks, stops={})


def _explain_end(run: Run, ledger: RoundLog, path: Path) -> str:
    """Return a sentence if the run has nothing left to measure; otherwise an empty text."""
    if run.unfinished or any(ledger.rounds(group) < run.stops[group.name].rounds for group in run.plan.groups):
        return ""
    stops = list(run.stops.values())
    if all(stop.reason.is_final for stop in stops):
        return f"{path} is complete: none of its groups needs another round. To measure more, start a new run."
    largest_count = max(stop.rounds for stop in stops)
    is_spent = any(stop.reason is StopReason.BUDGET for stop in stops)
    reason = f"The budget of {path} is spent" if is_spent else f"{path} is complete"
    return (
        f"{reason}: it has {counted(largest_count, 'round')}. To continue it: harness matrix --resume "
        f"{shlex.quote(str(path))} --rounds {continuation.suggest_rounds([stop.rounds for stop in stops])}"
    )


def make_changed_error(path: Path, what: str) -> UsageError:
    """Return the error for a run that can't be resumed, because `what` has changed."""
    return UsageError(f"{what} has changed since {path} was started.", "Start a new run.")


def read_machine_facts(
    limits: Limits, selected_gpus: Sequence[Gpu], gpu_host: GpuHost, clock: str = ""
) -> dict[str, Any]:
    """Return the facts about this machine for run.json, with its GPUs and locked clocks if launches use GPUs."""
    gpu_facts = gpus.collect_facts(selected_gpus, gpu_host, clock) if limits.gpus else {}
    # describes the pinned CPUs and what they share with other CPUs; empty if launches aren't pinned
    pinning = cpus.describe(limits.cpus, topology.read(), os.sched_getaffinity(0))
    return {**host.read_facts(), "pinned_to": pinning, **gpu_facts}
