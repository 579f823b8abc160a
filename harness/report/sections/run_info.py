"""How it was measured: the configuration of the measurement, its checks, the machine, and every recorded fact."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.analysis.results import Results
from harness.model.gpu import BASE_CLOCK, describe_gpu
from harness.model.launch import Clock
from harness.model.run import RULES, Run
from harness.model.scenario import Scenario
from harness.model.texts import counted, format_plain, joined
from harness.report.blocks import (
    FILES,
    REST,
    Block,
    Bold,
    Code,
    Entry,
    Folded,
    Head,
    Items,
    Line,
    Link,
    Section,
    Table,
    Words,
)
from harness.report.format import bytes_
from harness.report.phrases import join_remarks
from harness.report.sections import interleaving, measurement, settings, timeline

#: The largest number of characters of a scenario's text in report.md. Longer texts are only in the details.
SCRIPT_CHARACTERS = 20_000

#: The explanation of CPU time.
CPU_TIME = "the CPU time of the process, in all its threads (--clock cpu), not wall-clock time"


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with details of the run."""
    yield Section("How it was measured", "measured", list(_list_blocks(results)))


def _list_blocks(results: Results) -> Iterator[Block]:
    run = results.run
    scenario_items = [
        describe_scenario(results, candidate) for candidate in run.scenarios if results.found.cells_of(candidate.name)
    ]
    placement = "" if run.machines else describe_placement(run)
    used_gpus = dict.fromkeys(gpu for launch in results.launches for gpu in launch.gpus)
    by_label = {
        "Rounds": timeline.describe_rounds(results),
        "Sampling": join_remarks([timeline.describe_sampling(results), placement]),
        "Clock": CPU_TIME if run.plan.clock is Clock.CPU else "",
        **_describe_checks(results),
        "Interleaving checks": interleaving.describe_checks(results),
        "Machine": "" if run.machines else describe_machine(run),
        **{
            f"Machine {name}": f"{describe_machine(part.run)}; launches {describe_placement(part.run)}"
            for name, part in results.machines.items()
        },
        "Not controlled": "" if run.machines else joined(run.backend.uncontrolled),
        "GPUs used": ", ".join(map(describe_gpu, used_gpus)),
        "GPU code": run.plan.compiled_code,
        "GPU clocks": describe_locked_clocks(results),
        "Run": describe_origin(run),
        "Baseline": run.reference,
    }
    labelled: list[Words] = [[Bold(f"{name}:"), f" {text}."] for name, text in by_label.items() if text]
    yield Items([*scenario_items, *labelled, *settings.describe_page_faults(results)], where=FILES)
    for scenario in run.scenarios:
        if scenario.name in run.scripts:
            yield make_script_block(scenario, run.scripts[scenario.name])
    lines = [Line([*map(Entry, row)]) for row in list_facts(run)]
    if lines:
        heads = [Head("of", is_label=True), Head("fact", is_label=True), Head("value")]
        yield Folded(
            "The machine and the backend, in full", [Table("The machine and the backend", heads, lines, "fact")]
        )


def _describe_checks(results: Results) -> dict[str, str]:
    """Return the interference and the A/A control of each machine, by label. Facts of the first screen are omitted."""
    checks, facts = {}, measurement.list_facts(results)
    for name, machine in results.each_machine.items():
        label = f" on {name}" if name else ""
        checks[f"Interference{label}"] = measurement.explain_interference(machine)
        if results.compares or results.claims:
            checks[f"A/A control{label}"] = measurement.describe_control(machine)
    return {label: text for label, text in checks.items() if text not in facts}


def describe_placement(run: Run) -> str:
    """Describe on which cores launches ran, and whether they had priority there."""
    return f"{timeline.describe_pinning(run)}{', with priority over other work' if run.backend.priority else ''}"


def describe_scenario(results: Results, scenario: Scenario) -> Words:
    """Describe a scenario: its source, and the number and the devices of its cells."""
    cells = results.found.cells_of(scenario.name)
    measured_count = sum(cell in results.found.series for cell in cells)
    observed_count = sum(cell in results.found.observed for cell in cells)
    devices = " and ".join(dict.fromkeys(f"the {cell.device.value.upper()}" for cell in cells))
    source: list[str | Link] = [", ", Link("source", scenario.source)] if scenario.source else []
    if observed_count and not measured_count:
        counts = f"{_count_cells(observed_count, len(cells), 'observations')} instead of times"
    else:
        observation_note = f", {observed_count} with observations only" if observed_count else ""
        counts = f"{_count_cells(measured_count, len(cells), 'a result')}{observation_note}"
    return [
        Bold(scenario.title),
        f" ({scenario.name}",
        *source,
        f"): {counted(len(cells), 'cell')} on {devices}, {counts}.",
    ]


def _count_cells(count: int, cells: int, noun: str) -> str:
    """Return a phrase on the number of a scenario's cells that have `noun`: `3 of them with a result`."""
    if cells == 1:
        return f"with {noun}" if count else f"without {noun}"
    share = "none" if not count else "all" if count == cells else f"{count} of them"
    return f"{share} with {noun}"


def make_script_block(scenario: Scenario, text: str) -> Folded:
    """Return a block with the full text of a user's scenario, so that a reader of the report can run it."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    where = FILES if len(text) <= SCRIPT_CHARACTERS else REST
    return Folded(f"The scenario {scenario.path.name}, SHA-256 {digest}", [Code(text, "python")], where=where)


def describe_locked_clocks(results: Results) -> str:
    """Describe the clock that the run locked, and the clocks that were read; empty if the run locked no clocks."""
    locked = results.run.plan.lock_clocks
    resources_list = [launch.resources for launch in results.launches if launch.resources.get("gpu_steady")]
    names = ("gpu_sm_clock_least_mhz", "gpu_sm_clock_mhz")
    clock_values = [resources[name] for resources in resources_list for name in names if name in resources]
    ends = dict.fromkeys(f"{end:.0f}" for end in (min(clock_values, default=0.0), max(clock_values, default=0.0)))
    clock_note = f"; the clocks were {' to '.join(ends)} MHz while steps were timed" if clock_values else ""
    return f"locked for the run, {clock(locked)}{clock_note}" if locked else ""


# Facts about a run as text.


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
    by_source = {} if run.machines else {"machine": run.host, "backend": run.backend.to_dict()}
    for facts in run.machines:
        by_source |= {facts.label: facts.host, f"{facts.label}: backend": facts.backend.to_dict()}
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
