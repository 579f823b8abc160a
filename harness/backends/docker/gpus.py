"""How containers get GPUs: the methods of an engine, the request, a test, and volumes for compiled code."""

import errno
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends.docker.container import create_container
from harness.backends.docker.engine import Engine, find_address, is_of_this_machine, raise_as_sentences
from harness.backends.docker.gpu_refusals import (
    CONFIGURE,
    DOCTOR,
    GENERATE,
    RESTART,
    SWITCH_CDI_ON,
    GpuRefusedError,
    explain_refusals,
)
from harness.backends.docker.specification import CELL_LABEL, RUN_LABEL, UID, Specification
from harness.backends.untrusted_text import Tail, join_lines
from harness.files import parse_json
from harness.model.backend import GpuWay
from harness.model.gpu import ALL, CAPABILITIES, FIRST, KIND, GpuHost
from harness.model.launch import Limits

#: The engine's names of NVIDIA's runtime, and of its device driver for NVIDIA's GPUs.
NVIDIA = "nvidia"

#: If one of these programs is on an engine's PATH when the engine starts, it has that device driver. Docker
#: Engine recognizes the second program from version 29 on.
HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook")

#: The usual folders of CDI specifications. An engine with CDI disabled doesn't report its folders.
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))

#: The GPUs' device node on WSL2.
WSL_NODE = Path("/dev/dxg")

#: The start of `INSTALL_ADVICE`, which `harness doctor --gpu` itself omits.
DOCTOR_ADVICE = f"`{DOCTOR}` shows which parts of the GPU setup are available, and which are missing. "

INSTALL_ADVICE = (
    f"{DOCTOR_ADVICE}If the engine finds NVIDIA's hook on a PATH of its own, pass --gpu-via driver. Otherwise, install "
    "the NVIDIA driver and the package nvidia-container-toolkit. Docker before 28.3 also needs a restart with "
    '{"features": {"cdi": true}} in /etc/docker/daemon.json. Then generate a CDI specification of the GPUs'
)

_DESKTOP_ADVICE = (
    "Use the WSL 2 backend of Docker Desktop, and update Docker Desktop and the NVIDIA driver of Windows. The NVIDIA "
    "Container Toolkit isn't needed"
)

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
    804: "The image replaces the driver's library with a library for newer CUDA, which this GPU doesn't support. "
    "Rebuild the image, or update the driver.",
    999: "The driver can't start CUDA. Reload its module, or restart the machine: sudo rmmod nvidia_uvm && sudo "
    "modprobe nvidia_uvm",
}


#: The folder of compiled code in a container. In the GPU images, the image's user owns it, and a new volume that is
#: mounted there gets the same owner.
CODE_FOLDER = "/cache"
#: The folder with the code of the first start, in launches of scenarios.
FIRST_FOLDER = "/cache-first"

CODE_LABEL = "harness.cache"
CODE_VALUE = "ptx"


@dataclass(frozen=True, slots=True)
class GpuAccess:
    """A method by which containers of an engine may get GPUs.

    `names` are the devices that the engine lists. Often it lists none.
    """

    way: GpuWay
    names: tuple[str, ...] = ()

    def list_requested(self, gpus: Sequence[str]) -> tuple[str, ...]:
        """Return the devices to request for `gpus`. If the engine lists only `all`, use it for the first GPU."""
        return (ALL,) if self.names == (ALL,) and tuple(gpus) == (FIRST,) else tuple(gpus)

    def list_unlisted(self, gpus: Sequence[str]) -> list[str]:
        """Return the entries of `gpus` that aren't among the listed devices, if any devices are listed."""
        return [gpu for gpu in self.list_requested(gpus) if self.names and gpu not in self.names]


def list_methods(info: Mapping[str, Any], listed: Sequence[str] | None, *, hooked: bool = False) -> list[GpuAccess]:
    """Return the methods that are possible according to `docker info`, in the order in which they are tried.

    `listed` are the device names in the engine's CDI specifications; None if the engine is on another machine, where
    only a test shows them. `hooked`: this machine has one of the HOOKS, so a local engine has the device driver if the
    engine found the program at its start. The engine itself doesn't report this.
    """
    devices = [
        str(device.get("ID", "")) for device in info.get("DiscoveredDevices") or () if device.get("Source") == "cdi"
    ]
    names = [name.partition("=")[2] for name in devices if name.startswith(f"{KIND}=")] or list(listed or ())
    accesses = []
    if names or (listed is None and info.get("CDISpecDirs")):
        accesses.append(GpuAccess(GpuWay.CDI, tuple(dict.fromkeys(names))))
    if NVIDIA in (info.get("Runtimes") or {}):
        accesses.append(GpuAccess(GpuWay.RUNTIME))
    if hooked or listed is None:
        accesses.append(GpuAccess(GpuWay.DRIVER))
    return accesses


