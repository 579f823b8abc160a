"""Checks of prerequisites: Docker, its builder, disk space, and an unused GPU with its driver."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

from harness.machine.doctor.check import NOT_SHOWN, CheckResult, Level, format_gibibytes, make_result
from harness.model.environment import Device
from harness.model.gpu import Gpu, GpuHost, format_instances, format_version
from harness.model.texts import counted, format_plain

#: An older Docker limits neither CPUs nor memory on kernels with control groups of version 2 only.
OLDEST_DOCKER = (20, 10)
#: An older builder doesn't support the matrix in the bake file.
OLDEST_BUILDX = (0, 11)

#: The oldest compute capability whose clocks can be locked.
VOLTA = (7, 0)

#: The disk space for one more image or local environment, by device. It includes the copies that a builder or installer
#: saves, and is rounded up. An image for the CPU has 1.9 GB (tf2.21), and an image for the GPU 5.0 GB (tf2.15).
ENVIRONMENT_BYTES = {Device.CPU: 2 * 10**9, Device.GPU: 8 * 10**9}

#: Disk space for logs, results and the builder, in addition to the images.
SPARE_BYTES = 2 * 10**9


def check_docker(
    version: str,
    *,
    api: str = "",
    where: str = "",
    error: str = "",
    mend: str = "",
    wanted: bool = False,
    is_podman: bool = False,
) -> CheckResult:
    """Check the engine's version. An `error` means that no engine is reachable, which is bad if it is `wanted`.

    `mend` is the advice of that error.
    """
    is_outdated = _is_older(version, OLDEST_DOCKER) and not is_podman
    level = Level.WARN if is_outdated or is_podman else Level.GOOD
    parts = [version or f"version: {NOT_SHOWN}", f"API {api}" if api else "", where]
    advice = (
        "Docker Engine before version 20.10 can't limit CPUs and memory on current kernels (cgroup version 2). "
        "Update Docker Engine."
    )
    if is_podman:
        parts[0] = f"Podman {version}"
        advice = "harness supports Docker Engine. With Podman, launches get no GPUs and no CPU priority."
    if error:
        level, parts = Level.BAD if wanted else Level.WARN, [error]
        advice = (
            f"{mend} Without Docker, launches run in local environments: on GPUs only from TensorFlow 2.5 on, with "
            "access to the network, and with your rights."
        ).lstrip()
    facts = {"version": version, "api": api, "where": where, "error": error, "old": is_outdated}
    return make_result("Docker", level, ", ".join(filter(None, parts)), facts, advice=advice)


def check_priority(where: str, *, is_possible: bool) -> CheckResult:
    """Check whether pinned launches of a backend get priority over other work. `where` are its environments."""
    value = "priority over other work on their CPUs. To share the CPUs, pass --share to commands that measure"
    return make_result(
        "priority",
        Level.GOOD if is_possible else Level.WARN,
        f"launches in {where} have {value if is_possible else 'no priority over other work on their CPUs'}",
        {"where": where, "priority": is_possible},
        advice="Measure while no other work uses these CPUs.",
    )


def check_buildx(output: str | None) -> CheckResult:
    """Check the builder. `output` is the output of `docker buildx version`, or None if it is missing."""
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", output or "")
    version = match[1] if match else ""
    is_outdated = _is_older(version, OLDEST_BUILDX)
    level = Level.GOOD if version else Level.UNKNOWN
    value = version or "of an unknown version"
    advice = "docker-bake.hcl needs buildx 0.11 or newer. Update buildx."
    if output is None:
        value = "not installed"
        advice = (
            "buildx builds the images. Install buildx together with the docker command (Debian: docker-cli and "
            "docker-buildx)."
        )
    if output is None or is_outdated:
        level = Level.WARN
    return make_result(
        "buildx", level, value, {"version": version, "found": output is not None, "old": is_outdated}, advice=advice
    )


def check_disk_space(free: int | None, needed: int, images: int, where: str) -> CheckResult:
    """Check the disk space for `images` missing images, which need `needed` bytes. `free` is None if it isn't known."""
    level, value = Level.UNKNOWN, NOT_SHOWN
    if free is not None:
        level = Level.BAD if free < needed else Level.WARN if free < needed + SPARE_BYTES else Level.GOOD
        value = f"{free / 1e9:.1f} GB free{f' in {where}' if where else ''}"
    if images:
        value += f"; {counted(images, 'image')} to build: about {needed / 1e9:.1f} GB"
    return make_result(
        "disk room",
        level,
        value,
        {"free": free, "needed": needed, "images": images, "where": where},
        advice="Remove images and caches that you no longer need, or request fewer environments.",
        command="docker system df",
    )


