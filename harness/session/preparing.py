"""Prepares the environments and GPUs of a run."""

import shlex
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.machine import host
from harness.machine.gpu import clocks
from harness.machine.gpu.host import keep_driver_loaded
from harness.machine.lock import hold_machine
from harness.model.backend import Backend, Preparation, Supply
from harness.model.environment import Device, Environment, Requirement
from harness.model.errors import CannotRunHereError, NothingPreparedError, UnavailableError
from harness.model.gpu import Gpu
from harness.model.launch import Limits
from harness.model.texts import joined
from harness.plan.gpus import fit
from harness.report.sections import run_info
from harness.session.images import keep_gpu_code
from harness.session.listener import Listener
from harness.session.planning.planned import Planned, drop_environments, set_environments


def prepare(planned: Planned, listener: Listener, *, wait: bool = False) -> dict[str, UnavailableError]:
    """Prepare the environments of a plan under the machine's lock. Return the unavailable ones with their errors.

    The listener gets messages about unavailable environments. Raises the errors of `run`.
    """
    backend, _ = planned.choose_backend()
    if not backend.unprepared(planned.needed):
        return {}
    with hold_machine(listener.say if wait else None):
        backend.check_room(planned.needed)
        unavailable = dict(prepare_environments(backend, planned.needed, listener).unavailable)
    _announce_unavailable(unavailable, listener)
    return unavailable


def prepare_available(planned: Planned, backend: RegisteredBackend, listener: Listener) -> tuple[Planned, Preparation]:
    """Prepare the environments. Return the plan with those that are available here, and the preparation."""
    try:
        preparation = prepare_environments(backend, planned.needed, listener)
    except NothingPreparedError as error:
        error.advice = "\n".join(filter(None, [error.advice, suggest_environments(planned, backend)]))
        raise
    _announce_unavailable(preparation.unavailable, listener)
    planned, refused = _read_gpu_code(planned, preparation.unavailable, backend, listener)
    return drop_environments(planned, {**preparation.unavailable, **refused}), preparation


def _read_gpu_code(
    planned: Planned, unavailable: Container[str], backend: RegisteredBackend, listener: Listener
) -> tuple[Planned, dict[str, UnavailableError]]:
    """Read and save the GPU code of wheels that are newer than the catalog.

    Return the plan with this code, and errors for the wheels that can't run on the GPU.
    """
    actual: dict[str, Environment] = {}
    for requirement in planned.needed:
        name = requirement.environment.name
        if requirement.device is Device.CPU or not requirement.environment.is_unread or requirement.name in unavailable:
            continue
        try:
            verification = backend.verify(requirement)
        except CannotRunHereError as error:
            listener.say(f"The GPU code of {name} could not be read: {error.message}")
            continue
        if verification.read is not None:
            keep_gpu_code(verification)
            actual[name] = verification.read
            listener.say(f"GPU code of {name}: {verification.read.gpu_code}.")
    if not actual:
        return planned, {}
    new_planned, refused = set_environments(planned, actual)
    _announce_unavailable(refused, listener)
    return new_planned, refused


def _announce_unavailable(unavailable: Mapping[str, UnavailableError], listener: Listener) -> None:
    """Send the listener a sentence for each reason, with the environments that aren't available."""
    by_reason: dict[str, list[str]] = {}
    for environment, error in unavailable.items():
        by_reason.setdefault(str(error), []).append(environment)
    for reason, names in by_reason.items():
        listener.say(f"{joined(names)} {'is' if len(names) == 1 else 'are'} not available here: {reason}")


def suggest_environments(planned: Planned, backend: RegisteredBackend) -> str:
    """Return a sentence about environments that this machine can create, with a command; empty if there are none.

    In a container that can't create any environment, the sentence recommends another container image.
    """
    device, devices = Device.GPU if planned.plan.limits.gpus else Device.CPU, planned.plan.devices
    candidates = [
        environment
        for environment in load_environments(planned.project).values()
        if set(devices) <= set(environment.devices)
        and not fit(environment, planned.gpus, planned.gpu_host).is_impossible
    ]

    def is_here(environment: Environment) -> bool:
        return backend.supply(load_lock(planned.project, environment, device)) is Supply.HERE

    usable_names = [environment.name for environment in candidates if is_here(environment)]
    if usable_names:
        stable_names = [environment.name for environment in candidates if not environment.is_candidate]
        example_names = [name for name in usable_names if name in stable_names] or usable_names
        command = replace(planned.request, environments=example_names[-2:], reference="").command()
        return f"This machine can create {joined(usable_names)}. Example: {shlex.join(command)}"
    if not candidates or not host.detect_container() or registry.is_contained(backend.name):
        return ""
    python = max(candidates, key=lambda environment: environment.release).python
    names = [environment.name for environment in candidates if environment.python == python]
    return f"Use a container image with Python {python}, such as python:{python}-slim, for {joined(names)}."


def prepare_environments(backend: Backend, requirements: Sequence[Requirement], listener: Listener) -> Preparation:
    """Prepare environments, with progress for the listener. Raises NothingPreparedError if none is available."""
    with listener.preparing() as progress:
        return backend.prepare(list(requirements), progress)


def hold_gpus(
    resources: ExitStack, limits: Limits, selected_gpus: Sequence[Gpu], clock: str, listener: Listener
) -> None:
    """Keep the GPUs' driver loaded, and their clocks locked if requested, until `resources` are released."""
    if limits.gpus:
        resources.enter_context(keep_driver_loaded(selected_gpus))
        resources.enter_context(clocks.lock_clocks(selected_gpus, clock))
    if clock:
        listener.say(f"The clocks of the GPUs are locked for this run, {run_info.clock(clock)}.")


def try_gpus(backend: RegisteredBackend, requirements: Sequence[Requirement], listener: Listener) -> None:
    """Try the GPUs of launches in an environment that is already prepared. Without GPUs, this does nothing.

    Raises CannotRunHereError if they don't work.
    """
    for sentence in backend.try_gpus([requirement for requirement in requirements if requirement.device is Device.GPU]):
        listener.say(sentence)


def give_priority(backend: RegisteredBackend, limits: Limits, listener: Listener) -> None:
    """Give pinned launches priority on their CPUs. Launches on all CPUs get none, so that other work can run."""
    if limits.cpus:
        for sentence in backend.give_priority(limits.cpus):
            listener.say(sentence)
