"""Selects the GPUs for `--gpu` and `--gpus`, and provides their monitor and their facts."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import ALL, FIRST, Gpu, GpuHost, format_instances, format_version
from harness.model.texts import format_plain

if TYPE_CHECKING:
    from harness.machine.gpu.monitor import GpuMonitor

_GPU = re.compile(r"\d+(:\d+)?|(GPU|MIG)-[0-9a-fA-F][0-9a-fA-F-]*")
_INSTANCE = re.compile(r"\d+:\d+|MIG-.*")


def parse_requested(gpu: bool, gpus: str) -> tuple[str, ...]:
    """Return the requested GPUs as indices, UUIDs or `all`. If neither option is given, the result is empty.

    A MIG instance is named as in CDI (`0:1`), or by its UUID. Raises UsageError for an invalid name.
    """
    if not gpus:
        return (FIRST,) if gpu else ()
    if gpus.strip() == ALL:
        return (ALL,)
    names = [name.strip() for name in gpus.split(",")]
    invalid = [name for name in names if not _GPU.fullmatch(name)]
    if invalid:
        raise UsageError(
            f"--gpus {gpus}: {invalid[0]!r} isn't a GPU number or UUID.",
            "Pass numbers or UUIDs as `nvidia-smi -L` shows them, such as 0,1, or `all`. For a MIG instance, pass its "
            "UUID, or 0:1.",
        )
    parts = [name for name in names if _INSTANCE.fullmatch(name)]
    if parts and len(names) > 1:
        # NVIDIA's MIG user guide, "CUDA device enumeration"
        raise UsageError(
            f"--gpus {gpus}: {parts[0]} is a MIG instance. With CUDA, a process can use only one instance and no other "
            "GPU.",
            "Pass only the instance.",
        )
    return tuple(dict.fromkeys(str(int(name)) if name.isdecimal() else name for name in names))


def resolve_names(names: Sequence[str], host: GpuHost, *, typed: bool) -> tuple[str, ...]:
    """Return the GPUs that launches get for these names.

    On some machines, containers get all GPUs or none. On such a machine, the result is `all` for `--gpu`, and for the
    name of the only GPU. For other names that the user passed (`typed`), this raises CannotRunHereError, as
    `select_gpus` does.
    """
    if not names or ALL in names or not host.all_or_none:
        return tuple(names)
    if typed and len(select_gpus(names, host)) < len(host.gpus):
        raise CannotRunHereError(
            f"--gpus {','.join(names)}: containers get all of this machine's {len(host.gpus)} GPUs or none, which "
            f"is normal on WSL2. TensorFlow uses the first GPU.",
            "Use --gpus all. The GPU of each launch is recorded in launches.jsonl (`gpus`).",
        )
    return (ALL,)


def select_gpus(names: Sequence[str], host: GpuHost) -> list[Gpu]:
    """Return the requested GPUs; none if the machine's GPUs are unknown. The name of a MIG instance selects its GPU.

    Raises CannotRunHereError for a missing GPU, for an unusable driver, and for the name of a divided GPU, because a
    launch can get only an instance of it.
    """
    if host.mend and names:
        raise CannotRunHereError(f"--gpus {','.join(names)}: {host.absent}.", host.mend)
    if host.absent:
        return []
    all_names = {name for gpu in host.gpus for name in gpu.names}
    # a driver may hide the names of instances that the engine knows
    hidden = [str(gpu.index) for gpu in host.gpus if gpu.is_partitioned and not gpu.instances]
    missing = [
        name
        for name in names
        if name not in {ALL, *all_names} and not name.startswith("MIG-") and name.partition(":")[0] not in hidden
    ]
    if missing or not host.gpus:
        problem = "no GPU was found on this machine."
        if missing:
            available = "; ".join(f"{gpu.index}: {gpu.name}{_describe_divided(gpu)}" for gpu in host.gpus) or "none"
            problem = f"GPU {', '.join(missing)} isn't on this machine. The machine has the GPUs {available}."
        raise CannotRunHereError(f"--gpus {','.join(names)}: {problem}", "To list the GPUs: harness doctor --gpu")
    for gpu in host.gpus:
        if gpu.is_partitioned and {str(gpu.index), gpu.uuid, ALL} & set(names):
            example = next((instance.index for instance in gpu.instances), "MIG-…")
            raise CannotRunHereError(
                f"--gpus {','.join(names)}: GPU {gpu.index} ({gpu.name}) is divided into instances (MIG), and a "
                f"launch gets one of them. The instances: {format_instances(gpu) or 'none yet'}.",
                f"Select an instance (--gpus {example}, or its UUID), or disable MIG: sudo nvidia-smi -i {gpu.index} "
                f"-mig 0",
            )
    return host.select(names)


def _describe_divided(gpu: Gpu) -> str:
    return f", divided into {format_instances(gpu) or 'instances'}" if gpu.is_partitioned else ""


def list_visible(names: Sequence[str], host: GpuHost) -> str | None:
    """Return CUDA_VISIBLE_DEVICES for a process that gets these GPUs; None for all GPUs if they are unknown.

    UUIDs mean the same GPU in every process. If the driver doesn't report UUIDs, the result contains NVML's indices.
    """
    if ALL in names:
        return ",".join(gpu.uuid or str(gpu.index) for gpu in host.gpus) or None
    uuids = {str(gpu.index): gpu.uuid for gpu in host.gpus}
    uuids |= {part.index: part.uuid for gpu in host.gpus for part in gpu.instances}
    return ",".join(uuids.get(name) or name for name in names)


def choose_monitor(chosen: Sequence[Gpu]) -> "Callable[[], GpuMonitor] | None":
    """Return a function that creates the monitor of a launch; None if the GPUs are unknown."""
    if not chosen:
        return None
    from harness.machine.gpu.monitor import GpuMonitor  # noqa: PLC0415 - only launches on GPUs need it

    return partial(GpuMonitor, chosen)


def collect_facts(chosen: Sequence[Gpu], host: GpuHost, clock: str = "") -> dict[str, Any]:
    """Return the facts about the launches' GPUs for `host` in run.json, or the reason why they are unknown.

    No fact identifies an individual GPU. `clock` is the clock that the run locks.
    """
    if host.absent:
        return {"gpus": f"not known: {host.absent}", "gpu_telemetry": f"none: {host.absent}"}
    telemetry = "none: NVML can't see the GPUs of the launches"
    if chosen:
        from harness.machine.gpu.monitor import EVERY  # noqa: PLC0415 - only launches on GPUs need it

        telemetry = f"NVML, every {format_plain(EVERY)} s"
    return {"gpu_telemetry": telemetry, "gpus": [_collect_facts(gpu, host.driver, clock) for gpu in chosen]}


def _collect_facts(gpu: Gpu, driver: str, clock: str) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name,
        "capability": format_version(gpu.capability),
        "memory_bytes": gpu.memory_bytes,
        "driver": driver,
        **({"pci": gpu.pci} if gpu.pci else {}),
        **({"mig": [instance.profile for instance in gpu.instances]} if gpu.is_partitioned else {}),
        **gpu.settings.to_dict(),
        # None without locked clocks, so that a difference from another run is visible
        "locked_sm_clock_mhz": int(clock) if clock.isdecimal() else clock or None,
    }


def describe_gpus(chosen: Sequence[Gpu], host: GpuHost) -> list[str]:
    """Return the lines of --dry-run about the launches' GPUs."""
    if host.absent:
        return [f"GPU: unknown ({host.absent}), so harness can't check which environments run on it"]
    texts = [f"GPU {gpu.index}: {gpu.name}, compute capability {format_version(gpu.capability)}" for gpu in chosen]
    shares_all = host.all_or_none and len(chosen) > 1
    return [*texts, *(["Containers get all of these GPUs, and TensorFlow uses the first one."] if shares_all else [])]


def list_sharing(chosen: Sequence[Gpu]) -> list[str]:
    """Return a sentence for each process that computes on the launches' GPUs before the run starts."""
    sentences = []
    for gpu in chosen:
        for process in gpu.processes:
            user = f"{process.name} (process {process.pid})" if process.name else f"process {process.pid}"
            gpu_name = f"GPU {gpu.index} ({gpu.name})"
            sentences.append(f"{gpu_name} is also used by {user}. The report marks launches that share this GPU.")
    return sentences