def find_host() -> GpuHost:
    """Return the GPUs of the engine's machine. They are unknown if this is another machine."""
    address = find_address()
    if address and not is_of_this_machine(address):
        return GpuHost(absent="the engine is on another machine", is_here=False)
    from harness.machine.gpu.host import read  # noqa: PLC0415 - a machine without a GPU does without it

    # WSL2 has one device for all GPUs
    return replace(read(), all_or_none=WSL_NODE.exists() or list_device_names(CDI_FOLDERS) == [ALL])


def find(engine: Engine, via: GpuWay | None = None) -> list[GpuAccess]:
    """Return the possible methods, or the requested one. Raises GpuRefusedError if there is none."""
    if engine.is_podman:
        raise GpuRefusedError(
            "Podman can't give GPUs to harness containers: its Docker-compatible interface doesn't list CDI devices.",
            "Use Docker Engine. For TensorFlow 2.5 and later, you can also use --backend local",
        )
    info = engine.info
    device_names = list_device_names(map(Path, info.get("CDISpecDirs") or ())) if engine.is_here else None
    hooked = engine.is_here and any(map(shutil.which, HOOKS))
    if _is_desktop(engine):
        # its virtual machine has the device driver, and doesn't see the folders of this machine
        device_names, hooked = [], True
    accesses = list_methods(info, device_names, hooked=hooked)
    if via is not None:
        # the engine doesn't report whether it has the device driver, so this method is always possible
        requested = [access for access in accesses if access.way is via] or [GpuAccess(via)] * (via is GpuWay.DRIVER)
        if not requested:
            raise _make_missing_method_error(engine, via)
        return requested
    if accesses and accesses[-1].way is not GpuWay.DRIVER and find_host().cards:
        # the engine may have found one of the HOOKS on another PATH, and a test as the last one costs nothing
        accesses.append(GpuAccess(GpuWay.DRIVER))
    if accesses:
        return accesses
    if _is_cdi_disabled(engine):
        raise _make_missing_method_error(engine, GpuWay.CDI)
    raise GpuRefusedError(
        f"Docker Engine can't give GPUs to containers: the engine lists no {KIND} (CDI), and the NVIDIA runtime is "
        "missing.",
        INSTALL_ADVICE,
        GENERATE,
    )


def _make_missing_method_error(engine: Engine, way: GpuWay) -> GpuRefusedError:
    """Return the error for a method that an engine doesn't offer."""
    if _is_desktop(engine):
        sentence = f"Docker Desktop doesn't offer {way.words}. It gives GPUs to containers through its device driver."
        return GpuRefusedError(sentence, "Omit --gpu-via")
    if way is GpuWay.RUNTIME:
        return GpuRefusedError(
            "Docker Engine can't give GPUs to containers through the nvidia runtime: the runtime isn't registered.",
            "Install the package nvidia-container-toolkit, and register its runtime",
            CONFIGURE,
        )
    if _is_cdi_disabled(engine):
        return GpuRefusedError(
            "Docker Engine can't give GPUs to containers through CDI, because CDI is disabled. CDI specifications "
            "exist.",
            SWITCH_CDI_ON,
            RESTART,
        )
    return GpuRefusedError(
        f"Docker Engine can't give GPUs to containers through CDI: the engine lists no {KIND}.",
        INSTALL_ADVICE,
        GENERATE,
    )


def _is_desktop(engine: Engine) -> bool:
    return bool(engine.facts.system == "Docker Desktop")


def _is_cdi_disabled(engine: Engine) -> bool:
    """Return whether CDI is disabled in this machine's engine, although CDI specifications describe the GPUs."""
    return engine.is_here and not engine.info.get("CDISpecDirs") and bool(list_device_names(CDI_FOLDERS))


