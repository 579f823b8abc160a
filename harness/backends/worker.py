"""The part of a launch that is the same for every backend: the worker's input, its events, and the outcome."""

import json
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from harness.backends.artifacts import Artifacts
from harness.backends.events import Events
from harness.backends.untrusted_text import Tail, join_lines
from harness.model.errors import UsageError
from harness.model.gpu import Gpu, UsedGpu, describe_gpu
from harness.model.launch import CPU_QUOTA, Job, Outcome, Status
from harness.model.numbers import LENGTH, is_amount
from harness.model.texts import format_plain

#: The file with the job and the folder for artifacts, relative to the folder in which the worker starts. A scenario may
#: have its own files and folders of any name, but none in the kit's folder.
_JOB, ARTIFACTS = "kit/job.json", "kit/artifacts"

#: The arguments of the interpreter. Output isn't buffered, so that the output of a killed process isn't lost.
ARGUMENTS = ("-u", "-m", "kit", _JOB)

#: Variables of every launch: TensorFlow logs only errors, and no bytecode is written into the temporary folder.
ENVIRON: Mapping[str, str] = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"}

#: A function that reads the next bytes of a stream. It returns True if it has read enough, so that the process may
#: be ended.
Read = Callable[[bytes], object]


def collect_files(job: Job, *, die_with_parent: bool) -> dict[str, bytes]:
    """Return all files for the folder in which the worker starts, by relative name."""
    document = job.document(die_with_parent=die_with_parent, artifacts=ARTIFACTS)
    contents = {_JOB: json.dumps(document).encode()} | dict(job.files)
    for name in contents:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise UsageError(f"The files of a scenario must be in its folder, but {name!r} isn't.")
    return contents


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a process: its exit code, or the `signal` that killed it (otherwise 0).

    `oom`: the process was killed because it ran out of memory. `seconds` is the time limit, if the process exceeded it.
    `disk` is the number of bytes that the process had written to its disk, if it was killed for that.
    """

    exit_code: int = 0
    signal: int = 0
    oom: bool = False
    seconds: float | None = None
    disk: int = 0

    @property
    def clean(self) -> bool:
        """Whether the process ended by itself, with exit code 0."""
        return not (self.exit_code or self.signal or self.oom or self.seconds is not None or self.disk)

    def __str__(self) -> str:
        if not self.signal:
            return f"exit code {self.exit_code}"
        try:
            return f"killed by signal {self.signal} ({signal.Signals(self.signal).name})"
        except ValueError:
            return f"killed by signal {self.signal}"


class WorkerProcess(Protocol):
    """The process of one launch. Its backend prepares and removes it."""

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start the process. Its output goes to the readers."""
        ...

    def move(self, cpus: Collection[int]) -> None:
        """Move all of its threads to these CPUs. If the process has ended, this does nothing."""
        ...

    def follow(self, seconds: float) -> bool:
        """Read the output until the process ends or is killed at the time limit.

        Return True if a reader has read enough before that.
        """
        ...

    def catch_up(self) -> None:
        """Read the output that has arrived so far, without waiting. Stop when a reader has read enough."""
        ...

    def send(self, word: str) -> None:
        """Write a line to its standard input. If the process has ended, this does nothing."""
        ...

    def end(self) -> "Ending":
        """Kill the process if it hasn't ended, and return how it ended."""
        ...


class HeldLaunch:
    """A launch that waits and continues on command. This part of a launch doesn't depend on the backend.

    `seconds` is the time limit for its total running time. `conclude` returns the outcome when the process has ended.
    """

    def __init__(
        self, process: WorkerProcess, job: Job, seconds: float, conclude: "Callable[[Events, Ending, Tail], Outcome]"
    ) -> None:
        self._process = process
        self._events, self._stderr = Events(takes_turns=job.sampling.turns is not None, waits=job.waits), Tail()
        self._remaining_seconds = seconds
        self._conclude = conclude
        self._is_started = False
        self._outcome: Outcome | None = None

    def start(self) -> None:
        """Start the launch, and return immediately."""
        self._is_started = True
        self._process.start(self._events.feed, self._stderr.feed)

    def resume(self, word: str = "") -> bool:
        """Send `word` to a waiting launch, and let it run until it waits again. Return False if it has ended."""
        if self._outcome is not None:
            return False
        if self._events.is_waiting:
            self._process.catch_up()
            self._events.ask(word)
            self._process.send(word)
        elif not self._is_started:
            self.start()
        start_time = time.monotonic()
        if not self._events.error:
            self._process.follow(self._remaining_seconds)
        self._remaining_seconds -= time.monotonic() - start_time
        if not self._events.is_waiting:
            self._outcome = self._conclude(self._events, self._process.end(), self._stderr)
        return self._outcome is None

    def move(self, cpus: Collection[int]) -> None:
        """Move the launch to these CPUs."""
        self._process.move(cpus)

    def outcome(self) -> Outcome:
        """Return the outcome. Raises RuntimeError if the launch hasn't ended."""
        if self._outcome is None:
            raise RuntimeError("The launch has not ended.")
        return self._outcome


