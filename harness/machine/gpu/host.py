"""The GPUs of this machine and their driver."""

from typing import Any

from harness.machine.gpu.nvml import AbsentError, asked, opened, processes
from harness.model.gpu import Card, GpuHost, Process


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
    typed = str(asked(nvml, nvml.nvmlSystemGetProcessName, process.pid) or "").split(" ")[0].rsplit("/", 1)[-1]
    name = "".join(character if character.isprintable() else "?" for character in typed)
    return Process(pid=process.pid, name=name, memory_bytes=process.usedGpuMemory)