def select_able(found: Sequence[GpuAccess], gpus: Sequence[str]) -> list[GpuAccess]:
    """Return the methods that may give all of `gpus`: if a method lists devices, it must list these GPUs.

    Raises GpuRefusedError if no method remains.
    """
    usable = [access for access in found if not access.list_unlisted(gpus)]
    if usable:
        return usable
    preferred = found[0]
    if preferred.names == (ALL,):
        raise GpuRefusedError(
            f"--gpus {','.join(gpus)}: Docker Engine gives a container all GPUs or none. This is normal on WSL2.",
            "Use --gpus all. If this machine doesn't use WSL2, generate a CDI specification of each GPU",
            GENERATE,
        )
    raise GpuRefusedError(
        f"--gpus {','.join(gpus)}: Docker Engine lists no GPU {', '.join(preferred.list_unlisted(gpus))}. It lists "
        f"{', '.join(preferred.names)}.",
        "Use one of these GPUs. If the GPUs or the driver have changed",
        GENERATE,
    )


def add_gpus(
    specification: Specification, way: GpuWay, gpus: Sequence[str], groups: Sequence[int] = ()
) -> Specification:
    """Return the specification with these GPUs. The container's user gets the `groups` that may open the GPUs."""
    from docker.types import DeviceRequest

    if way is GpuWay.RUNTIME:
        environ = {"NVIDIA_VISIBLE_DEVICES": ",".join(gpus), "NVIDIA_DRIVER_CAPABILITIES": ",".join(CAPABILITIES)}
        environ |= specification.environ
        return replace(specification, runtime=NVIDIA, environ=environ, groups=groups)
    if way is GpuWay.CDI:
        request = DeviceRequest(driver="cdi", device_ids=[f"{KIND}={gpu}" for gpu in gpus])
    else:
        selection: dict[str, Any] = {"count": -1} if ALL in gpus else {"device_ids": list(gpus)}
        request = DeviceRequest(driver=NVIDIA, capabilities=[["gpu", *CAPABILITIES]], **selection)
    return replace(specification, devices=[request], groups=groups)


def find_groups(engine: Engine, folder: Path = Path("/dev")) -> list[int]:
    """Return the ids of the groups that may open the GPUs' device nodes, if not every user may.

    On some systems, udev's rules set mode 0660 and the owner root:video. The list is empty for a remote Docker Engine,
    whose device nodes can't be read, and for a rootless one, which can't add groups.
    """
    if not engine.is_here or engine.facts.rootless:
        return []
    group_ids = set()
    for node in folder.glob("nvidia*"):
        try:
            node_stat = node.stat()
        except OSError:
            continue
        everybody_bits, group_bits = stat.S_IROTH | stat.S_IWOTH, stat.S_IRGRP | stat.S_IWGRP
        is_open = node_stat.st_mode & everybody_bits == everybody_bits
        # membership in group 0 would give more rights than access to these nodes
        if (
            stat.S_ISCHR(node_stat.st_mode)
            and not is_open
            and node_stat.st_mode & group_bits == group_bits
            and node_stat.st_gid
        ):
            group_ids.add(node_stat.st_gid)
    return sorted(group_ids)


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


@contextmanager
def explain_access(engine: Engine, way: GpuWay, gpus: Sequence[str]) -> Iterator[None]:
    """Explain the engine's refusal of a container with GPUs.

    If it is about a CDI specification, add the path of the file, because several folders can contain specifications.

    Raises GpuRefusedError instead of the engine's error.
    """
    try:
        with explain_refusals(gpus, rootless=bool(engine.facts.rootless)):
            yield
    except GpuRefusedError as error:
        if _is_desktop(engine):
            raise GpuRefusedError(error.sentence, _DESKTOP_ADVICE, words=error.words) from error
        folders = engine.info.get("CDISpecDirs") or () if engine.is_here and way is GpuWay.CDI else ()
        path = find_specification(map(Path, folders), gpus)
        if path is None or GENERATE not in error.command:
            raise
        sentence = f"{error.sentence} The specification is {path}."
        raise GpuRefusedError(sentence, error.do, error.command, words=error.words) from error


