"""How containers get GPUs: what an engine offers, what is asked of it, what its refusals mean, and compiled code.

A release that has no machine code for a GPU brings PTX, which the driver compiles at the first start, for half an hour
and longer. What it made is kept in volumes that outlive containers, one per image and GPU model: nothing else makes use
of the same code.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.backends.docker.engine import Engine, address, is_of_this_machine, sentences
from harness.model.errors import CannotRunHereError
from harness.model.gpu import GpuHost

if TYPE_CHECKING:
    from docker.types import DeviceRequest

#: The name that NVIDIA's devices have in CDI, the Container Device Interface.
KIND = "nvidia.com/gpu"

#: What means every GPU, in CDI and in `--gpus`.
ALL = "all"

#: The program that gives containers GPUs without CDI; an engine looks for it when it starts.
HOOK = "nvidia-container-runtime-hook"

#: compute: CUDA; utility: NVML and nvidia-smi. Graphics and video have no part in it.
CAPABILITIES = ("gpu", "compute", "utility")

ADVICE = (
    "Install NVIDIA's driver and the package nvidia-container-toolkit, then: "
    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml\n"
    'Docker before 28.3 also needs {"features": {"cdi": true}} in /etc/docker/daemon.json, and to be started anew.\n'
    "To see what is there and what is missing: harness doctor --gpu"
)

#: Where a container has compiled code; the GPU images' user owns the folder, and a new volume takes its owner over.
CODE_FOLDER = "/cache"

#: The driver's settings for it. The size, in bytes, is the one that TensorFlow's own warning asks for: the older
#: drivers' default is an eighth of it, and what does not fit is compiled again at each start.
CODE_ENVIRON: Mapping[str, str] = {"CUDA_CACHE_PATH": CODE_FOLDER, "CUDA_CACHE_MAXSIZE": str(2**31)}

CODE_LABEL = "harness.cache"
CODE_VALUE = "ptx"

_REFUSAL = re.compile(r"CDI device|could not select device driver|nvidia-container|libnvidia|NVML", re.IGNORECASE)


class GpuWay(StrEnum):
    """The way in which an engine gives GPUs to containers, as reports call it."""

    CDI = "CDI"
    RUNTIME = "NVIDIA's runtime"


@dataclass(frozen=True, slots=True)
class GpuAccess:
    """How containers of an engine get GPUs. `names` are the devices that it lists; empty where it lists none."""

    way: GpuWay
    names: tuple[str, ...] = ()


def access(info: Mapping[str, Any], listed: Sequence[str] | None, *, hooked: bool = False) -> GpuAccess | None:
    """How containers get GPUs, by what `docker info` says; None where they get none.

    `listed` are the names of the devices in the engine's CDI specifications, None where the engine is on another
    machine. `hooked`: NVIDIA's hook is installed on this machine. An engine on another machine that lists nothing is
    asked by a first launch.
    """
    devices = [str(each.get("ID", "")) for each in info.get("DiscoveredDevices") or () if each.get("Source") == "cdi"]
    names = [name.partition("=")[2] for name in devices if name.startswith(f"{KIND}=")] or list(listed or ())
    if names:
        return GpuAccess(GpuWay.CDI, tuple(dict.fromkeys(names)))
    if hooked or "nvidia" in (info.get("Runtimes") or {}):
        return GpuAccess(GpuWay.RUNTIME)
    if listed is not None:
        return None
    return GpuAccess(GpuWay.CDI if info.get("CDISpecDirs") else GpuWay.RUNTIME)


def host() -> GpuHost:
    """The GPUs of the machine whose engine will be used, where that is this machine."""
    where = address()
    if where and not is_of_this_machine(where):
        return GpuHost(absent="the engine is on another machine", is_here=False)
    from harness.machine.gpu.host import read  # noqa: PLC0415 - a machine without a GPU does without it

    return read()


def find(engine: Engine) -> GpuAccess:
    """How this engine's containers get GPUs. Raises CannotRunHereError where they get none."""
    listed = names_in(map(Path, engine.info.get("CDISpecDirs") or ())) if engine.is_here else None
    found = access(engine.info, listed, hooked=engine.is_here and shutil.which(HOOK) is not None)
    if found is None:
        raise CannotRunHereError(
            f"The Docker Engine has no GPU for containers: it lists no {KIND} (CDI) and has no NVIDIA runtime.", ADVICE
        )
    return found


