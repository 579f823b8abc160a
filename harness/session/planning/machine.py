"""The first step of a plan: the devices, the limits of launches, and the GPUs."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from harness.backends import registry
from harness.machine import cpus
from harness.machine.gpu import selection
from harness.machine.slots import divide_machine
from harness.model.defaults import FIRST_START_TIMEOUT, TIMEOUT
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.gpu import CPU_ALONE, GpuHost
from harness.model.launch import Limits
from harness.model.scenario import CPUS, DEVICE, Scenario
from harness.session.planning.draft import Draft
from harness.session.request import LaunchRequest, Request


def choose_machine(draft: Draft) -> Draft:
    """Add the devices, the limits of launches, and the GPUs. Raises UsageError and CannotRunHereError."""
    request = draft.request
    devices, limits = _choose_limits(request)
    gpu_host = registry.find_gpu_host(request.backend, draft.project.root) if limits.gpus else CPU_ALONE
    if limits.gpus and isinstance(request, Request) and request.on:
        gpu_host = GpuHost(absent="the launches run on other machines", is_here=False)
    limits = replace(limits, gpus=selection.resolve_names(limits.gpus, gpu_host, typed=bool(request.gpus)))
    gpus = selection.select_gpus(limits.gpus, gpu_host)
    return replace(draft, devices=devices, limits=limits, gpu_host=gpu_host, gpus=gpus)


def _choose_devices(request: LaunchRequest) -> list[Device]:
    """Return the devices of the cells, the baseline first. Raises UsageError for conflicting options."""
    if DEVICE in request.axes:
        raise UsageError("`device` isn't an axis for -a.", "To compare the GPU with the CPU, pass --device cpu,gpu.")
    gpu_options = {"--gpus": request.gpus, "--gpu-via": request.gpu_via}
    others = [name for name, value in gpu_options.items() if value]
    devices = list(request.device) if isinstance(request, Request) else []
    if not devices:
        return [Device.GPU if request.gpu or others else Device.CPU]
    typed = f"--device {','.join(devices)}"
    if request.gpu:
        raise UsageError(f"--gpu and {typed} can't be combined: both select devices.", "Omit --gpu.")
    if others and Device.GPU not in devices:
        raise UsageError(f"{others[0]} selects a GPU, but {typed} measures without one.", f"Omit {others[0]}.")
    if request.claims and len(devices) > 1:
        raise UsageError(f"--claim and {typed} can't be combined: a claim is about one device.", "Use one device.")
    return devices


def _choose_limits(request: LaunchRequest) -> tuple[list[Device], Limits]:
    """Return the devices of the cells, and the limits of launches. Raises UsageError."""
    devices = _choose_devices(request)
    installed_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpu_names = selection.parse_requested(Device.GPU in devices, request.gpus)
    if isinstance(request, Request) and request.slots.isdecimal() and not (request.on or gpu_names):
        divide_machine(int(request.slots), os.sched_getaffinity(0))  # too many slots are an error in a dry run too
    # with one core, a GPU could wait for the CPU work of each step, so use all cores by default
    cores = request.cpus or ("all" if gpu_names or not cpus.can_pin() else "1")
    return devices, Limits(
        cpus=cpus.choose(cores, os.sched_getaffinity(0)),
        memory_bytes=request.memory or installed_bytes * 4 // 5,
        seconds=request.timeout or TIMEOUT,
        gpus=gpu_names,
        first_start_seconds=FIRST_START_TIMEOUT if gpu_names and not request.timeout else 0.0,
    )


def add_cores(limits: Limits, request: LaunchRequest, scenarios: Iterable[Scenario], pool: Collection[int]) -> Limits:
    """Return the limits with CPUs for the largest number of cores on the axis CPUS, if a scenario has this axis.

    The CPUs are chosen from --cpus, or otherwise from `pool`. Raises UsageError if these are too few.
    """
    counts = [int(count) for scenario in scenarios if CPUS in scenario.settings for count in scenario.axes[CPUS]]
    if not counts:
        return limits
    return replace(limits, cpus=cpus.choose_most(counts, limits.cpus if request.cpus and limits.cpus else pool))
