"""What differs between two runs beside their times: machine, engine, measurement, harness, scenarios, environments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.analysis.environments import pins, python
from harness.model import gpu
from harness.model.run import Run
from harness.model.scenario import Cell

#: Two machines have the same memory when it differs by no more than this share: what a kernel keeps for itself varies.
MEMORY = 0.05

# of an engine on this machine the host says these itself
_OF_THE_HOST = {"system", "kernel", "architecture", "cpus", "memory_bytes"}
# what says the same in other words
_TOLD_ELSEWHERE = {"why", "name", "pinned_to", "registry"}


class Aspect(StrEnum):
    """What a difference is of."""

    MACHINE = "machine"
    ENGINE = "engine"
    MEASUREMENT = "measurement"
    HARNESS = "harness"
    SCENARIO = "scenario"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs, with both values as they are stored; None where a run does not have it.

    `subject` is the scenario's or the environment's name, else empty. `name` is a package's, or what the fact is called
    in run.json.
    """

    part: Aspect
    subject: str
    name: str
    first: Any
    second: Any


def machines(first: Run, second: Run) -> list[Difference]:
    """The facts by which the two runs' machines are not the same one; empty where they are, as far as runs tell.

    CPU, cores and memory; where both used GPUs, these, their driver and how they are set: a power limit moves times as
    another card does. A run tells nothing that identifies its machine, so two of one make are not told apart. The
    kernel may differ: it changes on one machine too.
    """
    one, other = map(_machine, (first, second))
    found = [each for each in _each(Aspect.MACHINE, "", one, other) if not _same_memory(each)]
    return found + (_cards(first, second) if first.plan.limits.gpus and second.plan.limits.gpus else [])


def differences(first: Run, second: Run, cells: Iterable[Cell]) -> list[Difference]:
    """Whatever differs and may have moved the times of `cells`, those with a number in both runs."""
    environments = dict.fromkeys(cell.environment for cell in cells)
    one, other = (_facts(run, environments) for run in (first, second))
    found = [each for of, facts in one.items() if of in other for each in _each(*of, facts, other[of])]
    return _cards(first, second) + found


def same_software(cell: Cell, first: Run, second: Run) -> bool:
    """Whether what the cell ran is known to be the same in both runs: Python, packages, image, and scenario."""
    one, other = (_software(cell, run) for run in (first, second))
    return all(one) and one == other


def _software(cell: Cell, run: Run) -> tuple[Any, ...]:
    name = cell.environment
    image, source = run.images.get(name), run.sources.get(cell.scenario)
    return python(run, name), dict(pins(run, name)), image, source, run.backend.name


def _facts(run: Run, environments: Iterable[str]) -> dict[tuple[Aspect, str], Mapping[str, Any]]:
    """All that may move times, by what it is of: an aspect, and the scenario's or the environment's name."""
    sampling, limits, auto = run.plan.sampling, run.plan.limits, "as the pilot asks"
    left_out = frozenset() if run.backend.is_remote else _OF_THE_HOST
    return {
        (Aspect.MACHINE, ""): {name: value for name, value in _less(run.host).items() if name != "gpus"},
        (Aspect.ENGINE, ""): {name: value for name, value in _less(run.backend.told()).items() if name not in left_out},
        (Aspect.MEASUREMENT, ""): {
            "backend": run.backend.name,
            "protocol": sampling.protocol.value,
            "warmup_seconds": auto if sampling.warmup_seconds is None else sampling.warmup_seconds,
            "measure_seconds": auto if sampling.measure_seconds is None else sampling.measure_seconds,
            "sample_seconds": sampling.sample_seconds,
            "interleave": run.plan.interleave.value,
            "cpus": "all" if limits.cpus is None else list(limits.cpus),
            "gpus": list(limits.gpus),
            "memory_bytes": limits.memory_bytes,
        },
        (Aspect.HARNESS, ""): {"version": run.harness, "commit": run.commit},
        **{
            (Aspect.SCENARIO, each.name): {"source": run.sources.get(each.name), "axes": list(each.axes)}
            for each in run.scenarios
        },
        **{
            (Aspect.ENVIRONMENT, name): {
                "Python": python(run, name),
                "image": run.images.get(name),
                **dict(sorted(pins(run, name).items())),
            }
            for name in environments
        },
    }


def _less(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in _TOLD_ELSEWHERE}


def _machine(run: Run) -> dict[str, Any]:
    """What makes a machine another one; of a remote engine, its own."""
    remote = run.backend.is_remote
    facts, names = (run.backend.told(), ("architecture", "cpus")) if remote else (run.host, ("cpu", "cores"))
    return {name: facts.get(name) for name in (*names, "memory_bytes")}


def _cards(first: Run, second: Run) -> list[Difference]:
    """What differs between the runs' GPUs; where they are does not move times."""
    found = gpu.differing(first.host.get("gpus"), second.host.get("gpus"), but=("index", "pci"))
    return [Difference(Aspect.MACHINE, "", name, one, other) for name, one, other in found]


def _same_memory(difference: Difference) -> bool:
    sizes = [difference.first, difference.second]
    if difference.name != "memory_bytes" or not all(isinstance(size, int | float) for size in sizes):
        return False
    return bool(max(sizes) - min(sizes) <= MEMORY * max(sizes))


def _each(part: Aspect, subject: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """The names whose values differ; an empty value is as good as none."""
    pairs = ((name, _told(first.get(name)), _told(second.get(name))) for name in dict.fromkeys([*first, *second]))
    return [Difference(part, subject, name, one, other) for name, one, other in pairs if one != other]


def _told(value: Any) -> Any:
    return None if value in ("", [], {}) else value
