"""Checks of prerequisites: Docker, its builder, disk space, and an unused GPU with its driver."""

import re
from collections.abc import Iterator, Sequence

from harness.machine.doctor.check import NOT_SHOWN, CheckResult, Level, make_result
from harness.model.backend import DiskSpace
from harness.model.environment import ARM64, X86_64
from harness.model.gpu import Gpu, GpuHost, format_instances, format_version
from harness.model.texts import counted, format_plain

#: An older Docker limits neither CPUs nor memory on kernels with control groups of version 2 only.
OLDEST_DOCKER = (20, 10)
#: An older builder doesn't support the matrix in the bake file.
OLDEST_BUILDX = (0, 11)

#: The oldest compute capability whose clocks can be locked.
VOLTA = (7, 0)

#: Disk space for logs, results and the builder, in addition to the images.
SPARE_BYTES = 2 * 10**9


def check_architecture(architecture: str) -> CheckResult:
    """Check whether TensorFlow has wheels for the processors that run launches."""
    value = {X86_64: architecture, ARM64: f"{architecture}: releases from 2.7 on, without GPUs"}.get(architecture)
    return make_result(
        "architecture",
        Level.GOOD if value else Level.BAD,
        value or architecture or NOT_SHOWN,
        f"TensorFlow has wheels for {X86_64} and {ARM64}. Use another machine.",
    )


def check_docker(version: str, *, where: str, is_podman: bool) -> CheckResult:
    """Check the version of a reachable engine. `where` is its machine."""
    value = f"{version or f'version: {NOT_SHOWN}'}, {where}"
    if is_podman:
        advice = "With Podman, launches get no GPUs and no CPU priority, and images are built one after the other."
        return make_result("Docker", Level.WARN, f"Podman {value}", advice)
    return make_result(
        "Docker",
        Level.WARN if _is_older(version, OLDEST_DOCKER) else Level.GOOD,
        value,
        "Docker Engine before version 20.10 can't limit CPUs and memory on current kernels (cgroup version 2). "
        "Update Docker Engine.",
    )


def report_missing_docker(error: str, advice: str, *, wanted: bool) -> CheckResult:
    """Return the result if no engine is reachable: bad if it is `wanted`. `error` is the reason."""
    consequence = (
        "Without Docker, launches run in local environments: on GPUs only from TensorFlow 2.5 on, with access to the "
        "network, and with your rights."
    )
    return make_result("Docker", Level.BAD if wanted else Level.WARN, error, f"{advice} {consequence}".lstrip())


def check_priority(*, is_possible: bool) -> CheckResult:
    """Check whether pinned launches in containers get priority over other work."""
    value = "launches have no priority over other work on their CPUs"
    if is_possible:
        value = "launches have priority over other work on their CPUs, unless you pass --share"
    level = Level.GOOD if is_possible else Level.WARN
    return make_result("priority", level, value, "Measure while no other work uses these CPUs.")


def check_buildx(output: str | None) -> CheckResult:
    """Check the builder. `output` is the output of `docker buildx version`, or None if it is missing."""
    if output is None:
        advice = (
            "buildx builds the images. Install buildx together with the docker command (Debian: docker-cli and "
            "docker-buildx)."
        )
        return make_result("buildx", Level.WARN, "not installed", advice)
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", output)
    if match is None:
        return make_result("buildx", Level.UNKNOWN, "of an unknown version")
    level = Level.WARN if _is_older(match[1], OLDEST_BUILDX) else Level.GOOD
    return make_result("buildx", level, match[1], "docker-bake.hcl needs buildx 0.11 or newer. Update buildx.")


def check_disk_space(space: DiskSpace) -> CheckResult:
    """Check the disk space for the missing images."""
    level, value = Level.UNKNOWN, NOT_SHOWN
    if space.free is not None:
        level = Level.WARN if space.free < space.needed + SPARE_BYTES else Level.GOOD
        level = Level.BAD if space.free < space.needed else level
        value = f"{space.free / 1e9:.1f} GB free in {space.folder}"
    if space.images:
        value += f"; {counted(space.images, 'image')} to build: about {space.needed / 1e9:.1f} GB"
    return make_result(
        "disk room",
        level,
        value,
        "Remove images and caches that you no longer need, or request fewer environments.",
        "docker system df",
    )


def check_gpu_driver(host: GpuHost, *, wanted: bool) -> CheckResult:
    """Check the driver. If it is missing, the level is bad if a GPU is `wanted`, and otherwise unknown."""
    if host.absent:
        return make_result(
            "GPU",
            Level.BAD if wanted else Level.UNKNOWN,
            f"none found ({host.absent})",
            host.mend
            or "Launches on a GPU need the NVIDIA driver on the machine of the Docker Engine. `nvidia-smi` shows "
            "whether the driver works.",
        )
    cuda = f", supports CUDA up to {format_version(host.cuda)}" if host.cuda else ""
    return make_result("NVIDIA driver", Level.GOOD, f"{host.driver or f'version: {NOT_SHOWN}'}{cuda}")


