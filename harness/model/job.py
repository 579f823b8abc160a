"""Jobs: what a backend hands to the worker inside, as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.model.cell import Cell

SCHEMA = 1


class Protocol(StrEnum):
    """How a measurement is taken: bounded by time, or by the source document's own iteration count."""

    TIME = "time"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How long a launch warms up and measures, in seconds, and how long a sample lasts at least.

    In a plan, seconds that are None are set by each group's pilot; a job's are always numbers.
    `calls_per_sample` is how many calls of the scenario's step make one sample; the pilot fixes it for a run's later
    launches. None: the worker finds it while it warms up. The document's protocol uses none of these.
    """

    protocol: Protocol = Protocol.TIME
    warmup_seconds: float | None = None
    measure_seconds: float | None = None
    sample_seconds: float = 0.05
    calls_per_sample: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether a length is left to the pilot."""
        return self.protocol is Protocol.TIME and None in (self.warmup_seconds, self.measure_seconds)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a launch may use: CPUs by number (all where None), memory in bytes (no limit where None), seconds.

    `gpus` are indices as NVML counts, UUIDs, or `all`; none on a CPU. `first_start_seconds` is what a launch may take
    whose GPU code the driver may have to compile first, where that is more than `seconds`.
    """

    cpus: tuple[int, ...] | None = None
    memory_bytes: int | None = None
    seconds: float = 600.0
    gpus: tuple[str, ...] = ()
    first_start_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """One launch to be done.

    `files` maps relative names to the bytes that go in beside the worker: the scenario's script and the kit.
    `environ` holds the axes that are process variables: the scenario does not get them as arguments. `thorough`: it
    also looks, untimed, at what need be seen only once. With `profile_calls` nothing is timed: the first call is
    profiled, and so many later ones.
    """

    cell: Cell
    script: str
    files: Mapping[str, bytes]
    sampling: Sampling
    limits: Limits
    environ: Mapping[str, str]
    thorough: bool = False
    profile_calls: int | None = None

    def document(self, *, die_with_parent: bool, artifacts: str) -> dict[str, Any]:
        """The JSON document that the worker reads."""
        sampling = self.sampling
        return {
            "schema": SCHEMA,
            "cell": {
                "scenario": self.cell.scenario,
                "axes": {axis: value for axis, value in self.cell.axes.items() if axis not in self.environ},
                "environment": self.cell.environment,
                "device": self.cell.device.value,
            },
            "script": self.script,
            "sampling": {
                "mode": sampling.protocol.value,
                "warmup_seconds": sampling.warmup_seconds,
                "measure_seconds": sampling.measure_seconds,
                "sample_seconds": sampling.sample_seconds,
                "calls_per_sample": sampling.calls_per_sample,
            },
            "limits": {"die_with_parent": die_with_parent},
            "artifacts": artifacts,
            "thorough": self.thorough,
            "profile": {"calls": self.profile_calls} if self.profile_calls else None,
        }