def is_waiting_for_words(job: Job) -> bool:
    """Return whether the worker waits for commands on its standard input."""
    return job.sampling.turns is not None or job.waits


def make_outcome(
    events: Events,
    ending: Ending,
    stderr: Tail,
    *,
    image: str,
    artifacts: Artifacts,
    requested_at: float | None = None,
    gpus: Sequence[Gpu] = (),
    quota: float | None = None,
) -> Outcome:
    """Return the launch's outcome.

    `requested_at` is the time (seconds since the epoch) at which the start of a container was requested, if the
    container uses this machine's clock. `gpus` are the GPUs that the launch should use; empty if unknown. `quota` is
    the largest number of CPUs that the launch could use; None without a CPU quota.
    """
    status, error = _determine_status(events, ending)
    if status is Status.OK and (gpu_error := _describe_wrong_gpus(events.gpus, gpus)):
        status, error = Status.OTHER_GPU, gpu_error
    return Outcome(
        status=status,
        phases=_compute_start_phases(events, requested_at) | events.phases,
        phases_cpu=events.phases_cpu,
        samples=tuple(events.samples),
        alone=tuple(events.alone),
        follows=tuple(events.follows),
        calls_per_sample=events.calls_per_sample,
        memory=events.memory,
        observations=events.observations,
        fingerprint=events.fingerprint,
        resources=events.resources if quota is None else {**events.resources, CPU_QUOTA: quota},
        gpus=events.gpus,
        pins=events.pins,
        artifacts=artifacts.files,
        image=image,
        error=join_lines(error),
        stderr=_join_stderr(stderr.text(), events.traceback),
        not_kept=tuple(artifacts.refused),
    )


def _determine_status(events: Events, ending: Ending) -> tuple[Status, str]:
    """Return the status and the error, from the end of the process, invalid output, or the worker's last event."""
    if ending.seconds is not None:
        state = "its work was finished, but the process was" if events.status is not None else "it was"
        return Status.TIMEOUT, f"{state} still running after {format_plain(ending.seconds)} s"
    if ending.disk:
        return Status.FAILED, f"it was killed: it wrote {ending.disk / 1e9:.1f} GB to its disk"
    if ending.oom:
        return Status.OOM, "it was killed: out of memory"
    if events.error:
        return Status.FAILED, events.error
    contradiction = _describe_contradiction(events, ending)
    if contradiction or events.status is None:
        return Status.FAILED, contradiction
    return events.status, events.reason


def _describe_wrong_gpus(used_gpus: Sequence[UsedGpu], gpus: Sequence[Gpu]) -> str:
    """Describe the wrong GPUs that the work used; empty if there are none, or if this is unknown."""
    wrong_gpus = [gpu for gpu in used_gpus if not any(map(gpu.may_be, gpus))]
    if not gpus or not wrong_gpus:
        return ""
    used_names = map(describe_gpu, wrong_gpus)
    target_names = (f"GPU {gpu.index}: {describe_gpu(gpu)}" for gpu in gpus)
    return f"it ran on {' and '.join(used_names)} instead of {' or '.join(target_names)}"


def _describe_contradiction(events: Events, ending: Ending) -> str:
    """Describe a contradiction between the last events and the end of the process; empty if they agree."""
    if events.status is None:
        position = " in the middle of a line" if events.torn else ""
        return f"it ended{position} without reporting an outcome: {ending}"
    if events.torn:
        return "it wrote another result after the last event"
    if events.status is Status.OK and not ending.clean:
        return f"its work was finished, but the process ended with {ending}"
    return ""


def _compute_start_phases(events: Events, requested_at: float | None) -> dict[str, float]:
    """Return the phases before the worker's first line, as far as its clock and the clock of this process agree."""
    worker_time, started = events.hello.get("time"), events.hello.get("started")
    if started is None:
        return {}
    phases = {}
    if requested_at is not None:
        phases["container start"] = started - requested_at
    if worker_time is not None:
        phases["interpreter start"] = worker_time - started
    # a negative or huge difference comes from two clocks, or from a clock that was set, so it is left out
    return {name: seconds for name, seconds in phases.items() if seconds in LENGTH and is_amount(seconds)}


def _join_stderr(text: str, traceback: str) -> str:
    parts = [text]
    if traceback.strip() and traceback.strip() not in text:
        tail = Tail()
        tail.feed(traceback.encode("utf-8", "replace"))
        parts.append(tail.text())
    return "\n".join(part.rstrip("\n") for part in parts if part)
