"""Launches, each a fresh process: the job that goes in, and what came out, as it is stored."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from harness.model.defaults import TIMEOUT
from harness.model.gpu import UsedGpu
from harness.model.numbers import Amount, Bytes, Count, Cpu, Rounds, SampleSeconds, Seconds, Some
from harness.model.scenario import Cell

SCHEMA = 1

#: The schema of the JSON that the worker reads.
JOB_SCHEMA = 1


#: How many turns a launch takes if a pilot tells nothing, and the fewest with any --measure.
USUAL_TURNS, FEWEST_TURNS = 20, 3

#: A sample is no shorter, in seconds, however little a launch is to measure: a clock is read in a microsecond.
SHORTEST_SAMPLE = 0.001


class Protocol(StrEnum):
    """How a measurement is taken: bounded by time, or by the source document's own iteration count."""

    TIME = "time"
    DOCUMENT = "document"


class Interleave(StrEnum):
    """How the cells of a round are measured: all alive together, in turns, or launch after launch."""

    TURNS = "turns"
    LAUNCHES = "launches"


class Clock(StrEnum):
    """What is measured of a step: time by the clock on the wall, or the process's CPU time, in all its threads."""

    WALL = "wall"
    CPU = "cpu"

    @property
    def time(self) -> str:
        """What is measured, in words."""
        return "CPU time" if self is Clock.CPU else "time"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How long a launch warms up and measures, in seconds, and how long a sample lasts at least.

    In a plan, seconds that are None are set by each group's pilot; a job's are always numbers.
    `calls_per_sample` is how many calls of the scenario's step make one sample; the pilot fixes it for a run's later
    launches. None: the worker finds it while it warms up. With `turns`, a launch takes so many samples, each when it is
    told to, and not as many as `measure_seconds` hold. The document's protocol uses none of these.
    """

    protocol: Protocol = Protocol.TIME
    warmup_seconds: Seconds | None = None
    measure_seconds: Seconds | None = None
    sample_seconds: Seconds = 0.05
    calls_per_sample: Some | None = None
    turns: Count | None = None

    @property
    def is_open(self) -> bool:
        """Whether a length is left to the pilot."""
        return self.protocol is Protocol.TIME and None in (self.warmup_seconds, self.measure_seconds)

    def sampled(self, *, in_turns: bool) -> "Sampling":
        """The sampling with the length of its samples, and how many turns a launch takes, if any.

        Three samples at least are within what a launch is to measure, if that is typed. If it is left to a pilot, it
        takes as many turns as usually.
        """
        measure = self.measure_seconds
        if measure is None:
            return replace(self, turns=USUAL_TURNS if in_turns else None)
        sample = min(self.sample_seconds, max(SHORTEST_SAMPLE, round(measure / FEWEST_TURNS, 6)))
        turns = max(FEWEST_TURNS, math.ceil(round(measure / sample, 2)))
        return replace(self, sample_seconds=sample, turns=turns if in_turns else None)

    @property
    def of_pilots(self) -> "Sampling":
        """How the pilot samples; its times are in no statistic. Its calls make a sample of the later launches too."""
        if self.is_open:
            return replace(LONG, sample_seconds=self.sample_seconds)
        if self.warmup_seconds is None or self.measure_seconds is None:  # the document's protocol has no lengths
            return SHORT
        return replace(
            SHORT,
            warmup_seconds=min(BRIEF, self.warmup_seconds),
            measure_seconds=min(BRIEF, self.measure_seconds),
            sample_seconds=self.sample_seconds,
        )


#: How the pilot samples if the plan says all, or shorter than so many seconds: enough to find broken cells and warm
#: caches.
BRIEF = 0.1
SHORT = Sampling(protocol=Protocol.TIME, warmup_seconds=BRIEF, measure_seconds=BRIEF)
#: ... and if it is to find out how long to warm up and to measure: from the first step on, and for some while.
LONG = Sampling(protocol=Protocol.TIME, warmup_seconds=0.0, measure_seconds=1.5)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a launch may use: CPUs by number (all where None), memory in bytes (no limit where None), seconds.

    `gpus` are indices as NVML counts, UUIDs, or `all`; none on a CPU. `first_start_seconds` is what a launch may take
    whose GPU code the driver may have to compile first, where that is more than `seconds`.
    """

    cpus: tuple[Cpu, ...] | None = None
    memory_bytes: Bytes | None = None
    seconds: Seconds = TIMEOUT
    gpus: tuple[str, ...] = ()
    first_start_seconds: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """One launch to be done.

    `files` maps relative names to the bytes that go in beside the worker: the scenario's script and the kit.
    `environ` holds the axes that are process variables, `settings` those that the kit applies: the scenario does not
    get them as arguments. `thorough`: it also looks, untimed, at what need be seen only once. With `profile_calls`
    nothing is timed: the first call is profiled, and so many later ones. `waits`: it waits when all is built, before it
    warms up, because it starts beside others.
    """

    cell: Cell
    script: str
    files: Mapping[str, bytes]
    sampling: Sampling
    limits: Limits
    environ: Mapping[str, str]
    thorough: bool = False
    profile_calls: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False

    def document(self, *, die_with_parent: bool, artifacts: str) -> dict[str, Any]:
        """The JSON document that the worker reads."""
        sampling, beside = self.sampling, {*self.environ, *self.settings}
        return {
            "schema": JOB_SCHEMA,
            "cell": {
                "scenario": self.cell.scenario,
                "axes": {axis: value for axis, value in self.cell.axes.items() if axis not in beside},
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
                "turns": sampling.turns,
            },
            "limits": {"die_with_parent": die_with_parent},
            "artifacts": artifacts,
            "thorough": self.thorough,
            "waits": self.waits,
            "settings": dict(self.settings),
            "profile": {"calls": self.profile_calls} if self.profile_calls else None,
        }


