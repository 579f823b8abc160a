"""Launches: the job of a launch, which is a fresh process, and its stored record."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import repeat
from typing import Any, TypeVar

from harness.model.defaults import TIMEOUT
from harness.model.gpu import UsedGpu
from harness.model.numbers import Amount, Bytes, Count, Cpu, Rounds, SampleSeconds, Seconds, Some
from harness.model.scenario import DEVICE, Cell

SCHEMA = 1

Of = TypeVar("Of")

#: The schema of the JSON that the worker reads.
JOB_SCHEMA = 1


#: USUAL_TURNS: the number of turns of an interleaved launch unless a pilot determines it. FEWEST_TURNS: the smallest
#: number of turns with any --measure.
USUAL_TURNS, FEWEST_TURNS = 20, 3

#: The shortest sample with any --measure, in seconds. Reading a clock takes about 1 µs.
SHORTEST_SAMPLE = 0.001


class Protocol(StrEnum):
    """The measurement protocol: limited by time, or by the number of iterations in the source document."""

    TIME = "time"
    DOCUMENT = "document"


class Interleave(StrEnum):
    """How the launches of a round are measured: interleaved, or one after the other."""

    TURNS = "turns"
    LAUNCHES = "launches"


class Clock(StrEnum):
    """The measured time of a step: wall-clock time, or the CPU time of the process in all its threads."""

    WALL = "wall"
    CPU = "cpu"

    @property
    def time(self) -> str:
        """The words for the measured time: `CPU time` or `time`."""
        return "CPU time" if self is Clock.CPU else "time"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How long a launch warms up and measures, and the shortest sample, in seconds.

    In a plan, None means that each group's pilots determine the seconds. In a job, all seconds are numbers.
    `calls_per_sample` is the number of calls of the scenario's step in one sample. The pilot determines it for later
    launches. If it is None, the worker determines it during the warm-up. With `turns`, a launch takes this number of
    samples, each on request, and ignores `measure_seconds`. The document's protocol uses none of these fields.
    """

    protocol: Protocol = Protocol.TIME
    warmup_seconds: Seconds | None = None
    measure_seconds: Seconds | None = None
    sample_seconds: Seconds = 0.05
    calls_per_sample: Some | None = None
    turns: Count | None = None

    @property
    def is_open(self) -> bool:
        """Whether the pilots determine the warm-up or the measurement time."""
        return self.protocol is Protocol.TIME and None in (self.warmup_seconds, self.measure_seconds)

    def sampled(self, *, in_turns: bool) -> "Sampling":
        """Return the sampling with its sample length, and with the number of turns if launches are interleaved.

        If `measure_seconds` is set, samples are short enough for at least FEWEST_TURNS samples in that time. If the
        pilots determine the time, interleaved launches take USUAL_TURNS turns.
        """
        measure = self.measure_seconds
        if measure is None:
            return replace(self, turns=USUAL_TURNS if in_turns else None)
        sample = min(self.sample_seconds, max(SHORTEST_SAMPLE, round(measure / FEWEST_TURNS, 6)))
        turns = max(FEWEST_TURNS, math.ceil(round(measure / sample, 2)))
        return replace(self, sample_seconds=sample, turns=turns if in_turns else None)

    @property
    def of_pilots(self) -> "Sampling":
        """The sampling of pilots, whose times aren't used in results. Later launches use their calls per sample."""
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


