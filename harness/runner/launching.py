"""One launch, from its start until it is stored in the run's folder.

Several launches may start at the same time. After that, only one runs at a time.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Protocol

from harness.model.backend import LaunchHandle
from harness.model.launch import Launch, Outcome, Role, Seen, Status
from harness.model.scenario import Cell
from harness.store.folder import RunFolder

#: The advice for a launch that ended without a result, by its status.
ADVICE = {
    Status.OK: "",
    Status.FAILED: "The error output of the launch is in details.md and report.html. To see all of this output, run "
    "the script that `harness bundle RUN -s … -e … -a …` writes for the cell.",
    Status.TIMEOUT: "Increase --timeout, or choose a smaller model or less data.",
    Status.OOM: "Increase --memory, or choose a smaller model or less data.",
    Status.NOT_AVAILABLE: "Choose an environment that meets the requirements of the scenario.",
    Status.CPU_FALLBACK: "The error output of the launch shows which libraries TensorFlow did not find. To check this "
    "machine, run: harness doctor --gpu",
    Status.OTHER_GPU: "Pass the GPU that the launch used with --gpus. To list the GPUs, run `harness doctor --gpu`. If "
    "Docker Engine gives all GPUs to each launch, which is normal on WSL2, TensorFlow uses the first GPU.",
    # the command to resume needs the run's folder, so the code that prints the advice adds it
    Status.INTERRUPTED: "",
}

#: The advice if the driver lost the GPU during the launch. It replaces the advice for the launch's status.
GPU_LOST = (
    "The driver lost its GPU during the launch. To see the reason, run `sudo dmesg | grep -i xid`. To make the GPU "
    "available again, run `sudo nvidia-smi --gpu-reset`, or restart the machine."
)


#: The error of a launch that couldn't import a module.
_NO_MODULE = re.compile(r"No module named '([\w.]{1,80})'")


class Watched(Protocol):
    """The record of a launch that was monitored from outside."""

    def resources(self, seen: Mapping[str, float]) -> Mapping[str, float]:
        """Return the resources of docs/dev/worker-protocol.md. `seen` has the resources that the worker sent."""


#: Returns a context manager that surrounds one launch and monitors it.
Watch = Callable[[], AbstractContextManager[Watched]]


@dataclass(frozen=True, slots=True)
class LaunchSlot:
    """The place of a launch in a run. The fields are the same as in `Launch`."""

    group: str
    round: int
    attempt: int
    order: int
    role: Role
    block: int = 0

    @property
    def folder(self) -> str:
        """The folder name for artifacts. It contains a hash of the group's name, which may have any characters."""
        group = hashlib.sha256(self.group.encode()).hexdigest()[:8]
        return f"{group}-round{self.round}-attempt{self.attempt}-{self.order}"


