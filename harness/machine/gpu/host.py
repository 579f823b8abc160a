"""GPUs of this machine and their driver, read through NVIDIA's management library.

The argument `library` of a function is the module `pynvml` of the package `nvidia-ml-py`, or a fake in tests.
"""

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.machine.sysfs import make_printable
from harness.model.gpu import Gpu, GpuHost, GpuProcess, Instance, Settings, format_pci_address

#: The driver's library for CUDA.
DRIVER = "libcuda.so.1"


#: The advice for a driver that was updated but not reloaded.
_RELOAD_ADVICE = "Restart the machine or, if nothing uses the GPU, reload the kernel modules of the NVIDIA driver."


class LibraryUnavailableError(Exception):
    """Error for an unusable library. The message is a clause. `mend` is as in GpuHost."""

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message)
        self.mend = mend


@contextlib.contextmanager
def open_library(library: Any = None) -> Iterator[Any]:
    """Open the library during the block. Raises LibraryUnavailableError if it can't be used."""
    if library is None:
        import pynvml

        library = pynvml
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        is_mixed = getattr(error, "value", None) == library.NVML_ERROR_LIB_RM_VERSION_MISMATCH
        raise LibraryUnavailableError(_explain_error(library, error), _RELOAD_ADVICE if is_mixed else "") from None
    try:
        yield library
    finally:
        # an error here doesn't affect the values that were read before
        call_library(library, library.nvmlShutdown)


@contextlib.contextmanager
def keep_driver_loaded(gpus: Sequence[Gpu], library: Any = None) -> Iterator[None]:
    """Keep the driver of these GPUs loaded during the block, so that opening the library is fast.

    Without persistence mode, an unused driver unloads. Loading it takes 1 to 3 s, and locked clocks are lost. Without
    GPUs, or if the library can't be used, this does nothing.
    """
    with contextlib.ExitStack() as stack:
        if gpus:
            with contextlib.suppress(LibraryUnavailableError):
                nvml = stack.enter_context(open_library(library))
                for gpu in gpus:  # requesting a handle makes the driver attach the GPU
                    call_library(nvml, nvml.nvmlDeviceGetHandleByIndex, gpu.index)
        yield


def find_driver_error() -> str:
    """Return the loader's message if the driver's library for CUDA can't be opened; otherwise, an empty text."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError as error:
        return str(error)
    return ""


def find_driver_folders() -> list[str]:
    """Return the folders in LD_LIBRARY_PATH with the driver's library. Some containers have the library only there."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and (Path(folder) / DRIVER).exists()]


def is_loss(library: Any, error: Exception) -> bool:
    """Return whether the error means that the driver lost the GPU, or that the GPU needs a reset."""
    return getattr(error, "value", None) in (library.NVML_ERROR_GPU_IS_LOST, library.NVML_ERROR_RESET_REQUIRED)


def call_library(library: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a library function, or None if this driver or GPU doesn't support it."""
    try:
        return function(*arguments)
    except (library.NVMLError, library.NVMLLibraryMismatchError):
        return None


def list_processes(library: Any, handle: Any) -> list[Any] | None:
    """Return the compute processes on a GPU, each with `pid` and `usedGpuMemory`. Unknown values are None.

    The list includes processes in containers, with the host's process numbers, but not processes that only draw.
    """
    # drivers before 510 know the older structure only
    for function in (library.nvmlDeviceGetComputeRunningProcesses, library.nvmlDeviceGetComputeRunningProcesses_v2):
        entries = call_library(library, function, handle)
        if entries is not None:
            return list(entries)
    return None


def _explain_error(library: Any, error: Exception) -> str:
    reasons = {
        library.NVML_ERROR_LIBRARY_NOT_FOUND: "the NVIDIA driver isn't installed: libnvidia-ml.so.1 is missing",
        library.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
        library.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "the NVIDIA driver was updated but not reloaded: its library and the kernel module differ"
        ),
        library.NVML_ERROR_NO_PERMISSION: "this user has no access to the NVIDIA driver",
    }
    code = getattr(error, "value", None)
    return reasons.get(code, f"the NVIDIA driver does not answer ({str(error).rstrip('.').lower()})")