class Status(StrEnum):
    """How a launch ended. Statuses are data: each is shown with one line of advice."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OOM = "oom"
    NOT_AVAILABLE = "not available"
    CPU_FALLBACK = "cpu fallback"
    OTHER_GPU = "other gpu"
    INTERRUPTED = "interrupted"


#: The statuses that make a run end with exit code 1.
BROKEN = frozenset({Status.FAILED, Status.TIMEOUT, Status.OOM, Status.CPU_FALLBACK, Status.OTHER_GPU})

#: What a cell's first launch on a GPU observes under TensorFlow's profiler, and while that pass is under way.
ON_DEVICE, UNDER_WAY = "time on the device", "under way"

#: The resource of a pilot during which images of other environments were being made.
BESIDE_BUILDS = "beside_builds"
#: How many CPUs a launch could use at most, by the quotas of its control groups.
CPU_QUOTA = "cpu_quota"

#: The resource that says how many other launches started at the same time, each on a CPU of its own.
BESIDE_STARTS = "beside_starts"


class Role(StrEnum):
    """What a launch is for. Only `measure` and `control` launches enter a statistic."""

    PILOT = "pilot"
    MEASURE = "measure"
    CONTROL = "control"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed batch: its length in seconds, how many steps it held, and what the process used of CPUs, if told."""

    seconds: SampleSeconds
    steps: Some
    cpu_seconds: Amount | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one process that executed a cell, whatever became of it.

    `phases` are seconds by name, in order, and `phases_cpu` the CPU seconds that the process used in them, where it
    could tell; `samples` are what is measured, and `alone` what a launch that took turns measured in one go after them,
    for a check; `memory` has pairs of calls made and the bytes that the process then held, in the order of the calls;
    `error` is one line that says what went wrong; `stderr` is the end of the process's standard error;
    `not_kept` has a line for each thing among its artifacts that was refused, the first twenty;
    `observations` are what the scenario saw that is no time; `resources` are numbers by the names of
    docs/dev/worker-protocol.md (CPU, memory, and the use of the machine's CPUs meanwhile); `gpus` are the GPUs of
    the work; `pins` are the installed packages; `image` is what ran: an image's id, or a lock's hash.
    """

    status: Status
    phases: Mapping[str, Seconds] = field(default_factory=dict)
    phases_cpu: Mapping[str, Amount] = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    alone: Sequence[Sample] = ()
    calls_per_sample: Some | None = None
    memory: Sequence[tuple[Count, Bytes]] = ()
    observations: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Amount] = field(default_factory=dict)
    gpus: Sequence[UsedGpu] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    error: str = ""
    stderr: str = ""
    not_kept: Sequence[str] = ()

    @property
    def fixes_calls(self) -> bool:
        """Whether its scenario fixes how often it calls (`bench.once`, `bench.memory`): it takes no turns."""
        return bool(self.memory) or (self.calls_per_sample is None and [each.steps for each in self.samples] == [1])

    @property
    def ended_under_profiler(self) -> bool:
        """Whether the process ended while TensorFlow's profiler ran, after its samples: without that it may go well."""
        return self.status in BROKEN and self.observations.get(ON_DEVICE) == UNDER_WAY


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
    Of launches that took turns, `block` says which were alive together, from 0, and `places` has of each sample its
    place in its turn, from 0; sample i is of turn i. It is empty where launches were measured one after the other.
    `seconds` is how long it took as seen from outside, from the request until its files were taken from it: what one
    more costs, less the removal of what it left, before which it is stored; others' turns are not in it. Launches that
    start at the same time have equal shares of that, so that their sum is wall-clock time. `artifacts` are paths,
    relative to the run's folder.
    """

    group: str
    round: Rounds
    attempt: Rounds
    order: Count
    role: Role
    cell: Cell
    started: str
    seconds: Seconds = 0.0
    advice: str = ""
    artifacts: Sequence[str] = ()
    block: Count = 0
    places: Sequence[Count] = ()
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
