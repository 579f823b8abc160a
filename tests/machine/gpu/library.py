"""NVIDIA's management library, replaced at its own interface: what is not answered here raises as a real GPU does."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pynvml

Answers = Mapping[str, Any]


class Library:
    """Answers as pynvml does for some GPUs: `cards` maps, for each, the names of functions to what they return.

    An answer that is an exception is raised, and one that can be called is called for each question. What has no
    answer is not supported, as on a GPU that does not have it. Constants and errors are the real module's.
    """

    def __init__(self, cards: Sequence[Answers], starts: BaseException | None = None, **system: Any) -> None:
        self._cards = cards
        self._starts = starts
        self._system = system
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        if self._starts is not None:
            raise self._starts
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self._cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Answers:  # noqa: N802
        return self._cards[index]

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)  # a name that the real module does not have is a mistake of ours
        if not name.startswith(("nvmlDevice", "nvmlSystem")):
            return real

        def answer(*arguments: Any) -> Any:
            if not self.open:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
            of_card = bool(arguments) and isinstance(arguments[0], Mapping)
            answers = arguments[0] if of_card else self._system
            result = answers.get(name, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))
            result = result(*arguments[of_card:]) if isinstance(result, Callable) else result  # type: ignore[arg-type]
            if isinstance(result, BaseException):
                raise result
            return result

        return answer


def process(pid: int, memory: int | None = None) -> SimpleNamespace:
    """A process as the library tells of it."""
    return SimpleNamespace(pid=pid, usedGpuMemory=memory)


#: A card of 2014 on the last driver that knows it: no MIG, no reasons for its clocks, processes in the older structure.
K80: Answers = {
    "nvmlDeviceGetUUID": "GPU-00000000-0000-0000-0000-000000000037",
    "nvmlDeviceGetName": "Tesla K80",
    "nvmlDeviceGetCudaComputeCapability": (3, 7),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=12 * 2**30, used=2**30),
    "nvmlDeviceGetComputeRunningProcesses": pynvml.NVMLLibraryMismatchError("use a versioned function"),
    "nvmlDeviceGetComputeRunningProcesses_v2": [process(41, 2**20)],
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=90, memory=30),
    "nvmlDeviceGetClockInfo": {pynvml.NVML_CLOCK_SM: 562, pynvml.NVML_CLOCK_MEM: 2505}.__getitem__,
    "nvmlDeviceGetTemperature": 70,
    "nvmlDeviceGetPowerUsage": 120_500,
}

#: A card of 2022.
H100: Answers = {
    "nvmlDeviceGetUUID": "GPU-00000000-0000-0000-0000-000000000090",
    "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
    "nvmlDeviceGetCudaComputeCapability": (9, 0),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 2**30, used=3 * 2**30),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:65:00.0"),
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetPowerManagementLimit": 350_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetMaxClockInfo": {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}.__getitem__,
    "nvmlDeviceGetEccMode": [1, 0],
    "nvmlDeviceGetComputeMode": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
    "nvmlDeviceGetMaxPcieLinkGeneration": 4,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 8,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetVirtualizationMode": pynvml.NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH,
    "nvmlDeviceGetDisplayActive": 0,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=60, memory=20),
    "nvmlDeviceGetClockInfo": {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}.__getitem__,
    "nvmlDeviceGetTemperature": 40,
    "nvmlDeviceGetPowerUsage": 400_000,
    "nvmlDeviceGetTotalEnergyConsumption": 1_500_500,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0,
}

#: An instance of a divided card.
SLICE: Answers = {
    "nvmlDeviceGetUUID": "MIG-00000000-0000-0000-0000-000000000001",
    "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=5 * 2**30, used=0),
}

#: A card that has room for seven instances, and one in the third place.
DIVIDED: Answers = {
    **H100,
    "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB",
    "nvmlDeviceGetCudaComputeCapability": (8, 0),
    "nvmlDeviceGetMigMode": [1, 1],
    "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetMigDeviceHandleByIndex": lambda place: (
        SLICE if place == 2 else pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
    ),
    "nvmlDeviceGetUtilizationRates": pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED),
}

OLD: Mapping[str, Any] = {
    "nvmlSystemGetDriverVersion": "470.256.02",
    "nvmlSystemGetCudaDriverVersion_v2": 11040,
    "nvmlSystemGetProcessName": "/home/somebody/venv/bin/python /home/somebody/train.py",
}
NEW: Mapping[str, Any] = {"nvmlSystemGetDriverVersion": "550.54.15", "nvmlSystemGetCudaDriverVersion_v2": 12040}
