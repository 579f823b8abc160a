"""Locks the clocks of GPUs for a run, and unlocks them however the run ends.

A mark file next to the machine's lock lists the GPUs with locked clocks. It is written before the first GPU is locked,
and removed after the last GPU is unlocked. So if a run was killed, the next run on a GPU or `harness clean` unlocks the
GPUs.
"""

import atexit
import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.files import parse_json
from harness.machine import sysfs
from harness.machine.gpu.host import LibraryUnavailableError, call_library, open_library
from harness.machine.lock import get_lock_path
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import BASE_CLOCK, Gpu

#: The file with an id that changes whenever the machine starts. After a start, no clock is locked.
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


def get_mark_path() -> Path:
    """Return the path of the file that lists the GPUs with locked clocks."""
    lock = get_lock_path()
    return lock.with_name(f"{lock.name}.clocks")


@contextlib.contextmanager
def lock_clocks(gpus: Sequence[Gpu], clock: str, library: Any = None) -> Iterator[None]:
    """Lock the GPUs' processor clocks during the block: to `clock` MHz, or to their base clock (BASE_CLOCK).

    If `clock` is empty, nothing is locked. Clocks that a killed run left locked are always unlocked first. The caller
    must hold the machine's lock. Raises UsageError for a clock that a GPU doesn't support, and CannotRunHereError.
    """
    unlock(library)
    if not clock:
        yield
        return
    if not gpus:
        raise CannotRunHereError(
            "--lock-clocks: this process can't see the GPUs of the launches.",
            "Lock the clocks on the machine with the GPUs, and omit --lock-clocks: "
            "sudo nvidia-smi --lock-gpu-clocks=tdp,tdp",
        )
    # also unlock at exit, because a second Ctrl-C may interrupt `finally`
    exit_handler = atexit.register(unlock, library)
    try:
        _lock(gpus, clock, library)
        yield
    finally:
        unlock(library)
        atexit.unregister(exit_handler)


def unlock(library: Any = None) -> int:
    """Unlock the clocks of the GPUs in the mark file, and return the number of these GPUs.

    Raises CannotRunHereError if the driver isn't usable, or if this user may not unlock clocks.
    """
    uuids = _read_marked()
    if not uuids:
        return 0
    with _open_driver(library, "unlock") as nvml:
        for uuid in uuids:
            try:
                nvml.nvmlDeviceResetGpuLockedClocks(nvml.nvmlDeviceGetHandleByUUID(uuid))
            except nvml.NVMLError as error:
                if getattr(error, "value", None) == nvml.NVML_ERROR_NO_PERMISSION:
                    raise CannotRunHereError(
                        "A run that was killed left the clocks of a GPU locked, and this user may not unlock them.",
                        f"sudo nvidia-smi -i {uuid} --reset-gpu-clocks && sudo rm {get_mark_path()}",
                    ) from None
                # ignore a lost or removed GPU, because it has its default clocks when it comes back
    get_mark_path().unlink(missing_ok=True)
    return len(uuids)


def _read_marked() -> list[str]:
    """Return the UUIDs of locked GPUs. A mark file from before the machine's start, or of another user, is ignored."""
    path = get_mark_path()
    try:
        if path.is_symlink() or path.stat().st_uid not in (0, os.geteuid()):
            return []
        document = parse_json(path.read_text(encoding="utf-8"))
        return [str(uuid) for uuid in document["uuids"]] if document["boot"] == sysfs.read_text(_BOOT_ID_FILE) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _write(uuids: Sequence[str]) -> None:
    path = get_mark_path()
    try:
        path.unlink(missing_ok=True)
        if uuids:
            # create a new file (O_EXCL), so that a link of another user isn't followed
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"boot": sysfs.read_text(_BOOT_ID_FILE), "uuids": list(uuids)}, file)
    except OSError as error:
        raise CannotRunHereError(
            f"--lock-clocks: the file {path}, which records the locked clocks, cannot be written: {error.strerror}.",
            f"Remove this file: sudo rm {path}",
        ) from None


