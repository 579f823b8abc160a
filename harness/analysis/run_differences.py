"""Differences between two runs besides their times: machine, engine, measurement, harness, scenarios, environments."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.analysis.environments import pins, python
from harness.model import gpu
from harness.model.environment import Device, name_on
from harness.model.run import Run
from harness.model.scenario import Cell
from harness.model.texts import joined

#: Two machines have the same memory if the sizes differ by at most this share. The kernel's share of the memory varies.
MEMORY = 0.05

# facts of Docker Engine on this machine that the facts of the host already contain
_HOST_FACTS = {"system", "kernel", "architecture", "cpus", "memory_bytes"}
# facts that other facts repeat, or that have no effect on times
_OMITTED_FACTS = {"why", "name", "pinned_to", "registry"}


class Aspect(StrEnum):
    """The kind of a difference."""

    MACHINE = "machine"
    ENGINE = "engine"
    MEASUREMENT = "measurement"
    HARNESS = "harness"
    SCENARIO = "scenario"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A fact that differs, with both stored values; None if a run doesn't have it.

    `subject` is the name of the scenario or of the environment, otherwise empty. `name` is the name of the package, or
    the name of the fact in run.json.
    """

    part: Aspect
    subject: str
    name: str
    first: Any
    second: Any


def compare_machines(first: Run, second: Run) -> list[RunDifference]:
    """Return the facts in which the two runs' machines differ; empty if the machines seem to be the same.

    The facts are CPU, cores and memory. If both runs used GPUs, the facts also include the GPUs, their driver and their
    settings, because a power limit changes times as much as a different GPU. Two machines of the same model can't be
    distinguished. The kernel may differ, because it is also updated on the same machine.
    """
    facts, other_facts = map(_identify_machine, (first, second))
    differences = [
        difference
        for difference in _compare_facts(Aspect.MACHINE, "", facts, other_facts)
        if not _has_same_memory(difference)
    ]
    return differences + (_compare_gpus(first, second) if first.plan.limits.gpus and second.plan.limits.gpus else [])


def find_differences(first: Run, second: Run, cells: Iterable[Cell]) -> list[RunDifference]:
    """Return the differences that may have changed the times of `cells` (those with a result in both runs)."""
    targets = list(dict.fromkeys((cell.environment, cell.device) for cell in cells))
    counts = Counter(environment for environment, _ in targets)
    by_name = {target[0] if counts[target[0]] == 1 else ":".join(target): target for target in targets}
    facts_of_first, facts_of_second = (_collect_facts(run, by_name) for run in (first, second))
    differences = [
        difference
        for subject, facts in facts_of_first.items()
        if subject in facts_of_second
        for difference in _compare_facts(*subject, facts, facts_of_second[subject])
    ]
    return _compare_gpus(first, second) + differences


def same_software(cell: Cell, first: Run, second: Run) -> bool:
    """Return whether the cell's software is certainly the same in both runs: Python, packages, image and scenario."""
    one, other = (_get_software(cell, run) for run in (first, second))
    return all(one) and one == other


def _get_software(cell: Cell, run: Run) -> tuple[Any, ...]:
    name = cell.environment
    image_name, source = name_on(name, cell.device, run.images), run.sources.get(cell.scenario)
    return python(run, name), dict(pins(run, name, cell.device)), run.images.get(image_name), source, run.backend.name


def _collect_facts(
    run: Run, environments: Mapping[str, tuple[str, Device]]
) -> dict[tuple[Aspect, str], Mapping[str, Any]]:
    """Return all facts that may change times, by aspect, and by the name of the scenario or the environment.

    `environments` maps names to an environment and a device.
    """
    sampling, limits, open_length = run.plan.sampling, run.plan.limits, "as the pilot determines"
    omitted_facts = frozenset() if run.backend.is_remote else _HOST_FACTS
    return {
        (Aspect.MACHINE, ""): {name: value for name, value in _omit_facts(run.host).items() if name != "gpus"},
        (Aspect.ENGINE, ""): {
            name: value for name, value in _omit_facts(run.backend.to_dict()).items() if name not in omitted_facts
        },
        (Aspect.MEASUREMENT, ""): {
            "backend": run.backend.name,
            "protocol": sampling.protocol.value,
            "warmup_seconds": open_length if sampling.warmup_seconds is None else sampling.warmup_seconds,
            "measure_seconds": open_length if sampling.measure_seconds is None else sampling.measure_seconds,
            "sample_seconds": sampling.sample_seconds,
            "interleave": run.plan.interleave.value,
            "cpus": "all" if limits.cpus is None else list(limits.cpus),
            "gpus": list(limits.gpus),
            "memory_bytes": limits.memory_bytes,
        },
        (Aspect.HARNESS, ""): {"version": run.harness, "commit": run.commit},
        **{
            (Aspect.SCENARIO, scenario.name): {"source": run.sources.get(scenario.name), "axes": list(scenario.axes)}
            for scenario in run.scenarios
        },
        **{
            (Aspect.ENVIRONMENT, name): {
                "Python": python(run, environment),
                "image": run.images.get(name_on(environment, device, run.images)),
                **dict(sorted(pins(run, environment, device).items())),
            }
            for name, (environment, device) in environments.items()
        },
    }


def _omit_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in _OMITTED_FACTS}


def _identify_machine(run: Run) -> dict[str, Any]:
    """Return the facts that identify the machine that measured: the engine's machine if Docker Engine is remote."""
    is_remote = run.backend.is_remote
    facts, names = (run.backend.to_dict(), ("architecture", "cpus")) if is_remote else (run.host, ("cpu", "cores"))
    architectures = sorted({environment.architecture for environment in run.environments})
    return {name: facts.get(name) for name in (*names, "memory_bytes")} | {"architecture": joined(architectures)}


def _compare_gpus(first: Run, second: Run) -> list[RunDifference]:
    """Return the differences between the runs' GPUs, except their position in the machine."""
    triples = gpu.find_differing(first.host.get("gpus"), second.host.get("gpus"), but=("index", "pci"))
    return [RunDifference(Aspect.MACHINE, "", name, one, other) for name, one, other in triples]


def _has_same_memory(difference: RunDifference) -> bool:
    sizes = [difference.first, difference.second]
    if difference.name != "memory_bytes" or not all(isinstance(size, int | float) for size in sizes):
        return False
    return bool(max(sizes) - min(sizes) <= MEMORY * max(sizes))


def _compare_facts(
    part: Aspect, subject: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> list[RunDifference]:
    """Return the facts whose values differ; an empty value counts as missing."""
    pairs = (
        (name, _replace_empty(first.get(name)), _replace_empty(second.get(name)))
        for name in dict.fromkeys([*first, *second])
    )
    return [RunDifference(part, subject, name, one, other) for name, one, other in pairs if one != other]


def _replace_empty(value: Any) -> Any:
    return None if value in ("", [], {}) else value
