"""This machine's GPUs and their driver, asked of NVIDIA's management library.

What is used of it are the functions of the package `nvidia-ml-py`, whose module `pynvml` every function here takes as
`library`: a test brings its own.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from harness.machine.sysfs import printable
from harness.model.gpu import Card, GpuHost, Process


class AbsentError(Exception):
    """The library cannot be used; why, in a clause."""


@contextlib.contextmanager
def opened(library: Any = None) -> Iterator[Any]:
    """The library, between its start and its end. Raises AbsentError where it cannot be used."""
    if library is None:
        import pynvml

        library = pynvml
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise AbsentError(_why(library, error)) from None
    try:
        yield library
    finally:
        # what was read is read, whatever the driver says when it is left
        asked(library, library.nvmlShutdown)


def asked(library: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, None where this driver or this GPU does not tell."""
    try:
        return function(*arguments)
    except (library.NVMLError, library.NVMLLibraryMismatchError):
        return None


def processes(library: Any, handle: Any) -> list[Any] | None:
    """The compute processes on a GPU, each with `pid` and `usedGpuMemory` (None: not told); None where not told.

    Containers' processes are among them, by the host's numbers; those that only draw are not.
    """
    # drivers before 510 know the older structure only
    for function in (library.nvmlDeviceGetComputeRunningProcesses, library.nvmlDeviceGetComputeRunningProcesses_v2):
        found = asked(library, function, handle)
        if found is not None:
            return list(found)
    return None


def _why(library: Any, error: Exception) -> str:
    known = {
        library.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver is installed: there is no libnvidia-ml.so.1",
        library.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
        library.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "the NVIDIA driver was updated and not loaded anew: its library and the kernel's module differ"
        ),
        library.NVML_ERROR_NO_PERMISSION: "this user may not ask the NVIDIA driver",
    }
    code = getattr(error, "value", None)
    return known.get(code, f"the NVIDIA driver does not answer ({str(error).rstrip('.').lower()})")


def read(library: Any = None) -> GpuHost:
    """What NVML tells of this machine (`library` is pynvml where left out). Never raises: what is absent says why."""
    try:
        with opened(library) as nvml:
            driver = str(asked(nvml, nvml.nvmlSystemGetDriverVersion) or "")
            count = asked(nvml, nvml.nvmlDeviceGetCount) or 0
            cards = [card for index in range(count) if (card := _card(nvml, index)) is not None]
            if not cards:
                return GpuHost(absent=f"the NVIDIA driver {driver} {'cannot use its GPU' if count else 'sees no GPU'}")
            return GpuHost(cards=cards, driver=driver, cuda=_cuda(nvml))
    except AbsentError as error:
        return GpuHost(absent=str(error))


def _cuda(nvml: Any) -> tuple[int, int] | None:
    # 12040 is CUDA 12.4
    number = asked(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    return None if number is None else (number // 1000, number % 1000 // 10)


def _card(nvml: Any, index: int) -> Card | None:
    """One GPU; None for one that the driver has lost, or that tells no capability."""
    handle = asked(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return None
    capability = asked(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    if capability is None:
        return None
    memory = asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    mig = asked(nvml, nvml.nvmlDeviceGetMigMode, handle)
    return Card(
        index=index,
        uuid=str(asked(nvml, nvml.nvmlDeviceGetUUID, handle) or ""),
        name=str(asked(nvml, nvml.nvmlDeviceGetName, handle) or "GPU"),
        capability=(int(capability[0]), int(capability[1])),
        memory_bytes=int(memory.total) if memory is not None else 0,
        processes=[_process(nvml, process) for process in processes(nvml, handle) or ()],
        is_partitioned=bool(mig and mig[0]),
    )


def _process(nvml: Any, process: Any) -> Process:
    # its path and its arguments are its owner's
    name = str(asked(nvml, nvml.nvmlSystemGetProcessName, process.pid) or "").split(" ")[0].rsplit("/", 1)[-1]
    return Process(pid=process.pid, name=printable(name), memory_bytes=process.usedGpuMemory)
