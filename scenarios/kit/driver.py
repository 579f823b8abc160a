"""Facts about this process's GPUs from the GPU driver, for every release of TensorFlow and also without TensorFlow."""

import ctypes

LIBRARY = "libcuda.so.1"

# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h.
MAJOR, MINOR = 75, 76
TEXT_BYTES = 256

# CUmoduleLoadingMode in cuda.h.
LOADING = {1: "eager", 2: "lazy"}


class SilentError(Exception):
    """The driver doesn't report a fact."""


def gpus(library=None):
    """Return the name, compute capability ("8.6") and PCI address of each GPU, in CUDA's order; empty if unknown.

    library: the opened libcuda; by default, this function opens it. No CUDA context is created. A MIG instance has the
    address of the whole GPU.
    """
    try:
        cuda = ctypes.CDLL(LIBRARY) if library is None else library
        ask(cuda.cuInit, 0)
        return [gpu(cuda, number) for number in range(whole(cuda.cuDeviceGetCount))]
    except (OSError, AttributeError, SilentError):
        return []


def loading(library=None):
    """Return when CUDA loads GPU code in this process, "eager" or "lazy"; None for drivers before CUDA 11.7."""
    try:
        cuda = ctypes.CDLL(LIBRARY) if library is None else library
        ask(cuda.cuInit, 0)
        return LOADING.get(whole(cuda.cuModuleGetLoadingMode))
    except (OSError, AttributeError, SilentError):
        return None


def gpu(cuda, number):
    """Return the facts about one GPU. The address is missing if the driver doesn't report it."""
    device = whole(cuda.cuDeviceGet, number)
    capability = [whole(cuda.cuDeviceGetAttribute, attribute, device) for attribute in (MAJOR, MINOR)]
    facts = {"name": text(cuda.cuDeviceGetName, device), "capability": "{}.{}".format(*capability)}
    try:
        return dict(facts, pci=text(cuda.cuDeviceGetPCIBusId, device))
    except SilentError:
        return facts


def whole(function, *arguments):
    """Call a driver function that writes an integer to its first argument, and return the integer."""
    value = ctypes.c_int()
    ask(function, ctypes.byref(value), *arguments)
    return value.value


def text(function, device):
    """Call a driver function that writes a text about a device, and return the text."""
    buffer = ctypes.create_string_buffer(TEXT_BYTES)
    ask(function, buffer, TEXT_BYTES, device)
    return buffer.value.decode("utf-8", "replace")


def ask(function, *arguments):
    """Call a driver function. Raises SilentError if it returns an error."""
    if function(*arguments) != 0:
        raise SilentError
