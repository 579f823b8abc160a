"""A run that was begun before: whether it may go on here, as the same run."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backends import registry
from harness.backends.registry import AUTO
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.machine import cpus, host, topology
from harness.machine.gpu import chosen as gpus
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import CPU_ALONE, Card, GpuHost
from harness.model.launch import Limits
from harness.model.run import Run
from harness.report.sections import measured
from harness.session.jobs import JobMaker
from harness.session.planning import Planned
from harness.session.request import Request
from harness.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that was begun before and may go on: its folder, what it says, and what it means on this machine now."""

    folder: RunFolder
    run: Run
    planned: Planned


def earlier(path: Path, wished: str = AUTO, slots: str = "") -> Earlier:
    """The run in a folder that is to go on, with the backend that is `wished`, in as many slots as it was, or `slots`.

    Raises UsageError or CannotRunHereError where it would not be the same run.
    """
    folder = RunFolder.open(path)
    begun = folder.read_run()
    if begun.merged:
        raise UsageError(f"{path} was merged of other runs.", "Go on with one of those, and merge them again.")
    if not folder.is_from_here():
        raise UsageError(
            f"{path} was not begun by this user on this machine, or its run.json was changed since: going on with it "
            "would run what someone else typed.",
            "Start a new run of your own: harness matrix. Its report can be made again: harness report "
            f"{shlex.quote(str(path))}",
        )
    if begun.plan.profile_calls:
        raise UsageError(f"{path} holds profiles, and no measurement to go on with.", "Profile again: harness profile")
    project, limits = Project.find(), begun.plan.limits
    device = Device.GPU if limits.gpus else Device.CPU
    requirements = {
        each.name: load_lock(project, each, device) for each in begun.environments if device in each.devices
    }
    scenarios = {scenario.name: scenario for scenario in begun.scenarios}
    sources = JobMaker(project, scenarios, limits).sources()
    name = begun.backend.name
    if wished not in (AUTO, name):
        raise UsageError(f"{path} was begun with the backend {name}; it cannot go on with {wished}.")
    gpu_host = registry.image_backend(project.root).gpu_host if limits.gpus else CPU_ALONE
    of_slots = _gpus_of_slots(begun)
    cards = gpus.cards(of_slots or limits.gpus, gpu_host)
    differing = host.differing(begun.host, machine_facts(limits, cards, gpu_host, begun.plan.lock_clocks))
    if differing:
        told = "; ".join(measured.change(*each) for each in differing)
        raise CannotRunHereError(f"{path} was begun on another machine: {told}.", "Start a new run.")
    moved = [each for each, digest in sources.items() if begun.sources.get(each) != digest]
    if moved:
        raise changed(path, f"the scenario {', '.join(moved)}")
    request = Request(
        backend=name,
        cpus="" if limits.gpus else "all" if limits.cpus is None else str(len(limits.cpus)),
        gpu=bool(limits.gpus),
        gpus=",".join(of_slots),
        memory=limits.memory_bytes if begun.slots > 1 else None,
        results=path.parent,
        slots=slots or (str(begun.slots) if begun.slots > 1 else ""),
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
    return Earlier(folder, begun, planned)


def _gpus_of_slots(begun: Run) -> Sequence[str]:
    """The GPUs that were typed for the slots of a run, by their numbers; empty where slots take the first ones."""
    known = begun.host.get("gpus")
    if begun.slots == 1 or not begun.plan.limits.gpus or not isinstance(known, Sequence) or isinstance(known, str):
        return ()
    return [str(card["index"]) for card in known] if len(known) == begun.slots else ()


def changed(path: Path, what: str) -> UsageError:
    """The error that refuses to go on with a run."""
    return UsageError(f"Since {path} was begun, {what} has changed.", "Start a new run.")


def machine_facts(limits: Limits, cards: Sequence[Card], gpu_host: GpuHost, clock: str = "") -> dict[str, Any]:
    """What run.json tells of this machine; of its GPUs where launches get some, with the clock they are locked to."""
    of_gpus = gpus.facts(cards, gpu_host, clock) if limits.gpus else {}
    # what the launches' CPUs share with others; empty where they are not pinned
    pinned = cpus.describe(limits.cpus, topology.read(), os.sched_getaffinity(0))
    return {**host.facts(), "pinned_to": pinned, **of_gpus}