def _lock(gpus: Sequence[Gpu], clock: str, library: Any) -> None:
    with _open_driver(library, "lock") as nvml:
        handles = [(gpu, _find_handle(nvml, gpu)) for gpu in gpus]
        for gpu, handle in handles:
            _check(nvml, gpu, handle, clock)
        # with this value, the driver uses the clock that a GPU can hold within its power limit (nvmlClockLimitId_t)
        megahertz = nvml.NVML_CLOCK_LIMIT_ID_TDP if clock == BASE_CLOCK else int(clock)
        uuids: list[str] = []
        for gpu, handle in handles:
            _write([*uuids, gpu.uuid])
            try:
                nvml.nvmlDeviceSetGpuLockedClocks(handle, megahertz, megahertz)
            except nvml.NVMLError as error:
                _write(uuids)
                raise _make_refusal(nvml, gpu, clock, error) from None
            uuids.append(gpu.uuid)


@contextlib.contextmanager
def _open_driver(library: Any, verb: str) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        try:
            nvml = stack.enter_context(open_library(library))
        except LibraryUnavailableError as error:
            raise CannotRunHereError(f"The clocks of the GPUs cannot be {verb}ed: {error}.") from None
        yield nvml


def _find_handle(nvml: Any, gpu: Gpu) -> Any:
    handle = call_library(nvml, nvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
    if handle is None:
        raise CannotRunHereError(f"--lock-clocks: the driver can no longer find GPU {gpu.index} ({gpu.name}).")
    return handle


def _check(nvml: Any, gpu: Gpu, handle: Any, clock: str) -> None:
    """Raise UsageError for a clock that the GPU doesn't support, and CannotRunHereError for a divided GPU."""
    if gpu.is_partitioned:
        raise CannotRunHereError(
            f"--lock-clocks: GPU {gpu.index} ({gpu.name}) is divided into instances (MIG), whose clocks cannot be "
            "locked.",
            f"Omit --lock-clocks, or disable MIG on the GPU: sudo nvidia-smi -i {gpu.index} -mig 0",
        )
    lowest, highest = _read_range(nvml, gpu, handle)
    if clock != BASE_CLOCK and highest and not lowest <= int(clock) <= highest:
        raise UsageError(
            f"--lock-clocks {clock}: GPU {gpu.index} ({gpu.name}) supports clocks from {lowest} to {highest} MHz.",
            f"Use a clock in this range, or --lock-clocks {BASE_CLOCK}.",
        )


def _read_range(nvml: Any, gpu: Gpu, handle: Any) -> tuple[int, int]:
    """Return the lowest and the highest processor clock in MHz, or 0 if it isn't known."""
    # the processor clocks at the fastest memory clock, which is the first one
    memory = call_library(nvml, nvml.nvmlDeviceGetSupportedMemoryClocks, handle) or []
    clocks = (memory and call_library(nvml, nvml.nvmlDeviceGetSupportedGraphicsClocks, handle, memory[0])) or []
    return min(clocks, default=0), max(clocks, default=gpu.settings.sm_clock_most_mhz or 0)


def _make_refusal(nvml: Any, gpu: Gpu, clock: str, error: Exception) -> Exception:
    gpu_name, code = f"GPU {gpu.index} ({gpu.name})", getattr(error, "value", None)
    pair = "tdp,tdp" if clock == BASE_CLOCK else f"{clock},{clock}"
    if code == nvml.NVML_ERROR_NO_PERMISSION:
        return CannotRunHereError(
            f"--lock-clocks: NVIDIA's driver lets only root lock the clocks of {gpu_name}.",
            "Run the command as root, or lock the clocks yourself and omit --lock-clocks: "
            f"sudo nvidia-smi -i {gpu.index} --lock-gpu-clocks={pair}\n"
            f"After the run: sudo nvidia-smi -i {gpu.index} --reset-gpu-clocks",
        )
    if code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
        return CannotRunHereError(
            f"--lock-clocks: the clocks of {gpu_name} cannot be locked. Locking needs a GPU of the Volta generation "
            f"or later, and a driver that supports it.",
            "Omit --lock-clocks.",
        )
    if code == nvml.NVML_ERROR_INVALID_ARGUMENT:
        return UsageError(
            f"--lock-clocks {clock}: {gpu_name} doesn't support this clock.", f"Use --lock-clocks {BASE_CLOCK}."
        )
    return CannotRunHereError(f"--lock-clocks: the driver does not lock the clocks of {gpu_name}: {error}.")