def find_specification(folders: Iterable[Path], gpus: Sequence[str]) -> Path | None:
    """Return the CDI specification that an engine uses for the GPUs, or None. Later folders take precedence."""
    paths = [
        path
        for folder in folders
        for path in sorted(folder.glob("*"))
        if path.suffix in {".json", ".yaml"} and not set(gpus).isdisjoint(read_device_names(path))
    ]
    return paths[-1] if paths else None


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
        return _explain_closed_nodes(closed, nodes)
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


def _explain_closed_nodes(closed: Mapping[str, int], modes: Mapping[str, int]) -> str:
    """Return why the user of a container can't open the device nodes, and what to do. The first node decides."""
    node, code = next(iter(closed.items()))
    sentence = f"The user of the containers can't open {', '.join(closed)} ({errno.errorcode.get(code, code)})."
    if code == errno.EPERM:
        # the permissions of a node give EACCES
        return (
            f"{sentence} The control group of the containers doesn't allow it. Use CDI (--gpu-via cdi). Or set "
            "no-cgroups = false, unless an engine is rootless, to let NVIDIA's tools allow it: sudo nvidia-ctk config "
            "--in-place --set nvidia-container-cli.no-cgroups=false"
        )
    if code != errno.EACCES:
        return f"{sentence} To check the driver: nvidia-smi"
    if modes[node] & 0o006 == 0o006:
        return (
            f"{sentence} All users have the permission, so SELinux denies it. To allow devices in containers: sudo "
            "setsebool -P container_use_devices on"
        )
    return (
        f"{sentence} To allow all users, run this command and restart the machine: echo options nvidia "
        "NVreg_DeviceFileMode=0666 | sudo tee /etc/modprobe.d/nvidia-nodes.conf"
    )


def choose_working(found: Sequence[GpuAccess], trial: Callable[[GpuAccess], str]) -> tuple[GpuAccess, list[str]]:
    """Return the first method that works, and messages for the user about it and the methods before it.

    `trial` starts a container with GPUs by a method, and describes what is missing. If something is missing with every
    method, the first method is used, and the launches will show whether TensorFlow works. Raises GpuRefusedError if the
    engine refused all methods.
    """
    errors: list[GpuRefusedError] = []
    messages: list[str] = []
    incomplete_methods: list[tuple[GpuAccess, str]] = []
    for access in found:
        try:
            missing = trial(access)
        except GpuRefusedError as error:
            errors.append(error)
            messages.append(f"Containers don't get GPUs through {access.way.words}. {error.sentence} {error.advice}")
            continue
        if not missing:
            messages += [
                f"Through {way.way.words}, containers don't get everything that CUDA needs. {reason}"
                for way, reason in incomplete_methods
            ]
            return access, [*messages, f"Containers get GPUs through {access.way.words}."]
        incomplete_methods.append((access, missing))
    if incomplete_methods:
        best_method, missing = incomplete_methods[0]
        return best_method, [*messages, f"Containers get GPUs through {best_method.way.words}. {missing}"]
    errors[0].message = "\n".join([errors[0].message, *messages[1:]])
    raise errors[0]


def list_device_names(folders: Iterable[Path]) -> list[str]:
    """Return the names of NVIDIA's devices in folders of CDI specifications, in order, each once."""
    paths = [path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")]
    return list(dict.fromkeys(name for path in paths for name in read_device_names(path)))


def read_device_names(path: Path) -> list[str]:
    """Return the names of NVIDIA's devices in one specification; none for another vendor or an unknown format."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        document = parse_json(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return []  # the engine also ignores such a file
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        return []
    entries = document.get("devices")
    names = [entry.get("name") for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [str(name) for name in names if name is not None]


def make_volume(engine: Engine, name: str) -> None:
    """Create the volume unless it exists."""
    with raise_as_sentences("create a volume"):
        engine.api.create_volume(name, labels={CODE_LABEL: CODE_VALUE})


def list_code_volumes(engine: Engine) -> list[str]:
    """Return the names of all volumes of compiled code."""
    with raise_as_sentences("list volumes"):
        response = engine.api.volumes(filters={"label": f"{CODE_LABEL}={CODE_VALUE}"})
    return sorted(volume["Name"] for volume in response["Volumes"] or ())


def remove_volumes(engine: Engine) -> int:
    """Remove the volumes of compiled code, and return their number."""
    names = list_code_volumes(engine)
    with raise_as_sentences("remove volumes"):
        for name in names:
            engine.api.remove_volume(name)
    return len(names)
