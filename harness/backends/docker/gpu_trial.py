"""A test of GPU access: a container with the GPUs that starts CUDA."""

import errno
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backends.docker.container import create_container
from harness.backends.docker.engine import Engine
from harness.backends.docker.gpu_refusals import GENERATE
from harness.backends.docker.gpus import add_gpus, explain_access, find_groups
from harness.backends.docker.specification import CELL_LABEL, RUN_LABEL, UID, Specification
from harness.backends.untrusted_text import Tail, join_lines
from harness.files import parse_json
from harness.model.backend import GpuWay
from harness.model.launch import Limits

#: Time limit in seconds for a container that tests a method. Without persistence mode, the driver starts first.
_TRIAL_SECONDS = 120.0

#: A script that prints the GPU devices of a container. It runs on the Python versions of all images.
_TRIAL_SCRIPT = """
import ctypes, glob, json, os
names = ["nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "dxg"]
nodes = {node: os.stat(node).st_mode & 0o777 for name in names for node in sorted(glob.glob("/dev/" + name))}
closed = {}
for node in nodes:
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError as error:
        closed[node] = error.errno
cuda, init, count = True, 0, None
try:
    library = ctypes.CDLL("libcuda.so.1")
    init, found = library.cuInit(0), ctypes.c_int()
    if not init and not library.cuDeviceGetCount(ctypes.byref(found)):
        count = found.value
except OSError:
    cuda = False
except AttributeError:
    pass
print(json.dumps({"nodes": nodes, "closed": closed, "cuda": cuda, "init": init, "count": count}))
"""

#: Errors of cuInit on a machine with a GPU (CUresult in cuda.h): the cause and what to do.
_INIT_ERRORS = {
    100: "CUDA finds no GPU. To see whether another program uses the GPU exclusively: nvidia-smi -q -d COMPUTE",
    802: "The GPUs are connected by NVSwitch, and their fabric manager isn't running. To start it: sudo systemctl "
    "start nvidia-fabricmanager",
    803: "The driver's library and its kernel module have different versions. Restart the machine.",
}


def try_access(engine: Engine, image: str, way: GpuWay, gpus: Sequence[str], run: str) -> tuple[str, str]:
    """Start a container with the GPUs. Return sentences about what CUDA needs but doesn't get, and about what it gets.

    The first text is empty if nothing is missing. `image` is the id of any image with Python, and `run` is the run in
    the container's label. Raises GpuRefusedError if the engine refuses the container.
    """
    specification = Specification(
        image=image,
        command=("python", "-c", _TRIAL_SCRIPT),
        environ={"NVIDIA_DISABLE_REQUIRE": "1"},  # other images may require another driver than this one
        labels={RUN_LABEL: run, CELL_LABEL: "gpus"},
        limits=Limits(seconds=_TRIAL_SECONDS),
        user=f"{UID}:{UID}",  # only images of harness contain the user's name
    )
    stdout, stderr = Tail(), Tail()
    trial = add_gpus(specification, way, gpus, find_groups(engine))
    with explain_access(engine, way, gpus), create_container(engine, trial) as container:
        ending = container.run(stdout.feed, stderr.feed)
    if not ending.clean:
        last_line = join_lines(stderr.text().strip().rpartition("\n")[2])
        return f"A test container with the GPUs failed ({ending}): {last_line}", ""
    try:
        seen = parse_json(stdout.text())
        return describe_missing(seen), _describe_seen(seen)
    except (ValueError, TypeError, KeyError, AttributeError):
        return f"A test container with the GPUs printed {stdout.text()[:200]!r} instead of its devices.", ""


def describe_missing(seen: Mapping[str, Any]) -> str:
    """Describe what CUDA needs but a container doesn't have, and what to do; empty if nothing is missing.

    `nodes` maps the device nodes of the GPUs to their permissions, and `closed` the nodes that the container's user
    can't open to the error number. `cuda` says whether the driver's CUDA library can be opened, and `init` is the
    result of cuInit. `count` is the number of GPUs that CUDA finds, or None if it isn't known.
    """
    nodes, closed, init = seen["nodes"], seen["closed"], seen["init"]
    if not seen["cuda"]:
        devices = f"gets {', '.join(nodes)}" if nodes else "gets no NVIDIA device"
        return f"A test container {devices} and no libcuda.so.1. To check whether the driver works: nvidia-smi"
    if closed:
        codes = " ".join(dict.fromkeys(errno.errorcode.get(code, str(code)) for code in closed.values()))
        return (
            f"The user of the containers can't open {', '.join(closed)} ({codes}). EPERM is an error of the "
            "containers' control group: use CDI (--gpu-via cdi). For EACCES, allow all users to open the device nodes "
            "(ls -l /dev/nvidia*) or, with SELinux: sudo setsebool -P container_use_devices on"
        )
    if "/dev/nvidiactl" in nodes and "/dev/nvidia-uvm" not in nodes:
        return (
            "A test container gets no /dev/nvidia-uvm, which CUDA needs. Load the kernel module and regenerate the "
            f"CDI specification: sudo nvidia-modprobe -u -c 0 && ({GENERATE})"
        )
    if seen["count"] == 0:
        return f"CUDA starts in a test container. {_INIT_ERRORS[100]}"
    return describe_init_error(init) if init else ""


def _describe_seen(seen: Mapping[str, Any]) -> str:
    """Return the GPUs of a container and its device nodes with their permissions, as sentences."""
    nodes = ", ".join(f"{node} (mode {mode:o})" for node, mode in seen["nodes"].items()) or "none"
    count = "isn't known" if seen["count"] is None else seen["count"]
    return f"Number of GPUs: {count}. Device nodes: {nodes}."


def describe_init_error(error: int) -> str:
    """Return the cause of an error of cuInit, and what to do."""
    return f"cuInit fails with the error {error}. {_INIT_ERRORS.get(error, 'To check the driver: nvidia-smi')}"
