"""Divides this machine into worker slots for a plan, and makes the plan for one slot."""

import os
from collections.abc import Sequence
from dataclasses import replace

from harness.backends import registry
from harness.machine import cpus
from harness.machine.gpu import selection as gpus
from harness.machine.slots import Slot, divide_machine
from harness.model.errors import UsageError
from harness.model.gpu import CPU_ALONE, Gpu
from harness.session.planning.inputs import add_cores
from harness.session.planning.planned import Planned


def divide_into_slots(planned: Planned, count: int | None) -> list[Slot]:
    """Divide this machine into `count` worker slots for a plan.

    If `count` is None, returns as many slots as the machine has. Raises UsageError if `count` is larger than that.
    """
    return divide_machine(count, os.sched_getaffinity(0), choose_slot_gpus(planned) if planned.plan.limits.gpus else ())


def choose_slot_gpus(planned: Planned) -> Sequence[Gpu]:
    """Return the GPUs for slots, one GPU per slot. Raises UsageError if the GPUs are different models."""
    selected_gpus = planned.gpus if planned.request.gpus else planned.gpu_host.gpus
    models = {gpu.name: gpu for gpu in selected_gpus}
    if len(models) > 1:
        names = "; ".join(f"{gpu.index}: {gpu.name}" for gpu in models.values())
        raise UsageError(
            f"Slots have one GPU each, and the GPUs are different models ({names}): results would depend on the slot.",
            "Pass GPUs of one model with --gpus.",
        )
    return selected_gpus


def limit_to_slot(planned: Planned, slot: Slot, slots: int) -> Planned:
    """Return the plan with the CPUs, the GPU and the memory of one slot."""
    request, limits = planned.request, planned.plan.limits
    cores = request.cpus or ("all" if slot.gpu else "1")
    limits = replace(
        limits,
        cpus=cpus.choose(cores, set(slot.cpus)) or slot.cpus,
        memory_bytes=request.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5 // slots,
        gpus=(slot.gpu,) if slot.gpu else (),
    )
    limits = add_cores(limits, request, planned.scenarios.values(), slot.cpus)
    host = registry.find_gpu_host(request.backend, planned.project.root) if slot.gpu else CPU_ALONE
    selected_gpus = gpus.select_gpus(limits.gpus, host) if slot.gpu else []
    return replace(planned, plan=replace(planned.plan, limits=limits), gpu_host=host, gpus=selected_gpus)
