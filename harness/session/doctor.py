"""Checks of this machine for measurement, containers and GPUs, as JSON values."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from harness.backends import registry
from harness.environments.adhoc import add_requested
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock, lock_file
from harness.environments.requested import parse_requested
from harness.machine import topology
from harness.machine.cpus import choose
from harness.machine.doctor import prerequisites
from harness.machine.doctor.check import CheckResult, Level, make_result
from harness.machine.doctor.counters import CpuPlace
from harness.machine.doctor.noise import measure_noise
from harness.machine.gpu import selection
from harness.machine.host import require_linux
from harness.machine.lock import find_measuring, hold_machine
from harness.model.environment import Device, describe_stale_lines
from harness.model.errors import CannotRunHereError
from harness.model.texts import format_plain
from harness.plan.availability import describe_gpu_support, list_gpu_rows
from harness.plan.selection import resolve
from harness.project import Project
from harness.report.escape import escape_terminal
from harness.session.options import read_seconds, split_names


def measure_cpu_noise(cpus: str, seconds: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the noise of the CPUs for `seconds`, and return the score and the checks as JSON values.

    It holds the machine's lock, so that no run measures at the same time.
    """
    require_linux()
    duration, allowed, cpu_topology = read_seconds(seconds, "--seconds"), os.sched_getaffinity(0), topology.read()
    pinned_cpus = choose(cpus, allowed, cpu_topology)
    place = CpuPlace(pinned_cpus or tuple(sorted(allowed)), frozenset(allowed), cpu_topology)
    with hold_machine():
        say(f"Timing the same work repeatedly, for {format_plain(duration)} s.")
        diagnosis = measure_noise(place, duration)
    return {
        "score_percent": diagnosis.score_percent,
        "grade": diagnosis.grade,
        "sentence": diagnosis.headline(pinned=pinned_cpus is not None),
        "cpus": list(place.cpus),
        "checks": [*map(_describe_check, diagnosis.checks)],
    }


def check_prerequisites(typed: Sequence[str], *, gpu: bool, gpus: str) -> dict[str, Any]:
    """Check containers and, if requested, GPUs. Return the checks, the GPUs and the environments as JSON values.

    `typed` are names or globs of environments, by default the whole catalog. With a GPU, a row per environment
    describes how it runs on the GPUs.
    """
    gpu_names = selection.parse_requested(gpu, gpus)
    project = Project.find()
    backend = registry.open_image_backend(project.root)
    project = replace(project, architecture=registry.find_architecture(backend.name, project.root))
    host = backend.gpu_host
    catalog, selected = add_requested(load_environments(project), map(parse_requested, split_names(typed, "-e")))
    environments = [catalog[name] for name in resolve(selected or ["*"], list(catalog), "environment")]
    device = Device.GPU if gpu_names else Device.CPU
    # other environments have no image for the device
    locks = [
        load_lock(project, environment, device)
        for environment in environments
        if typed and device in environment.devices and lock_file(project, environment, device).is_file()
    ]
    selected_gpus, gpu_errors = host.gpus[:1], []
    try:
        if gpu_names:
            gpu_names = selection.resolve_names(gpu_names, host, typed=bool(gpus))
            selected_gpus = selection.select_gpus(gpu_names, host)
    except CannotRunHereError as error:  # the error is the result of the check
        selected_gpus, gpu_errors = [], [make_result("requested GPUs", Level.BAD, error.message, error.advice)]
    checks = [make_result("measuring now", Level.WARN, holder) for holder in find_measuring()]
    stale = describe_stale_lines(environments if typed else (), typed)
    checks += [make_result("release line", Level.WARN, sentence) for sentence in stale]
    checks += [prerequisites.check_architecture(project.architecture), *backend.findings(locks, gpu_names)]
    # the driver of a remote engine can only be checked by a launch
    checks.append(prerequisites.check_gpu_driver(host, wanted=bool(gpu_names) and host.is_here))
    checks += map(prerequisites.check_gpu, host.gpus)
    # settings are only checked on the GPUs of the launches
    checks += [check for gpu in host.select(gpu_names) for check in prerequisites.check_gpu_settings(gpu)]
    document: dict[str, Any] = {"checks": [*map(_describe_check, [*checks, *gpu_errors])]}
    if selected_gpus:
        document["gpus"] = [{"index": gpu.index, "name": gpu.name} for gpu in selected_gpus]
        document["environments"] = list_gpu_rows(environments, catalog, selected_gpus, host)
        document["gpu_sentence"] = describe_gpu_support(environments, selected_gpus, host)
    return document


def _describe_check(check: CheckResult) -> dict[str, Any]:
    """Return a check as JSON values, with escaped texts, because process names and engine messages are untrusted."""
    return {**asdict(check), "value": escape_terminal(check.value)}
