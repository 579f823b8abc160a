"""What is looked at before a run in containers, and by `harness doctor`: the engine, its builder, room, and GPUs."""

import shutil
import subprocess
from collections.abc import Callable, Sequence

from harness.backends.docker import gpus
from harness.backends.docker.engine import Engine
from harness.backends.docker.images import Images
from harness.machine.doctor.check import CheckResult, Level
from harness.machine.doctor.surroundings import buildx, disk_room, docker, gpu_access
from harness.model.backend import ImageState
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.texts import counted

#: What one more image takes on the disk: itself (for the CPU 1.9 GB with tf2.21, for the GPU 5.0 GB with tf2.15) and
#: what its build leaves in the builder's cache, rounded up.
IMAGE_BYTES = {Device.CPU: 2 * 10**9, Device.GPU: 8 * 10**9}


def check_room(engine: Engine, images: Images, requirements: Sequence[Requirement]) -> None:
    """Raise CannotRunHereError where the images that are to be built have no room."""
    room = _room(engine, images, requirements)
    if room.level is Level.BAD:
        count, free, needed = (room.facts[key] for key in ("images", "free", "needed"))
        raise CannotRunHereError(
            f"{counted(count, 'image', 'is')} to be built. This needs about {needed / 1e9:.0f} GB, and "
            f"{room.facts['where']} has {free / 1e9:.1f} GB.",
            "Remove what is no longer needed (docker system df), or ask for fewer environments (-e).",
        )


def findings(
    reach: Callable[[], tuple[Engine, Images]], requirements: Sequence[Requirement], *, wanted: bool, with_gpus: bool
) -> list[CheckResult]:
    """The engine, its builder, the room for the images that are asked for, and how containers get GPUs.

    `reach` gives the engine and its images, or raises CannotRunHereError; `wanted`: a launch on GPUs is asked for.
    """
    try:
        engine, images = reach()
        facts = engine.facts
    except CannotRunHereError as error:
        return [docker("", error=error.message.rstrip("."), wanted=wanted), buildx(_buildx())]
    found = docker(engine.version, api=facts.api, where=facts.where)
    ways = [_access(engine, wanted=wanted)] if with_gpus else []
    return [found, buildx(_buildx()), _room(engine, images, requirements), *ways]


def _access(engine: Engine, *, wanted: bool) -> CheckResult:
    try:
        return gpu_access(gpus.find(engine).way.value, wanted=wanted)
    except CannotRunHereError as error:
        return gpu_access("", error=error.message.rstrip("."), wanted=wanted)


def _room(engine: Engine, images: Images, requirements: Sequence[Requirement]) -> CheckResult:
    states = images.states(requirements) if requirements else []
    missing = [each for each, image in zip(requirements, states, strict=True) if image.state is not ImageState.BUILT]
    needed = sum(IMAGE_BYTES[each.device] for each in missing)
    where = str(engine.info.get("DockerRootDir", "")) if engine.is_here else ""
    return disk_room(_free(where), needed, len(missing), where)


def _free(folder: str) -> int | None:
    """Bytes that are free where a folder is; None where it is on another machine, or not seen from here."""
    try:
        return shutil.disk_usage(folder).free if folder else None
    except OSError:
        return None


def _buildx() -> str | None:
    try:
        done = subprocess.run(["docker", "buildx", "version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout
