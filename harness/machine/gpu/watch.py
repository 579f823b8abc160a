"""Watches GPUs while a launch runs, from outside its container: a thread that asks NVML every tenth of a second."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from harness.machine.gpu import foreign, readings
from harness.machine.gpu.nvml import AbsentError, asked, opened, processes
from harness.machine.gpu.readings import Instant
from harness.model.gpu import Card, GpuHost

#: Seconds from one reading to the next. NVML itself averages the utilisation over a sixth of a second to a second.
EVERY = 0.1
#: Processes are asked for once in so many readings: they come and go slowly, and the answer takes longer.
PROCESSES_EVERY = 10
#: So many seconds the last reading may take. A driver that has lost its GPU may never answer.
PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Watches these cards during each launch of a run: called, it gives what stands around one launch.

    `library` is pynvml where left out; `every` is how many seconds lie between two readings; `clock` gives seconds
    since 1970.
    """

    cards: Sequence[Card]
    library: Any = None
    every: float = EVERY
    clock: Callable[[], float] = time.time
    container_of: foreign.ContainerOf = foreign.container_of

    def __call__(self) -> "Watching":
        """What watches one launch."""
        return Watching(self)


class Watching:
    """Watches what stands in its `with` block: one launch. Afterwards, `resources` says what was seen.

    The library is opened anew for each launch, so that a run leaves nothing open. Never raises: a GPU that does not
    tell leaves its numbers out.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._stack = ExitStack()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._handles: list[Any] = []
        self._instants: list[Instant] = []
        self._before: set[int] = set()
        self._foreign: int | None = None
        self._cpu_seconds = 0.0

    def __enter__(self) -> Self:
        try:
            nvml = self._stack.enter_context(opened(self._watch.library))
        except AbsentError:
            return self
        found = (asked(nvml, nvml.nvmlDeviceGetHandleByIndex, card.index) for card in self._watch.cards)
        self._handles = [handle for handle in found if handle is not None]
        if not self._handles:
            return self
        self._before = self._processes(nvml) or set()
        self._thread = threading.Thread(target=self._run, args=(nvml,), name="gpu watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)
            if self._thread.is_alive():  # closed under its hands, the library would crash
                return
        self._stack.close()

    def resources(self, seen: Mapping[str, float]) -> dict[str, float]:
        """Numbers by the names of docs/contracts.md; `seen` is what the worker told, with the steady state's ends."""
        window = None
        if "steady_started" in seen and "steady_ended" in seen:
            window = seen["steady_started"], seen["steady_ended"]
        found = readings.numbers(self._instants, window)
        if not found:
            return {}
        if self._foreign is not None:
            found["gpu_foreign_processes"] = float(self._foreign)
        return {**found, "gpu_watch_cpu_seconds": self._cpu_seconds}

    def _run(self, nvml: Any) -> None:
        taken = 0
        while True:
            self._instants.append(
                Instant(self._watch.clock(), [readings.read(nvml, handle) for handle in self._handles])
            )
            if taken % PROCESSES_EVERY == 0:
                self._look_for_others(nvml)
            taken += 1
            self._cpu_seconds = time.thread_time()
            if self._done.wait(self._watch.every):
                return

    def _look_for_others(self, nvml: Any) -> None:
        now = self._processes(nvml)
        if now is not None:
            others = foreign.count(self._before, now, self._watch.container_of)
            self._foreign = max(others, self._foreign or 0)

    def _processes(self, nvml: Any) -> set[int] | None:
        """All that compute on these GPUs, None where none of them tells."""
        told = [known for handle in self._handles if (known := processes(nvml, handle)) is not None]
        return {process.pid for known in told for process in known} if told else None


def choose(cards: Sequence[Card], host: GpuHost) -> tuple[Watch | None, str]:
    """The watch of a run on these cards; else None and, in a clause, why its GPUs are not watched."""
    if host.absent:
        return None, host.absent
    return (Watch(cards), "") if cards else (None, "NVML knows none of the GPUs that launches get")
