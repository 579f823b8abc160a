"""NVIDIA's management library: opened and closed, and asked without an error where it does not tell.

What is used of it are the functions of the package `nvidia-ml-py`, whose module `pynvml` every function here takes as
`library`: a test brings its own.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


class AbsentError(Exception):
    """The library cannot be used; why, in a clause."""


@contextlib.contextmanager
def opened(library: Any = None) -> Iterator[Any]:
    """The library, between its start and its end. Raises AbsentError where it cannot be used."""
    nvml = library if library is not None else _pynvml()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise AbsentError(_why(nvml, error)) from None
    try:
        yield nvml
    finally:
        # what was read is read, whatever the driver says when it is left
        asked(nvml, nvml.nvmlShutdown)


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
    newest = asked(library, library.nvmlDeviceGetComputeRunningProcesses, handle)
    if newest is not None:
        return list(newest)
    # drivers before 510 know the older structure only
    older = asked(library, library.nvmlDeviceGetComputeRunningProcesses_v2, handle)
    return None if older is None else list(older)


def _pynvml() -> Any:
    import pynvml

    return pynvml


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
