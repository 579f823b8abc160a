"""What is looked at before a run, and by `harness doctor`: Docker, its builder, room on the disk, and the GPUs."""

import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.machine.doctor.check import CheckResult, Level
from harness.machine.doctor.surroundings import buildx, disk_room, docker, gpu, gpu_access, gpu_driver
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.gpu import Card, GpuHost
from harness.plan.availability import gpu_advice
from harness.plan.gpus import fit

if TYPE_CHECKING:
    from harness.backends.engine import Engine

#: What one more image takes on the disk: itself (for the CPU 1.9 GB with tf2.21, for the GPU 5.0 GB with tf2.15) and
#: what its build leaves in the builder's cache, rounded up.
IMAGE_BYTES = {Device.CPU: 2 * 10**9, Device.GPU: 8 * 10**9}


def check(root: Path, requirements: Sequence[Requirement], cards: Sequence[Card], say: Callable[[str], object]) -> None:
    """Before a run in containers. `root` is the project's folder, `requirements` are what is to be launched.

    Raises CannotRunHereError where the images that are to be built have no room. `say` is told, in a sentence, what
    else computes on the `cards` that launches are given.
    """
    from harness.backends.engine import connect

    room = _room(connect(), root, requirements)
    if room.level is Level.BAD:
        images, free, needed = (room.facts[key] for key in ("images", "free", "needed"))
        which = "One image is" if images == 1 else f"{images} images are"
        raise CannotRunHereError(
            f"{which} to be built, for which about {needed / 1e9:.0f} GB are needed, and {room.facts['where']} has "
            f"{free / 1e9:.1f} GB.",
            "Remove what is no longer needed (docker system df), or ask for fewer environments (-e).",
        )
    for each in cards:
        for process in each.processes:
            who = f"{process.name} (process {process.pid})" if process.name else f"process {process.pid}"
            which = f"GPU {each.index} ({each.name})"
            say(f"{which} is also used by {who}: launches that share it are marked as disturbed.")


def containers(
    root: Path, requirements: Sequence[Requirement], *, wanted: bool
) -> tuple[list[CheckResult], "Engine | None"]:
    """Docker, its builder and the room for the images that are asked for, and the engine, where one answers."""
    from harness.backends.engine import connect

    try:
        engine = connect()
        facts = engine.facts
    except CannotRunHereError as error:
        return [docker("", error=error.message.rstrip("."), wanted=wanted), buildx(_buildx())], None
    version = str(engine.info.get("ServerVersion", ""))
    found = docker(version, api=str(facts["api"]), where=str(facts["where"]))
    return [found, buildx(_buildx()), _room(engine, root, requirements)], engine


def gpus(host: GpuHost, engine: "Engine | None", *, wanted: bool) -> list[CheckResult]:
    """The driver, how containers get GPUs, and each GPU; one line where there is none."""
    # what an engine elsewhere has, only a launch can tell
    found = [gpu_driver(host, wanted=wanted and (engine is None or engine.is_here))]
    if engine is not None and (wanted or not host.absent):
        found.append(_access(engine, wanted=wanted))
    return [*found, *(gpu(each) for each in host.cards)]


def environments(
    chosen: Iterable[Environment], catalog: Mapping[str, Environment], cards: Sequence[Card], host: GpuHost
) -> list[dict[str, Any]]:
    """How each environment with GPU code runs on the cards: its name, the way, the reason and what to do."""
    rows = []
    for environment in chosen:
        if Device.GPU not in environment.devices:
            continue
        found = fit(environment, cards, host)
        told = found.advice
        if found.is_impossible:
            told = gpu_advice(found, environment, catalog.values(), cards, host)
        rows.append({"name": environment.name, "way": found.support.value, "reason": found.reason, "advice": told})
    return rows


def _access(engine: "Engine", *, wanted: bool) -> CheckResult:
    from harness.backends import gpus

    try:
        return gpu_access(gpus.find(engine).way.value, wanted=wanted)
    except CannotRunHereError as error:
        return gpu_access("", error=error.message.rstrip("."), wanted=wanted)


def _room(engine: "Engine", root: Path, requirements: Sequence[Requirement]) -> CheckResult:
    from harness.backends.image import State
    from harness.backends.images import Images

    states = Images(engine, root).states(requirements) if requirements else []
    missing = [each for each, (state, _) in zip(requirements, states, strict=True) if state is not State.BUILT]
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