@dataclass(eq=False)  # two launches are never equal
class Launching:
    """A launch in progress, as a context manager. At the end of the block, a launch that still runs is ended.

    `hold` returns a context manager for the backend's handle, and `clock` returns seconds. `turn_seconds` is the total
    duration of the turns so far, each divided by its samples. `seconds` is the total duration of the launch so far, as
    in `Launch.seconds`. `waits` is true while the launch waits for a command. `facts` are resources that are known
    before the launch. If other launches start at the same time, `cpus` are the CPUs on which the launch is measured.
    """

    slot: LaunchSlot
    cell: Cell
    hold: Callable[[], AbstractContextManager[LaunchHandle]]
    watch: Watch | None
    clock: Callable[[], float]
    facts: Mapping[str, float]
    cpus: Sequence[int]
    waits: bool = field(default=False, init=False)
    turn_seconds: float = field(default=0.0, init=False)
    seconds: float = field(default=0.0, init=False)
    _is_started: bool = field(default=False, init=False)
    _is_stored: bool = field(default=False, init=False)
    _places: list[int] = field(default_factory=list, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def __enter__(self) -> "Launching":
        self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start the launch, and return immediately."""
        with self._measure_time():
            self._open().start()
            self._is_started = True

    def follow(self) -> None:
        """Start the launch if necessary, and follow it until it waits for a command or has ended."""
        with self._measure_time():
            self.waits = (self._handle if self._is_started else self._open()).resume()

    def _open(self) -> LaunchHandle:
        self._watch_stack = self._stack.enter_context(ExitStack())
        self._watched = self._watch_stack.enter_context(self.watch()) if self.watch else None
        self._handle = self._stack.enter_context(self.hold())
        return self._handle

    def move(self) -> None:
        """Move a launch that started at the same time as others to the CPUs on which it is measured."""
        with self._measure_time():
            self._handle.move(self.cpus)

    def warm_up(self) -> None:
        """Let a launch that started at the same time as others warm up, until it waits for its first turn."""
        self.move()  # again, because a library may have moved its threads back
        self._send("measure")

    def turn(self, place: int, samples: int) -> None:
        """Let the launch take one turn with some samples. `place` is its position in the turn, from 0."""
        self.turn_seconds += self._send("turn" if samples == 1 else f"turn {samples}") / samples
        self._places.append(place)

    def end(self) -> None:
        """Let the launch run to its end."""
        self._send("end")

    def _send(self, word: str) -> float:
        """Send a command to the worker, and return the seconds until it waits again or has ended."""
        previous_seconds = self.seconds
        with self._measure_time():
            self.waits = self._handle.resume(word)
        return self.seconds - previous_seconds

    @contextmanager
    def _measure_time(self) -> Iterator[None]:
        start = self.clock()
        yield
        self.seconds += self.clock() - start

    def store(self, folder: RunFolder) -> Launch:
        """Store the finished launch, remove its leftovers, which may take a long time, and return the launch."""
        start = self.clock()
        outcome = self._handle.outcome()
        self._watch_stack.close()
        watched = self._watched.resources(outcome.resources) if self._watched else {}
        outcome = replace(outcome, resources={**outcome.resources, **watched, **self.facts})
        seconds = round(self.seconds + self.clock() - start, 6)
        artifacts = folder.write_artifacts(self.slot.folder, outcome.artifacts)
        launch = replace(
            self._record(outcome), seconds=seconds, artifacts=artifacts, places=self._places[: len(outcome.samples)]
        )
        folder.append(launch)
        self._is_stored = True
        self._stack.close()
        return launch

    def store_interrupted(self, folder: RunFolder) -> None:
        """Store the launch as interrupted, unless it is already stored and only its leftovers remain."""
        if not self._is_stored:
            folder.append(self._record(Outcome(status=Status.INTERRUPTED)))

    def _record(self, outcome: Outcome) -> Launch:
        values = {field.name: getattr(outcome, field.name) for field in fields(Seen)}
        advice = GPU_LOST if outcome.resources.get("gpu_lost") else _find_advice(outcome, self.cell.environment)
        if outcome.status is Status.OK:
            # otherwise, TensorFlow's warnings in successful launches would be most of the file
            values["stderr"] = ""
        return Launch(**values, **asdict(self.slot), cell=self.cell, started=self._started, advice=advice)


def share_seconds(launchings: Sequence[Launching]) -> None:
    """Divide the total seconds of launches that started together equally among them."""
    total = sum(member.seconds for member in launchings)
    for launching in launchings:
        launching.seconds = total / len(launchings)


def _find_advice(outcome: Outcome, environment: str) -> str:
    """Return the advice for a launch with this outcome."""
    missing = _NO_MODULE.search(outcome.error) if outcome.status is Status.FAILED else None
    if missing:
        return (
            f"The module {missing[1]} isn't in {environment}. Add its package to the environment, -e "
            f"{environment}+PACKAGE==VERSION, and to `dependencies` in the scenario's header."
        )
    return ADVICE[outcome.status]