def check_gpu_access(way: str, *, told: Sequence[str] = (), wanted: bool) -> CheckResult:
    """Check the method of GPU access in containers.

    `told` are the sentences of a trial, the last one about the chosen method. Without a trial, it is empty.
    """
    if told:
        level = Level.GOOD if told == [f"Containers get GPUs through {way}."] else Level.WARN
        value = f"containers get GPUs through {way}, as a test container showed"
        return make_result("GPU access", level, value, " ".join(told))
    note = ", but this was not tested, because no image is available" if wanted else ""
    return make_result("GPU access", Level.GOOD, f"containers may get GPUs through {way}{note}")


def report_missing_gpu_access(error: str, advice: str, command: str = "", *, wanted: bool) -> CheckResult:
    """Return the result if containers can't get GPUs. `advice` and `command` fix the `error`."""
    return make_result("GPU access", Level.BAD if wanted else Level.WARN, error.rstrip("."), advice, command)


def check_gpu(gpu: Gpu) -> CheckResult:
    """Check one GPU: its model, and other processes that compute on it."""
    value = f"{gpu.name}, compute capability {format_version(gpu.capability)}, {gpu.memory_bytes / 2**30:.1f} GiB"
    advice, command = [], f"sudo nvidia-smi -i {gpu.index} -mig 0"
    if gpu.is_partitioned:
        parts = format_instances(gpu) or "none yet, so nothing can run on it"
        value += f", divided into instances (MIG): {parts}"
        advice = [
            "An instance is a part of a GPU, and work on the other parts slows it down. Measure on whole GPUs, or pass "
            "the UUID of an instance (--gpus MIG-…)."
        ]
    if gpu.processes:
        descriptions = [
            f"{process.name or 'a process'} (process {process.pid})"
            + (f" {process.memory_bytes / 2**20:.0f} MiB" if process.memory_bytes else "")
            for process in gpu.processes
        ]
        value += f"; used by {', '.join(descriptions)}"
        action = "End the processes that use this GPU, or choose another GPU (--gpus)."
        advice, command = [action, "The report marks launches that share their GPU.", *advice], "nvidia-smi"
    return make_result(
        f"GPU {gpu.index}",
        Level.WARN if gpu.processes or gpu.is_partitioned else Level.GOOD,
        value,
        " ".join(advice),
        command,
    )


def check_gpu_settings(gpu: Gpu) -> Iterator[CheckResult]:
    """Check a GPU's settings. Yield a result for each setting that affects measurements."""
    name, settings, tool = f"GPU {gpu.index}", gpu.settings, f"sudo nvidia-smi -i {gpu.index}"
    if settings.compute_mode == "prohibited":
        advice = "No process may use this GPU, so every launch would run without a GPU. To allow processes:"
        yield make_result(f"{name} compute mode", Level.BAD, "prohibited", advice, f"{tool} -c DEFAULT")
    if settings.compute_mode == "exclusive process":
        advice = (
            "Only one process at a time may use this GPU, so a launch fails while another program uses the GPU. "
            "To allow several processes:"
        )
        yield make_result(f"{name} compute mode", Level.WARN, "exclusive process", advice, f"{tool} -c DEFAULT")
    if settings.persistence is False:
        advice = (
            "When no process uses the GPU, its driver shuts down. The next process then waits 1 to 3 s, and locked "
            "clocks are lost. During a run, harness keeps the driver active. To keep it active between runs:"
        )
        yield make_result(f"{name} persistence", Level.WARN, "off", advice, f"{tool} -pm 1")
    # the clocks of Pascal, of older GPUs and of MIG instances can't be locked
    if gpu.capability >= VOLTA and not gpu.is_partitioned:
        value = "the driver doesn't report whether the clocks are locked"
        advice = (
            "Unlocked clocks depend on heat and power, so they can differ between launches. `harness matrix --gpu "
            "--lock-clocks base` locks them for a run, and needs root. To lock the clocks yourself, until you run "
            "`nvidia-smi --reset-gpu-clocks`:"
        )
        yield make_result(f"{name} clocks", Level.WARN, value, advice, f"{tool} --lock-gpu-clocks=tdp,tdp")
    limit, default = settings.power_limit_watts, settings.power_limit_default_watts
    if limit is not None and default is not None and limit < default:
        value = f"{format_plain(limit)} W of {format_plain(default)} W"
        advice = (
            "The power limit was lowered, so under heavy load, this GPU runs at lower clocks than other GPUs of the "
            "same model."
        )
        yield make_result(f"{name} power limit", Level.WARN, value, advice, f"{tool} -pl {format_plain(default)}")
    if settings.display:
        advice = (
            "The desktop uses time and memory of this GPU, and isn't visible as another process. Measure on another "
            "GPU, or without a desktop:"
        )
        command = "sudo systemctl isolate multi-user.target"
        yield make_result(f"{name} screen", Level.WARN, "drives a screen", advice, command)


def _is_older(version: str, minimum: tuple[int, int]) -> bool:
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) < minimum