def check_gpu_driver(host: GpuHost, *, wanted: bool) -> CheckResult:
    """Check the driver. If it is missing, the level is bad if a GPU is `wanted`, and otherwise unknown."""
    if host.absent:
        return make_result(
            "GPU",
            Level.BAD if wanted else Level.UNKNOWN,
            f"none found ({host.absent})",
            {"absent": host.absent, "wanted": wanted},
            advice=host.mend
            or "Launches on a GPU need the NVIDIA driver on the machine of the Docker Engine. `nvidia-smi` shows "
            "whether the driver works.",
        )
    cuda = format_version(host.cuda) if host.cuda else None
    value = host.driver or f"version: {NOT_SHOWN}"
    return make_result(
        "NVIDIA driver",
        Level.GOOD,
        f"{value}, supports CUDA up to {cuda}" if cuda else value,
        {"version": host.driver, "cuda": cuda},
    )


def check_gpu_access(
    way: str, *, told: Sequence[str] = (), error: str = "", advice: str = "", command: str = "", wanted: bool
) -> CheckResult:
    """Check the method of GPU access in containers. An `error` means that there is none.

    `told` are the sentences of a trial, the last one about the chosen method. Without a trial, it is empty. `advice`
    and `command` fix the error.
    """
    if error:
        level, value = Level.BAD if wanted else Level.WARN, error.rstrip(".")
    elif told:
        level = Level.GOOD if told == [f"Containers get GPUs through {way}."] else Level.WARN
        value, advice = f"containers get GPUs through {way}, as a test container showed", " ".join(told)
    else:
        note = ", but this was not tested, because no image is available" if wanted else ""
        level, value = Level.GOOD, f"containers may get GPUs through {way}{note}"
    return make_result(
        "GPU access", level, value, {"way": way, "tried": bool(told), "error": error}, advice=advice, command=command
    )


def check_gpu(gpu: Gpu) -> CheckResult:
    """Check one GPU: its model, and other processes that compute on it."""
    value = f"{gpu.name}, compute capability {format_version(gpu.capability)}, {format_gibibytes(gpu.memory_bytes)}"
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
        {
            "index": gpu.index,
            "model": gpu.name,
            "capability": format_version(gpu.capability),
            "memory": gpu.memory_bytes,
            "processes": [asdict(process) for process in gpu.processes],
            "partitioned": gpu.is_partitioned,
        },
        advice=" ".join(advice),
        command=command,
    )


def report_unavailable_gpus(error: str, advice: str) -> CheckResult:
    """Return the result for requested GPUs that launches can't get. `error` is the reason."""
    return make_result("requested GPUs", Level.BAD, error, {"error": error}, advice=advice)


def check_gpu_settings(gpu: Gpu) -> list[CheckResult]:
    """Check a GPU's settings. Return one result for each setting that affects measurements."""
    return [result for check in _SETTINGS if (result := check(gpu)) is not None]


def _make_setting_result(
    gpu: Gpu, name: str, value: str, advice: str, *, command: str = "", level: Level = Level.WARN
) -> CheckResult:
    """Return the result for one setting of a GPU. The advice ends with a colon if a command follows."""
    facts = {"index": gpu.index, **gpu.settings.to_dict()}
    return make_result(f"GPU {gpu.index} {name}", level, value, facts, advice=advice, command=command)


def _check_compute_mode(gpu: Gpu) -> CheckResult | None:
    default = f"sudo nvidia-smi -i {gpu.index} -c DEFAULT"
    match gpu.settings.compute_mode:
        case "prohibited":
            advice = "No process may use this GPU, so every launch would run without a GPU. To allow processes:"
            return _make_setting_result(gpu, "compute mode", "prohibited", advice, command=default, level=Level.BAD)
        case "exclusive process":
            advice = (
                "Only one process at a time may use this GPU, so a launch fails while another program uses the GPU. "
                "To allow several processes:"
            )
            return _make_setting_result(gpu, "compute mode", "exclusive process", advice, command=default)
    return None