#: The longest warm-up and measurement time of a pilot if the plan fixes all lengths, in seconds. This is enough to find
#: broken cells and to fill caches.
BRIEF = 0.1
SHORT = Sampling(protocol=Protocol.TIME, warmup_seconds=BRIEF, measure_seconds=BRIEF)
#: The sampling of a pilot that determines how long launches warm up and measure. It has no warm-up.
LONG = Sampling(protocol=Protocol.TIME, warmup_seconds=0.0, measure_seconds=1.5)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a launch: CPU numbers (None: all), memory in bytes (None: no limit), and seconds.

    `gpus` contains NVML's indices, UUIDs, or `all`; empty on a CPU. `first_start_seconds` is the time limit for a
    launch whose GPU code the driver may have to compile first, if it is higher than `seconds`.
    """

    cpus: tuple[Cpu, ...] | None = None
    memory_bytes: Bytes | None = None
    seconds: Seconds = TIMEOUT
    gpus: tuple[str, ...] = ()
    first_start_seconds: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """One requested launch.

    - `files`: the contents of the scenario's script and of the kit, by relative name.
    - `environ`: the axes that are environment variables. `settings`: the axes that the kit applies. Neither are
      arguments of the scenario.
    - `thorough`: the scenario also makes its untimed checks.
    - `profile_calls`: nothing is timed. The first call and this number of later calls are profiled.
    - `waits`: the launch waits after the build, before the warm-up, because other launches start at the same time.
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
        """Return the JSON document that the worker reads."""
        sampling, excluded_axes = self.sampling, {DEVICE, *self.environ, *self.settings}
        return {
            "schema": JOB_SCHEMA,
            "cell": {
                "scenario": self.cell.scenario,
                "axes": {axis: value for axis, value in self.cell.axes.items() if axis not in excluded_axes},
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
            "limits": {"die_with_parent": die_with_parent, "seconds": self.limits.seconds},
            "artifacts": artifacts,
            "thorough": self.thorough,
            "waits": self.waits,
            "settings": dict(self.settings),
            "profile": {"calls": self.profile_calls} if self.profile_calls else None,
        }


class Status(StrEnum):
    """How a launch ended. Reports show one line of advice for each status."""

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

#: ON_DEVICE: the observation that explains why TensorFlow's profiler has no result in a cell's first launch on a GPU.
#: UNDER_WAY: its value while the profiler is active.
ON_DEVICE, UNDER_WAY = "time on the device", "under way"

#: The resource with the number of CPUs that a launch could use at most, because of the quotas of its control groups.
CPU_QUOTA = "cpu_quota"

#: The resource with the number of other launches that started at the same time, each on its own CPU.
BESIDE_STARTS = "beside_starts"


class Role(StrEnum):
    """The purpose of a launch. Only launches with the role `measure` or `control` are used in results."""

    PILOT = "pilot"
    MEASURE = "measure"
    CONTROL = "control"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed batch of steps: its seconds, its number of steps, and the process's CPU seconds (None if unknown)."""

    seconds: SampleSeconds
    steps: Some
    cpu_seconds: Amount | None = None


class Samples(Sequence[Sample]):
    """Samples, stored as columns of numbers. They need 20 % of the memory that Sample objects would need.

    `cpu_seconds` is None if no sample has CPU seconds. If only some samples have none, their value is NaN.
    """

    __slots__ = ("cpu_seconds", "seconds", "steps")

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.seconds = array("d", [sample.seconds for sample in samples])
        self.steps = array("q", [sample.steps for sample in samples])
        used = [sample.cpu_seconds for sample in samples]
        is_known = used.count(None) < len(used)
        self.cpu_seconds = array("d", [math.nan if cpu is None else cpu for cpu in used]) if is_known else None

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Samples":
        """Return the samples stored as columns."""
        return samples if isinstance(samples, Samples) else cls(samples)

    def __len__(self) -> int:
        return len(self.seconds)

    def __iter__(self) -> Iterator[Sample]:
        used = repeat(None) if self.cpu_seconds is None else (None if math.isnan(v) else v for v in self.cpu_seconds)
        return map(Sample, self.seconds, self.steps, used)

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class _Computed:
    """Slots for values that are computed once per launch. Those without an underscore are for the analysis."""

    __slots__ = ("_mean", "_steps", "interference", "timed_part")

    _mean: float
    _steps: int
    interference: str
    timed_part: Any

    def store(self, name: str, value: Of) -> Of:
        """Store a value in a slot, although the launch is frozen, and return the value."""
        object.__setattr__(self, name, value)
        return value


@dataclass(frozen=True, slots=True)
class Seen(_Computed):
    """The record of one process that executed a cell, whether it succeeded or not.

    - `phases`: seconds by name, in order. `phases_cpu`: CPU seconds of the process in each phase, if it reports them.
    - `samples`: the timed samples. `alone`: samples that an interleaved launch took in succession, for a check.
    - `follows`: for each of `alone`, the index of the sample that it follows in a turn. Empty in older runs, which took
      these samples at the end of a launch.
    - `memory`: pairs of a number of calls, and the bytes that the process used after them, in the order of the calls.
    - `error`: the problem, in one line. `stderr`: the end of the process's standard error output.
    - `not_kept`: a line for each artifact that wasn't saved, for the first 20.
    - `observations`: values of the scenario that aren't times.
    - `resources`: CPU, memory and GPU usage, as in docs/dev/worker-protocol.md.
    - `gpus`: the GPUs that the work ran on.
    - `pins`: the packages installed in the environment. `image`: the id of the image, or the hash of the lock.
    """

    status: Status
    phases: Mapping[str, Seconds] = field(default_factory=dict)
    phases_cpu: Mapping[str, Amount] = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    alone: Sequence[Sample] = ()
    follows: Sequence[Count] = ()
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
        """Whether the scenario fixes the number of calls (`bench.once`, `bench.memory`), so it can't be interleaved."""
        return bool(self.memory) or (self.calls_per_sample is None and [sample.steps for sample in self.samples] == [1])

    @property
    def ended_under_profiler(self) -> bool:
        """Whether the process failed while TensorFlow's profiler was active, after all samples were taken.

        Without the profiler, a new launch may succeed.
        """
        return self.status in BROKEN and self.observations.get(ON_DEVICE) == UNDER_WAY


@dataclass(frozen=True, slots=True)
class Outcome(Seen):
    """A backend's result of a launch: its record, and the artifacts by name."""

    artifacts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch(Seen):
    """One line of launches.jsonl: the record of a launch, and its position in the run.

    - `round`: 0 is the pilot round. `attempt`: how often this round of the group was already repeated, from 0.
    - `order`: the launch's position in the round.
    - `started`: the instant in ISO 8601, UTC.
    - `block`: the block of an interleaved launch, from 0. Launches of the same block were measured together.
    - `places`: for each sample of an interleaved launch, its position in the turn, from 0. Otherwise empty.
    - `seconds`: how long the launch took, measured from outside: from the request until its files were copied out.
      The removal of the container and other launches' turns aren't included. Launches that start at the same time have
      equal shares of the time of this start, so that the sum over launches is wall-clock time.
    - `artifacts`: paths, relative to the run's folder.
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
        """Whether the launch succeeded without timing anything, because its scenario only makes observations."""
        return self.status is Status.OK and not self.samples and bool(self.observations)

    @property
    def steps(self) -> int:
        """Number of timed steps."""
        try:
            return self._steps
        except AttributeError:
            return self.store("_steps", sum(Samples.of(self.samples).steps))

    @property
    def mean(self) -> float:
        """Seconds per step: all measured time over all steps. Only for a launch that has samples."""
        try:
            return self._mean
        except AttributeError:
            return self.store("_mean", sum(Samples.of(self.samples).seconds) / self.steps)
