"""Watches GPUs while a launch runs, from outside its container: a thread that asks NVML every tenth of a second."""

import itertools
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from harness.machine.gpu.host import AbsentError, is_loss, opened, processes
from harness.model.gpu import Card

#: Seconds from one reading to the next. NVML itself averages the utilisation over a sixth of a second to a second.
EVERY = 0.1
#: Processes are asked for once in so many readings: they come and go slowly, and the answer takes longer.
PROCESSES_EVERY = 10
#: A steady state that is shorter, in seconds, has no energy: power sensors are read every 20 to 100 ms (Yang and
#: others, arXiv 2312.02741), so that each end of it is known to a tenth of a second.
ENERGY_SECONDS = 1.0
#: So many seconds the last reading may take. A driver that has lost its GPU may never answer.
PATIENCE = 5.0

#: The first process namespace of a Linux machine has this number (PROC_PID_INIT_INO in the kernel).
_FIRST_NAMESPACE = 0xEFFFFFFC

#: Why a GPU lowers its clocks, by NVML's bits (nvmlClocksThrottleReasons). The others are no slowing down: it is idle,
#: its clocks are set so, or it keeps pace with another.
REASONS: Mapping[str, int] = {
    "power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "power_brake": 0x80,
}

#: Makes one number of several.
Summary = Callable[[Sequence[float]], float]