def _check_persistence(gpu: Gpu) -> CheckResult | None:
    if gpu.settings.persistence is not False:
        return None
    return _make_setting_result(
        gpu,
        "persistence",
        "off",
        "When no process uses the GPU, its driver shuts down. The next process then waits 1 to 3 s, and locked clocks "
        "are lost. During a run, harness keeps the driver active. To keep it active between runs:",
        command=f"sudo nvidia-smi -i {gpu.index} -pm 1",
    )


def _check_clocks(gpu: Gpu) -> CheckResult | None:
    # the clocks of Pascal, of older GPUs and of MIG instances can't be locked
    if gpu.capability < VOLTA or gpu.is_partitioned:
        return None
    highest_mhz = gpu.settings.sm_clock_most_mhz
    return _make_setting_result(
        gpu,
        "clocks",
        f"{f'up to {highest_mhz} MHz; ' if highest_mhz else ''}the driver doesn't report whether the clocks are locked",
        "Unlocked clocks depend on heat and power, so they can differ between launches. `harness matrix --gpu "
        "--lock-clocks base` locks them for a run, and needs root. To lock the clocks yourself, until you run "
        "`nvidia-smi --reset-gpu-clocks`:",
        command=f"sudo nvidia-smi -i {gpu.index} --lock-gpu-clocks=tdp,tdp",
    )


def _check_power_limit(gpu: Gpu) -> CheckResult | None:
    limit, default = gpu.settings.power_limit_watts, gpu.settings.power_limit_default_watts
    if limit is None or default is None or limit >= default:
        return None
    return _make_setting_result(
        gpu,
        "power limit",
        f"{format_plain(limit)} W of {format_plain(default)} W",
        "The power limit was lowered, so under heavy load, this GPU runs at lower clocks than other GPUs of the "
        "same model.",
        command=f"sudo nvidia-smi -i {gpu.index} -pl {format_plain(default)}",
    )


def _check_ecc(gpu: Gpu) -> CheckResult | None:
    current, pending = gpu.settings.ecc, gpu.settings.ecc_pending
    if current is None or pending is None or current is pending:
        return None
    names = {True: "on", False: "off"}
    return _make_setting_result(
        gpu,
        "ECC",
        f"{names[current]}, and {names[pending]} after the next start of the machine",
        "Runs before and after the next start would differ in memory size and speed. To apply the change now:",
        command=f"sudo nvidia-smi -i {gpu.index} --gpu-reset",
    )


def _check_link(gpu: Gpu) -> CheckResult | None:
    link = gpu.settings
    is_narrow = link.pcie_width and link.pcie_width_most and link.pcie_width < link.pcie_width_most
    is_slow = link.pcie_generation and link.pcie_generation_most and link.pcie_generation < link.pcie_generation_most
    if not is_narrow and not is_slow:
        return None
    limits = [
        f"{link.pcie_width} of {link.pcie_width_most} lanes" if is_narrow else "",
        f"generation {link.pcie_generation} of {link.pcie_generation_most}" if is_slow else "",
    ]
    return _make_setting_result(
        gpu,
        "PCIe link",
        ", ".join(filter(None, limits)),
        "Copies to and from the GPU are slower than possible. The slot, its riser or another device on the same lanes "
        "limits the link.",
        command=f"nvidia-smi -i {gpu.index} -q | grep -A 12 'GPU Link Info'",
    )


def _check_display(gpu: Gpu) -> CheckResult | None:
    if not gpu.settings.display:
        return None
    return _make_setting_result(
        gpu,
        "screen",
        "drives a screen",
        "The desktop uses time and memory of this GPU, and isn't visible as another process. Measure on another GPU, "
        "or without a desktop:",
        command="sudo systemctl isolate multi-user.target",
    )


def _check_virtual(gpu: Gpu) -> CheckResult | None:
    if gpu.settings.virtualization != "vGPU":
        return None
    advice = "The load of other virtual machines on this GPU isn't visible. Measure on a whole GPU."
    return _make_setting_result(gpu, "vGPU", "a part of a GPU that other virtual machines use too", advice)


#: The checks of a GPU's settings, in the order of the output.
_SETTINGS: Sequence[Callable[[Gpu], CheckResult | None]] = (
    _check_compute_mode,
    _check_persistence,
    _check_clocks,
    _check_power_limit,
    _check_ecc,
    _check_link,
    _check_display,
    _check_virtual,
)


def _is_older(version: str, minimum: tuple[int, int]) -> bool:
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) < minimum
