"""Monitors GPUs during a launch, from outside its process: a thread reads NVML 10 times per second."""

import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from harness.machine import sysfs
from harness.machine.gpu.host import LibraryUnavailableError, is_loss, list_processes, open_library
from harness.model.gpu import Gpu

#: Seconds between two readings. NVML itself averages the utilization over 1/6 s to 1 s.
EVERY = 0.1
#: The list of processes is read with every 10th reading, because it changes slowly and takes longer to read.
PROCESSES_EVERY = 10
#: The shortest steady state, in seconds, for which an energy is reported. The driver reads power sensors every 20 to
#: 100 ms (Yang and others, arXiv 2312.02741), so the start and the end are exact to about 0.1 s.
ENERGY_SECONDS = 1.0
#: Seconds to wait for the last reading. A driver that lost its GPU may never answer.
PATIENCE = 5.0

#: The first process namespace of a Linux machine has this number (PROC_PID_INIT_INO in the kernel).
_FIRST_NAMESPACE = 0xEFFFFFFC

#: Reasons for a slowdown, by NVML's bits (nvmlClocksThrottleReasons). The other bits have harmless reasons: the GPU is
#: idle, its clocks are set, or it is synchronized with another GPU.
REASONS: Mapping[str, int] = {
    "power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "power_brake": 0x80,
}

#: A function that combines several numbers into one.
Summary = Callable[[Sequence[float]], float]

