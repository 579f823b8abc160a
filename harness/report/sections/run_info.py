"""Facts about a run as text: its origin, its machine, and every recorded fact."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.model.gpu import BASE_CLOCK
from harness.model.run import RULES, Run
from harness.model.texts import counted, format_plain
from harness.report.format import bytes_
from harness.report.phrases import join_remarks


def describe_origin(run: Run) -> str:
    """Return the run's id, its start and its versions."""
    commit = f", commit {run.commit}" if run.commit else ""
    suite = f", suite {run.suite}" if run.suite else ""
    older = "; judged by newer rules" if run.rules < RULES else ""
    return f"{run.id}, started {run.started}, harness {run.harness}{commit}{suite}, seed {run.plan.seed}{older}"


def describe_machine(run: Run) -> str:
    """Describe the machine of the launches, which is the engine's machine if the engine is remote; empty if unknown."""
    is_remote = run.backend.is_remote
    hardware = run.backend.to_dict() if is_remote else run.host
    cores = int(hardware.get("cpus" if is_remote else "cores") or 0)
    memory, gpus = hardware.get("memory_bytes"), run.host.get("gpus")
    parts = [
        str(hardware.get("cpu") or hardware.get("architecture") or ""),
        counted(cores, "core") if cores else "",
        bytes_(memory) if isinstance(memory, int | float) and memory else "",
        *(_describe_gpu_facts(gpu) for gpu in (gpus if isinstance(gpus, list) else ())),
    ]
    return join_remarks([", ".join(filter(None, parts)), run.backend.engine or run.backend.name])


def clock(locked: str) -> str:
    """Describe the clock to which the GPUs are locked: `to 1410 MHz`."""
    return "to the base clock" if locked == BASE_CLOCK else f"to {locked} MHz"


def _describe_gpu_facts(gpu: Mapping[str, Any]) -> str:
    """Return the name of a GPU, with unusual facts in parentheses, such as a lowered power limit or a narrow link."""
    limit, default = gpu.get("power_limit_watts"), gpu.get("power_limit_default_watts")
    width, full_width = gpu.get("pcie_width"), gpu.get("pcie_width_most")
    unusual_facts = [
        f"limited to {format_plain(limit)} W of {format_plain(default)} W"
        if limit and default and limit != default
        else "",
        f"{width} of {full_width} PCIe lanes" if width and full_width and width < full_width else "",
        "divided into instances (MIG)" if "mig" in gpu else "",
        "a vGPU" if gpu.get("virtualization") == "vGPU" else "",
        "drives a screen" if gpu.get("display") else "",
    ]
    words = ", ".join(filter(None, unusual_facts))
    return f"{gpu.get('name', '')}{f' ({words})' if words else ''}"


def list_facts(run: Run) -> list[tuple[str, str, str]]:
    """Return the recorded facts about the machine and the backend, each as source, label and value."""
    by_source = {"machine": run.host, "backend": run.backend.to_dict()}
    if run.machines:
        by_source = {
            name: values
            for machine_facts in run.machines
            for name, values in (
                (machine_facts.label, machine_facts.host),
                (f"{machine_facts.label}: backend", machine_facts.backend.to_dict()),
            )
        }
    return [(name, label, text) for name, values in by_source.items() for label, text in list_pairs(values)]


def list_pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the text of every fact with a value. `memory_bytes` becomes `memory`, with a unit."""
    labelled = [(label(key), format_fact(key, value)) for key, value in values.items()]
    return [(name, text) for name, text in labelled if text]


#: Labels of facts that don't follow from their keys.
_LABELS = {"cpu": "CPU", "gpus": "GPUs", "gpu telemetry": "GPU telemetry", "gpus by": "GPUs by"}
#: Words in keys that have another spelling in labels.
_WORDS = {"sm": "SM", "ecc": "ECC", "pcie": "PCIe", "pci": "PCI", "mig": "MIG"}
#: The functions that format numbers, by the ending of their key. The label omits the ending.
_FORMATTERS: Mapping[str, Callable[[float], str]] = {
    "_bytes": bytes_,
    "_watts": lambda watts: f"{format_plain(watts)} W",
    "_mhz": lambda speed: f"{format_plain(speed)} MHz",
}


def label(key: str) -> str:
    """Return the label of a fact, which is its key in words or an entry of _LABELS."""
    for ending in _FORMATTERS:
        key = key.removesuffix(ending)
    words = key.replace("_", " ")
    return _LABELS.get(words) or " ".join(_WORDS.get(word, word) for word in words.split(" "))


def format_change(name: str, old: Any, new: Any, own_label: str = "") -> str:
    """Return a fact with both of its values: `GPU 0 power limit 400 W → 250 W`. `own_label` replaces its label."""
    return f"{own_label or label(name)} {format_fact(name, old) or 'none'} → {format_fact(name, new) or 'none'}"


def format_fact(key: str, value: Any) -> str:
    """Return the value of a fact as text; empty if there is no value."""
    if value is None or value in ("", [], {}):
        return ""
    unit = next((unit for ending, unit in _FORMATTERS.items() if key.endswith(ending)), None)
    if unit and isinstance(value, int | float):
        return unit(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(str(item) for item in value)
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return "; ".join(", ".join(f"{name} {text}" for name, text in list_pairs(item)) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
