"""The GPU driver's facts about this process's GPUs: the same for every release of TensorFlow, and without it."""

import ctypes

LIBRARY = "libcuda.so.1"

# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h.
MAJOR, MINOR = 75, 76
TEXT_BYTES = 256


class SilentError(Exception):
    """The driver doesn't report a fact."""


def gpus(library=None):
    """Return name, compute capability ("8.6") and PCI address of each GPU, in CUDA's order; empty if unknown.

    library: replaces libcuda, which is opened by default. This needs and creates no context. A MIG instance has the
    address of the whole GPU.
    """
    try:
        cuda = ctypes.CDLL(LIBRARY) if library is None else library
        ask(cuda.cuInit, 0)
        return [gpu(cuda, number) for number in range(whole(cuda.cuDeviceGetCount))]
    except (OSError, AttributeError, SilentError):
        return []


def gpu(cuda, number):
    """Return the driver's facts about one GPU; without its address if the driver doesn't report it."""
    device = whole(cuda.cuDeviceGet, number)
    capability = [whole(cuda.cuDeviceGetAttribute, attribute, device) for attribute in (MAJOR, MINOR)]
    facts = {"name": text(cuda.cuDeviceGetName, device), "capability": "{}.{}".format(*capability)}
    try:
        return dict(facts, pci=text(cuda.cuDeviceGetPCIBusId, device))
    except SilentError:
        return facts


def whole(function, *arguments):
    """The whole number that a function of the driver writes to where its first argument points."""
    value = ctypes.c_int()
    ask(function, ctypes.byref(value), *arguments)
    return value.value


def text(function, device):
    """The text that a function of the driver writes of a device."""
    buffer = ctypes.create_string_buffer(TEXT_BYTES)
    ask(function, buffer, TEXT_BYTES, device)
    return buffer.value.decode("utf-8", "replace")


def ask(function, *arguments):
    """Call a function of the driver. Raises SilentError where it returns an error."""
    if function(*arguments) != 0:
        raise SilentError
