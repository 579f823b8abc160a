"""How containers get GPUs: the methods of an engine, the choice of a method, and the request."""

import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backends.docker import cdi
from harness.backends.docker.engine import Engine, find_address, is_of_this_machine
from harness.backends.docker.gpu_refusals import (
    CONFIGURE,
    DOCTOR,
    GENERATE,
    RESTART,
    SWITCH_CDI_ON,
    GpuRefusedError,
    explain_refusals,
)
from harness.model.backend import GpuWay
from harness.model.gpu import ALL, CAPABILITIES, FIRST, KIND, GpuHost

if TYPE_CHECKING:
    from harness.backends.docker.specification import Specification

#: The engine's names of NVIDIA's runtime, and of its device driver for NVIDIA's GPUs.
NVIDIA = "nvidia"

#: If one of these programs is on an engine's PATH when the engine starts, it has that device driver. Docker
#: Engine recognizes the second program from version 29 on.
HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook")

#: The GPUs' device node on WSL2.
WSL_NODE = Path("/dev/dxg")

#: The start of `INSTALL_ADVICE`, which `harness doctor --gpu` itself omits.
DOCTOR_ADVICE = f"`{DOCTOR}` shows which parts of the GPU setup are available, and which are missing. "

INSTALL_ADVICE = (
    f"{DOCTOR_ADVICE}If the engine finds NVIDIA's hook on the engine's own PATH, pass --gpu-via driver. Otherwise, "
    "install the NVIDIA driver and the package nvidia-container-toolkit. Docker before 28.3 also needs a restart with "
    '{"features": {"cdi": true}} in /etc/docker/daemon.json. Then generate a CDI specification of the GPUs'
)

_DESKTOP_ADVICE = (
    "Use the WSL 2 backend of Docker Desktop, and update Docker Desktop and the NVIDIA driver of Windows. The NVIDIA "
    "Container Toolkit isn't needed"
)


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
    return replace(read(), all_or_none=WSL_NODE.exists() or cdi.list_device_names(cdi.FOLDERS) == [ALL])


def find(engine: Engine, via: GpuWay | None = None) -> list[GpuAccess]:
    """Return the possible methods, or the requested one. Raises GpuRefusedError if there is none."""
    if engine.is_podman:
        raise GpuRefusedError(
            "Podman can't give GPUs to harness containers: its Docker-compatible interface doesn't list CDI devices.",
            "Use Docker Engine. For TensorFlow 2.5 and later, you can also use --backend local",
        )
    info = engine.info
    device_names = cdi.list_device_names(map(Path, info.get("CDISpecDirs") or ())) if engine.is_here else None
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
    if accesses and accesses[-1].way is not GpuWay.DRIVER and find_host().gpus:
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
    return engine.is_here and not engine.info.get("CDISpecDirs") and bool(cdi.list_device_names(cdi.FOLDERS))


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
    specification: "Specification", way: GpuWay, gpus: Sequence[str], groups: Sequence[int] = ()
) -> "Specification":
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


@contextmanager
def explain_access(engine: Engine, way: GpuWay, gpus: Sequence[str]) -> Iterator[None]:
    """Explain the engine's refusal of a container with GPUs.

    If it is about a CDI specification, add the path of the file, because several folders can contain specifications.

    Raises GpuRefusedError instead of the engine's error.
    """
    try:
        with explain_refusals(gpus):
            yield
    except GpuRefusedError as error:
        if _is_desktop(engine):
            raise GpuRefusedError(error.sentence, _DESKTOP_ADVICE, words=error.words) from error
        folders = engine.info.get("CDISpecDirs") or () if engine.is_here and way is GpuWay.CDI else ()
        path = cdi.find_specification(map(Path, folders), gpus)
        if path is None or GENERATE not in error.command:
            raise
        sentence = f"{error.sentence} The specification is {path}."
        raise GpuRefusedError(sentence, error.do, error.command, words=error.words) from error


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