#: For each number: its name, its field in Reading, and the functions that combine values over GPUs and over instants.
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
    """One reading of a GPU, in these units: percent of the time, bytes, MHz, °C, watts. `reasons` are NVML's bits.

    `energy` is a counter of joules since the driver was loaded. A value that this driver or GPU doesn't report is None.
    `is_lost`: the driver lost the GPU, which needs a reset.
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
    """Readings of all GPUs of a launch, with the time in seconds since 1970."""

    time: float
    gpus: Sequence[Reading]


def read(library: Any, handle: Any) -> Reading:
    """Read one GPU."""
    has_lost_gpu = False

    def ask(function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal has_lost_gpu
        try:
            return function(handle, *arguments)
        except (library.NVMLError, library.NVMLLibraryMismatchError) as error:
            has_lost_gpu = has_lost_gpu or is_loss(library, error)
            return None

    utilization = ask(library.nvmlDeviceGetUtilizationRates)
    memory = ask(library.nvmlDeviceGetMemoryInfo)
    milliwatts = ask(library.nvmlDeviceGetPowerUsage)
    millijoules = ask(library.nvmlDeviceGetTotalEnergyConsumption)
    return Reading(
        utilization=None if utilization is None else utilization.gpu,
        memory_utilization=None if utilization is None else utilization.memory,
        memory_used=None if memory is None else memory.used,
        sm_clock=ask(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_SM),
        memory_clock=ask(library.nvmlDeviceGetClockInfo, library.NVML_CLOCK_MEM),
        temperature=ask(library.nvmlDeviceGetTemperature, library.NVML_TEMPERATURE_GPU),
        power=None if milliwatts is None else milliwatts / 1000,
        reasons=ask(library.nvmlDeviceGetCurrentClocksThrottleReasons),
        energy=None if millijoules is None else millijoules / 1000,
        is_lost=has_lost_gpu,
    )


def summarize_readings(instants: Sequence[Instant], window: tuple[float, float] | None) -> dict[str, float]:
    """Return the GPU readings that docs/dev/worker-protocol.md describes. Numbers without any value are left out.

    `window` is the start and the end of the steady state, in seconds since 1970. If it is None, or contains no instant,
    the numbers cover all instants, and `gpu_steady` is 0. Several GPUs are combined: memory and power are added, the
    highest temperature counts, and an instant is throttled if one of the GPUs is.
    """
    steady_instants = [instant for instant in instants if window and window[0] <= instant.time <= window[1]]
    selected = steady_instants or instants
    if not selected:
        return {}
    readings = {"gpu_samples": float(len(selected)), "gpu_steady": float(bool(steady_instants))}
    for name, field, combine_gpus, combine_instants in _NUMBERS:
        values = [value for instant in selected if (value := _combine_values(instant, field, combine_gpus)) is not None]
        if values:
            readings[name] = float(combine_instants(values))
    return readings | _compute_throttled_shares(selected) | _compute_energy(instants, window)


def _compute_energy(instants: Sequence[Instant], window: tuple[float, float] | None) -> dict[str, float]:
    """Return the energy of the timed steps in joules: the increase of the GPUs' counters.

    Values between two readings are interpolated. The result is empty if the steady state is short, if the readings
    don't cover it completely, or if a GPU has no counter (NVIDIA's GPUs have a counter from Volta on).
    """
    counters = [
        (instant.time, sum(filter(None, energies)))
        for instant in instants
        if (energies := [gpu.energy for gpu in instant.gpus]) and None not in energies
    ]
    if not window or window[1] - window[0] < ENERGY_SECONDS or not counters:
        return {}
    if window[0] < counters[0][0] or window[1] > counters[-1][0]:
        return {}
    import numpy as np  # noqa: PLC0415 - it loads slowly

    times, joules = zip(*counters, strict=True)
    start_joules, end_joules = map(float, np.interp(window, times, joules))
    return {"gpu_energy_joules": end_joules - start_joules} if end_joules >= start_joules else {}


def _combine_values(instant: Instant, field: str, combine_gpus: Summary) -> float | None:
    values = [value for gpu in instant.gpus if (value := getattr(gpu, field)) is not None]
    return combine_gpus(values) if values else None


def _compute_throttled_shares(instants: Sequence[Instant]) -> dict[str, float]:
    """Return the share of instants in which a GPU was slowed down, by reason and in total (`gpu_throttled_share`)."""
    all_readings = [[gpu.reasons for gpu in instant.gpus if gpu.reasons is not None] for instant in instants]
    readings = [bits for bits in all_readings if bits]
    if not readings:
        return {}

    def share(mask: int) -> float:
        return sum(any(bits & mask for bits in gpus) for gpus in readings) / len(readings)

    by_reason = {f"gpu_{name}_share": share(bit) for name, bit in REASONS.items()}
    slowdown_bits = sum(bit for name, bit in REASONS.items() if name != "power_cap")
    return {"gpu_throttled_share": share(slowdown_bits), **{name: value for name, value in by_reason.items() if value}}


#: A function that returns the id of a process's container: empty outside containers, and None if it isn't known.
ContainerOf = Callable[[int], str | None]


def count_foreign(before: Collection[int], now: Collection[int], container_of: ContainerOf) -> int:
    """Return how many foreign processes compute on a GPU. `before` are the processes from before the launch.

    A process is foreign if it doesn't belong to the launch. The launch is one container, so new processes outside
    containers and each additional container are foreign. A new process in an unknown container isn't counted.
    """
    earlier = {pid for pid in now if pid in before}
    ids = [identity for pid in now if pid not in earlier and (identity := container_of(pid)) is not None]
    containers = {identity for identity in ids if identity}
    return len(earlier) + ids.count("") + max(0, len(containers) - 1)


def container_of(pid: int, root: Path = Path("/")) -> str | None:
    """Return the id of the container of a process on this machine (see ContainerOf).

    Some rootless engines create no control group for a container. Then the id is the namespace of its process numbers.
    The result is None if the namespace can't be read, and if this process is in a container, because NVML uses the
    host's process numbers. It is also None for this process's children, such as launches without a container.
    """
    try:
        if (root / "proc/self/ns/pid").stat().st_ino != _FIRST_NAMESPACE or _is_descendant(pid, root):
            return None
        text = (root / f"proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        match = re.search(r"[0-9a-f]{64}", text)
        if match:
            return match[0]
        status = (root / f"proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        # the process's number in each of its namespaces, the outermost first
        numbers = re.search(r"^NSpid:\t(.+)$", status, re.MULTILINE)
        is_nested = numbers is not None and len(numbers[1].split()) > 1
        return str((root / f"proc/{pid}/ns/pid").readlink()) if is_nested else ""
    except OSError:
        return None


def _is_descendant(pid: int, root: Path) -> bool:
    """Return whether a process is a descendant of this process."""
    while pid > 1 and pid != os.getpid():
        # the name of the program, in parentheses, can contain any characters
        parent = (sysfs.read_text(root / f"proc/{pid}/stat") or "").rpartition(")")[2].split()[1:2]
        pid = int(parent[0]) if parent else 0
    return pid > 1


@dataclass(eq=False)
class GpuMonitor:
    """Monitors GPUs during its `with` block, which is one launch. After the block, `resources` returns the numbers.

    `library` is pynvml by default. `every` is the number of seconds between two readings. `clock` returns seconds since
    1970. Opening the library for each launch is fast, because a run keeps the driver loaded (`keep_driver_loaded`).
    This class never raises. If a GPU doesn't report a value, its number is missing. If a GPU is lost, all numbers of
    the launch are missing.
    """

    gpus: Sequence[Gpu]
    library: Any = None
    every: float = EVERY
    clock: Callable[[], float] = time.time
    container_of: ContainerOf = container_of

    def __post_init__(self) -> None:
        self._stack = ExitStack()
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None
        self._handles: list[Any] = []
        self._instants: list[Instant] = []
        self._earlier_processes: set[int] = set()
        self._foreign_count: int | None = None
        self._is_lost = False
        self._cpu_seconds = 0.0

    def __enter__(self) -> Self:
        try:
            nvml = self._stack.enter_context(open_library(self.library))
        except LibraryUnavailableError:
            return self
        for gpu in self.gpus:
            try:
                self._handles.append(nvml.nvmlDeviceGetHandleByIndex(gpu.index))
            except nvml.NVMLError as error:
                self._is_lost = self._is_lost or is_loss(nvml, error)
        if self._is_lost or not self._handles:
            return self
        self._earlier_processes = self._read_processes(nvml) or set()
        self._thread = threading.Thread(target=self._run, args=(nvml,), name="gpu watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_event.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)
            if self._thread.is_alive():  # the thread still uses the library, and closing it now would cause a crash
                return
        self._stack.close()

    def resources(self, seen: Mapping[str, float]) -> dict[str, float]:
        """Return the GPU readings that docs/dev/worker-protocol.md describes, for the steady state in `seen`.

        `seen` are the resources that the worker reported.
        """
        if self._is_lost:
            return {"gpu_lost": 1.0}
        window = None
        if "steady_started" in seen and "steady_ended" in seen:
            window = seen["steady_started"], seen["steady_ended"]
        readings = summarize_readings(self._instants, window)
        if not readings:
            return {}
        if self._foreign_count is not None:
            readings["gpu_foreign_processes"] = float(self._foreign_count)
        return {**readings, "gpu_watch_cpu_seconds": self._cpu_seconds}

    def _run(self, nvml: Any) -> None:
        for index in itertools.count():
            self._instants.append(Instant(self.clock(), [read(nvml, handle) for handle in self._handles]))
            if any(gpu.is_lost for gpu in self._instants[-1].gpus):
                self._is_lost = True  # stop reading: the GPU doesn't come back, and each reading could take long
                return
            if index % PROCESSES_EVERY == 0 and (now := self._read_processes(nvml)) is not None:
                foreign = count_foreign(self._earlier_processes, now, self.container_of)
                self._foreign_count = max(foreign, self._foreign_count or 0)
            self._cpu_seconds = time.thread_time()
            if self._stop_event.wait(self.every):
                return

    def _read_processes(self, nvml: Any) -> set[int] | None:
        """Return the processes that compute on these GPUs, or None if no GPU reports them."""
        lists = [processes for handle in self._handles if (processes := list_processes(nvml, handle)) is not None]
        return {process.pid for entries in lists for process in entries} if lists else None