def read(library: Any = None) -> GpuHost:
    """Read the machine's GPUs through NVML (`library` is pynvml by default).

    Never raises: if the GPUs can't be read, `absent` has the reason.
    """
    try:
        with open_library(library) as nvml:
            driver = str(call_library(nvml, nvml.nvmlSystemGetDriverVersion) or "")
            count = call_library(nvml, nvml.nvmlDeviceGetCount) or 0
            gpus = [gpu for index in range(count) if (gpu := _read_gpu(nvml, index)) is not None]
            if not gpus:
                return GpuHost(absent=f"the NVIDIA driver {driver} {'cannot use its GPU' if count else 'sees no GPU'}")
            number = call_library(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)  # 12040 is CUDA 12.4
            cuda = None if number is None else (number // 1000, number % 1000 // 10)
            return GpuHost(gpus=gpus, driver=driver, cuda=cuda)
    except LibraryUnavailableError as error:
        return GpuHost(absent=str(error), mend=error.mend)


def _read_gpu(nvml: Any, index: int) -> Gpu | None:
    """Return one GPU, or None if the driver lost it or doesn't report its compute capability."""
    handle = call_library(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return None
    capability = call_library(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    if capability is None:
        return None
    mig = call_library(nvml, nvml.nvmlDeviceGetMigMode, handle)
    pci = call_library(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    return Gpu(
        index=index,
        uuid=str(call_library(nvml, nvml.nvmlDeviceGetUUID, handle) or ""),
        name=str(call_library(nvml, nvml.nvmlDeviceGetName, handle) or "GPU"),
        capability=(int(capability[0]), int(capability[1])),
        memory_bytes=_read_memory(nvml, handle),
        processes=[_read_process(nvml, process) for process in list_processes(nvml, handle) or ()],
        is_partitioned=bool(mig and mig[0]),
        instances=_read_instances(nvml, handle, index) if mig and mig[0] else (),
        pci=format_pci_address(str(pci.busId)) if pci is not None else "",
        settings=_read_settings(nvml, handle),
    )


def _read_memory(nvml: Any, handle: Any) -> int:
    memory = call_library(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return int(memory.total) if memory is not None else 0


def _read_instances(nvml: Any, handle: Any, index: int) -> list[Instance]:
    """Return the instances of a divided GPU, whose indices may have gaps."""
    count = call_library(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    handles = (
        (number, call_library(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number))
        for number in range(count)
    )
    return [
        Instance(
            index=f"{index}:{number}",
            uuid=str(call_library(nvml, nvml.nvmlDeviceGetUUID, instance) or ""),
            name=str(call_library(nvml, nvml.nvmlDeviceGetName, instance) or "MIG"),
            memory_bytes=_read_memory(nvml, instance),
        )
        for number, instance in handles
        if instance is not None
    ]


def _read_settings(nvml: Any, handle: Any) -> Settings:
    def ask(function: Callable[..., Any], *arguments: Any) -> Any:
        return call_library(nvml, function, handle, *arguments)

    def is_on(state: Any) -> bool | None:
        return None if state is None else state == nvml.NVML_FEATURE_ENABLED

    ecc, _ = ask(nvml.nvmlDeviceGetEccMode) or (None, None)
    return Settings(
        persistence=is_on(ask(nvml.nvmlDeviceGetPersistenceMode)),
        power_limit_watts=_convert_to_watts(ask(nvml.nvmlDeviceGetPowerManagementLimit)),
        power_limit_default_watts=_convert_to_watts(ask(nvml.nvmlDeviceGetPowerManagementDefaultLimit)),
        sm_clock_most_mhz=ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        application_sm_clock_mhz=ask(nvml.nvmlDeviceGetApplicationsClock, nvml.NVML_CLOCK_SM),
        application_memory_clock_mhz=ask(nvml.nvmlDeviceGetApplicationsClock, nvml.NVML_CLOCK_MEM),
        ecc=is_on(ecc),
        compute_mode=_get_name(ask(nvml.nvmlDeviceGetComputeMode), _COMPUTE_MODES),
        pcie_generation=ask(nvml.nvmlDeviceGetMaxPcieLinkGeneration),
        pcie_generation_most=ask(nvml.nvmlDeviceGetGpuMaxPcieLinkGeneration),
        pcie_width=ask(nvml.nvmlDeviceGetCurrPcieLinkWidth),
        pcie_width_most=ask(nvml.nvmlDeviceGetMaxPcieLinkWidth),
        virtualization=_get_name(ask(nvml.nvmlDeviceGetVirtualizationMode), _VIRTUALIZATION),
        display=is_on(ask(nvml.nvmlDeviceGetDisplayActive)),
    )


#: Names of nvmlComputeMode_t. The value 1 (exclusive to a thread) exists only in drivers that no release supports.
_COMPUTE_MODES: Mapping[int, str] = {0: "default", 2: "prohibited", 3: "exclusive process"}
#: Names of nvmlGpuVirtualizationMode_t on machines that run launches. Other values are for hosts of virtual machines.
_VIRTUALIZATION: Mapping[int, str] = {0: "none", 1: "passthrough", 2: "vGPU"}


def _get_name(value: int | None, names: Mapping[int, str]) -> str | None:
    return None if value is None else names.get(value, str(value))


def _convert_to_watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _read_process(nvml: Any, process: Any) -> GpuProcess:
    # leave out the path and the arguments, because they are private
    name = str(call_library(nvml, nvml.nvmlSystemGetProcessName, process.pid) or "").split(" ")[0].rsplit("/", 1)[-1]
    return GpuProcess(pid=process.pid, name=make_printable(name), memory_bytes=process.usedGpuMemory)