def check(found: GpuAccess, gpus: Sequence[str]) -> None:
    """Raise CannotRunHereError where the engine lists devices, and not all of `gpus` are among them."""
    missing = [gpu for gpu in gpus if found.names and gpu not in found.names]
    if missing:
        raise CannotRunHereError(
            f"--gpus {','.join(gpus)}: the Docker Engine lists no GPU {', '.join(missing)}. "
            f"It lists {', '.join(found.names)}.",
            "Name one of these; after a change of GPUs or driver: "
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        )


def requests(found: GpuAccess, gpus: Sequence[str]) -> "list[DeviceRequest]":
    """What is asked of the engine for a container that is to have these GPUs, as the SDK takes it."""
    from docker.types import DeviceRequest

    if found.way is GpuWay.CDI:
        return [DeviceRequest(driver="cdi", device_ids=[f"{KIND}={gpu}" for gpu in gpus])]
    which: dict[str, Any] = {"count": -1} if ALL in gpus else {"device_ids": list(gpus)}
    return [DeviceRequest(driver="nvidia", capabilities=[list(CAPABILITIES)], **which)]


def options(way: str, gpus: Sequence[str]) -> list[str]:
    """What asks the same of the engine in a `docker run` that is typed by hand: words for a shell."""
    if not gpus:
        return []
    if way == GpuWay.CDI:
        return [f"--device {shlex.quote(f'{KIND}={gpu}')}" for gpu in gpus]
    return ["--gpus", ALL if ALL in gpus else shlex.quote(f'"device={",".join(gpus)}"')]


@contextmanager
def refusals(gpus: Sequence[str]) -> Iterator[None]:
    """Add the advice on GPUs to an engine's refusal that is about them; many come only when a container starts."""
    try:
        yield
    except CannotRunHereError as error:
        if not gpus or not _REFUSAL.search(error.message):
            raise
        raise CannotRunHereError(f"--gpus {','.join(gpus)}: {error.message}", ADVICE) from error


def names_in(folders: Iterable[Path]) -> list[str]:
    """The names of NVIDIA's devices in folders of CDI specifications, in order, each once."""
    paths = [path for folder in folders for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")]
    return list(dict.fromkeys(name for path in paths for name in devices(path)))


def devices(path: Path) -> list[str]:
    """The names of NVIDIA's devices in one specification; none where it is another vendor's, or not understood."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError):
        return []  # the engine ignores it too
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        return []
    entries = document.get("devices")
    named = [each.get("name") for each in entries if isinstance(each, Mapping)] if isinstance(entries, list) else []
    return [str(name) for name in named if name is not None]


def code_volume(image: str, models: Sequence[str]) -> str:
    """The volume's name: the image's id and the GPU models, as far as they are known."""
    slugs = [re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-") for model in models]
    return "-".join(["harness-ptx", image.rpartition(":")[2][:12], *dict.fromkeys(slugs or ["gpu"])])[:200]


def make_volume(engine: Engine, name: str) -> None:
    """Make the volume unless it is there."""
    with sentences("make a volume"):
        engine.api.create_volume(name, labels={CODE_LABEL: CODE_VALUE})


def code_volumes(engine: Engine) -> list[str]:
    """The names of all volumes of compiled code."""
    with sentences("list volumes"):
        found = engine.api.volumes(filters={"label": f"{CODE_LABEL}={CODE_VALUE}"})
    return sorted(volume["Name"] for volume in found["Volumes"] or ())


def remove_volumes(engine: Engine) -> int:
    """Remove the volumes of compiled code; returns how many there were."""
    names = code_volumes(engine)
    with sentences("remove volumes"):
        for name in names:
            engine.api.remove_volume(name)
    return len(names)
