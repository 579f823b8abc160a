"""Launches: what came out of one fresh process, as it is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from harness.model.cell import Cell

SCHEMA = 1


class Status(StrEnum):
    """How a launch ended. Statuses are data: each is shown with one line of advice."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OOM = "oom"
    NOT_AVAILABLE = "not available"
    CPU_FALLBACK = "cpu fallback"
    INTERRUPTED = "interrupted"


#: The statuses that make a run end with exit code 1.
BROKEN = frozenset({Status.FAILED, Status.TIMEOUT, Status.OOM, Status.CPU_FALLBACK})


class Role(StrEnum):
    """What a launch is for. Only `measure` and `control` launches enter a statistic."""

    PILOT = "pilot"
    MEASURE = "measure"
    CONTROL = "control"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed batch: its length in seconds, and how many steps it held."""

    seconds: float
    steps: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one process that executed a cell, whatever became of it.

    `phases` are seconds by name, in order, and `phases_cpu` the CPU seconds that the process used in them, where it
    could tell; `error` is one line that says what went wrong; `stderr` is the end of the process's standard error;
    `observations` are what the scenario saw that is no time; `resources` are numbers by the names of docs/contracts.md
    (CPU, memory, and what the machine's CPUs did meanwhile); `pins` are the packages that were installed where it ran;
    `image` is what ran: an image's id, or a lock's hash.
    """

    status: Status
    phases: Mapping[str, float] = field(default_factory=dict)
    phases_cpu: Mapping[str, float] = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    calls_per_sample: int | None = None
    observations: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    error: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Seen):
    """What a backend hands back: what it saw, the worker's first words, and the artifacts' names and contents."""

    hello: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Launch(Seen):
    """One line of launches.jsonl: what was seen, and its place in the run.

    `group` names the group, `round` counts from 0 (the pilot), `attempt` counts how often that round of that group
    was begun, from 0, `order` is the launch's place in the round, and `started` is the instant in ISO 8601, UTC.
    `seconds` is how long it took as seen from outside, from the request to the removal of what it left: what one more
    costs. `artifacts` are paths, relative to the run's folder.
    """

    group: str
    round: int
    attempt: int
    order: int
    role: Role
    cell: Cell
    started: str
    seconds: float = 0.0
    advice: str = ""
    artifacts: Sequence[str] = ()
    schema: int = SCHEMA

    @property
    def only_observed(self) -> bool:
        """Whether it timed nothing and had nothing to time: its scenario observes, and that is all it does."""
        return self.status is Status.OK and not self.samples and bool(self.observations)

    @cached_property
    def steps(self) -> int:
        """How many steps were timed."""
        return sum(sample.steps for sample in self.samples)

    @cached_property
    def centre(self) -> float:
        """Seconds per step: all measured time over all steps. Only for a launch that has samples."""
        return sum(sample.seconds for sample in self.samples) / self.steps