#: Each number's name, what it is made of, and how: over the GPUs at one instant, then over the instants.
_NUMBERS: Sequence[tuple[str, str, Summary, Summary]] = (
    ("gpu_utilization_percent", "utilization", fmean, fmean),
    ("gpu_memory_utilization_percent", "memory_utilization", fmean, fmean),
    ("gpu_memory_used_bytes", "memory_used", sum, max),
    ("gpu_sm_clock_mhz", "sm_clock", fmean, fmean),
    ("gpu_sm_clock_least_mhz", "sm_clock", min, min),
    ("gpu_memory_clock_mhz", "memory_clock", fmean, fmean),
    ("gpu_temperature_celsius", "temperature", max, max),
    ("gpu_power_watts", "power", sum, fmean),
    ("gpu_power_most_watts", "power", sum, max),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU: percent of the time in which a kernel ran, and its memory was used; bytes; MHz; °C; watts; NVML's bits.

    `energy` is a counter, joules since the driver was loaded. None where this driver or this GPU does not tell.
    `is_lost`: the driver has lost the GPU, for good until a reset.
    """

    utilization: float | None = None
    memory_utilization: float | None = None
    memory_used: float | None = None
    sm_clock: float | None = None
    memory_clock: float | None = None
    temperature: float | None = None
    power: float | None = None
    reasons: int | None = None
    energy: float | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Instant:
    """All the GPUs of a launch, at a time in seconds since 1970."""

    time: float
    cards: Sequence[Reading]


def read(library: Any, handle: Any) -> Reading:
    """What the library tells of one GPU now."""
    lost = False

    def ask(function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal lost
        try:
            return function(handle, *arguments)
        except (library.NVMLError, library.NVMLLibraryMismatchError) as error:
            lost = lost or is_loss(library, error)
            return None

    use = ask(library.nvmlDeviceGetUtilizationRates)
    memory = ask(library.nvmlDeviceGetMemoryInfo)
    milliwatts = ask(library.nvmlDeviceGetPowerUsage)
    millijoules = ask(library.nvmlDeviceGetTotalEnergyConsumption)
    return Reading(
        utilization=None if use is None else use.gpu,
        memory_utilization=None if use is None else use.memory,
        memory_used=None if memory is None else memory.used,
        sm_clock=ask(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_SM),
        memory_clock=ask(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_MEM),
        temperature=ask(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU),
        power=None if milliwatts is None else milliwatts / 1000,
        reasons=ask(library.nvmlDeviceGetCurrentClocksThrottleReasons),
        energy=None if millijoules is None else millijoules / 1000,
        is_lost=lost,
    )


def numbers(instants: Sequence[Instant], window: tuple[float, float] | None) -> dict[str, float]:
    """Return the GPU readings of docs/dev/worker-protocol.md. Numbers that no instant has are left out.

    `window` is the steady state, in seconds since 1970. Where it is None, or no instant lies in it, the numbers are of
    all the instants, and `gpu_steady` is 0. Several GPUs make one: memory and power are summed, the hottest counts,
    and an instant is throttled where one of them is.
    """
    inside = [each for each in instants if window and window[0] <= each.time <= window[1]]
    chosen = inside or instants
    if not chosen:
        return {}
    found = {"gpu_samples": float(len(chosen)), "gpu_steady": float(bool(inside))}
    for name, field, across, over in _NUMBERS:
        values = [value for each in chosen if (value := _across(each, field, across)) is not None]
        if values:
            found[name] = float(over(values))
    return found | _throttled(chosen) | _energy(instants, window)


def _energy(instants: Sequence[Instant], window: tuple[float, float] | None) -> dict[str, float]:
    """What the GPUs used while steps were timed, in joules: by how much their counters rose.

    Between two readings a counter is taken to rise evenly. Nothing is told of a short steady state, of one that the
    readings do not hold whole, and of GPUs of which one has no counter (NVIDIA's have one from Volta on).
    """
    counters = [
        (each.time, sum(filter(None, told)))
        for each in instants
        if (told := [card.energy for card in each.cards]) and None not in told
    ]
    if not window or window[1] - window[0] < ENERGY_SECONDS or not counters:
        return {}
    if window[0] < counters[0][0] or window[1] > counters[-1][0]:
        return {}
    begun, ended = (_at(counters, time) for time in window)
    return {"gpu_energy_joules": ended - begun} if ended >= begun else {}


def _at(points: Sequence[tuple[float, float]], time: float) -> float:
    """The value at a time that lies among the points, which are in order of their times."""
    place = max(1, bisect_left(points, time, key=lambda point: point[0]))
    (before, low), (after, high) = points[place - 1], points[place]
    return low + (high - low) * (time - before) / (after - before) if after > before else high


def _across(instant: Instant, field: str, across: Summary) -> float | None:
    values = [value for card in instant.cards if (value := getattr(card, field)) is not None]
    return across(values) if values else None


def _throttled(instants: Sequence[Instant]) -> dict[str, float]:
    """In which share of the instants a GPU was slowed, by reason and, in `gpu_throttled_share`, by heat or supply."""
    told = [[card.reasons for card in each.cards if card.reasons is not None] for each in instants]
    known = [bits for bits in told if bits]
    if not known:
        return {}

    def share(mask: int) -> float:
        return sum(any(bits & mask for bits in cards) for cards in known) / len(known)

    by_reason = {f"gpu_{name}_share": share(bit) for name, bit in REASONS.items()}
    slowed = sum(bit for name, bit in REASONS.items() if name != "power_cap")
    return {"gpu_throttled_share": share(slowed), **{name: value for name, value in by_reason.items() if value}}


#: The container that a process is in: its id, empty for one that is in none, None where that is not known.
ContainerOf = Callable[[int], str | None]


def count_foreign(before: Collection[int], now: Collection[int], container_of: ContainerOf) -> int:
    """How many others compute on a GPU: processes `now` of which some were there `before` the launch began.

    The launch is one container, so a new process outside all containers is another's, and so is each further
    container. A new one of which nothing is known is taken for the launch's own.
    """
    old = {pid for pid in now if pid in before}
    homes = [home for pid in now if pid not in old and (home := container_of(pid)) is not None]
    containers = {home for home in homes if home}
    return len(old) + homes.count("") + max(0, len(containers) - 1)


def container_of(pid: int, root: Path = Path("/")) -> str | None:
    """The id of the container that a process of this machine is in; see ContainerOf.

    Engines without root may give a container no control group of its own: then the namespace of its process numbers
    stands for it. Not known where that may not be read, and where this process is in a container itself: NVML numbers
    processes as the host does.
    """
    try:
        if (root / "proc/self/ns/pid").stat().st_ino != _FIRST_NAMESPACE:
            return None
        text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"[0-9a-f]{64}", text)
        if found:
            return found[0]
        status = (root / f"proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        # its number in each namespace that it is in, the outermost first
        numbers = re.search(r"^NSpid:\t(.+)$", status, re.MULTILINE)
        nested = numbers is not None and len(numbers[1].split()) > 1
        return str((root / f"proc/{pid}/ns/pid").readlink()) if nested else ""
    except OSError:
        return None


@dataclass(eq=False)
class Watch:
    """Watches these cards during its `with` block: one launch. Afterwards, `resources` says what was seen.

    `library` is pynvml where left out; `every` is how many seconds lie between two readings; `clock` gives seconds
    since 1970. Opening the library again, for each launch, is cheap while a run keeps it open (`kept_open`). Never
    raises: a GPU that does not tell leaves its numbers out, and one that is lost all of the launch's.
    """

    cards: Sequence[Card]
    library: Any = None
    every: float = EVERY
    clock: Callable[[], float] = time.time
    container_of: ContainerOf = container_of

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._handles: list[Any] = []
        self._instants: list[Instant] = []
        self._before: set[int] = set()
        self._foreign: int | None = None
        self._is_lost = False
        self._cpu_seconds = 0.0

    def __enter__(self) -> Self:
        try:
            nvml = self._stack.enter_context(opened(self.library))
        except AbsentError:
            return self
        for card in self.cards:
            try:
                self._handles.append(nvml.nvmlDeviceGetHandleByIndex(card.index))
            except nvml.NVMLError as error:
                self._is_lost = self._is_lost or is_loss(nvml, error)
        if self._is_lost or not self._handles:
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
        """Return the GPU readings of docs/dev/worker-protocol.md. `seen` has the ends of the worker's steady state."""
        if self._is_lost:
            return {"gpu_lost": 1.0}
        window = None
        if "steady_started" in seen and "steady_ended" in seen:
            window = seen["steady_started"], seen["steady_ended"]
        found = numbers(self._instants, window)
        if not found:
            return {}
        if self._foreign is not None:
            found["gpu_foreign_processes"] = float(self._foreign)
        return {**found, "gpu_watch_cpu_seconds": self._cpu_seconds}

    def _run(self, nvml: Any) -> None:
        for taken in itertools.count():
            self._instants.append(Instant(self.clock(), [read(nvml, handle) for handle in self._handles]))
            if any(card.is_lost for card in self._instants[-1].cards):
                self._is_lost = True  # it does not come back, and each further question may take the driver long
                return
            if taken % PROCESSES_EVERY == 0 and (now := self._processes(nvml)) is not None:
                others = count_foreign(self._before, now, self.container_of)
                self._foreign = max(others, self._foreign or 0)
            self._cpu_seconds = time.thread_time()
            if self._done.wait(self.every):
                return

    def _processes(self, nvml: Any) -> set[int] | None:
        """All that compute on these GPUs, None where none of them tells."""
        told = [known for handle in self._handles if (known := processes(nvml, handle)) is not None]
        return {process.pid for known in told for process in known} if told else None
