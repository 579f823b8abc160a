"""How it was measured: the configuration of the measurement, its checks, and the machine."""

import hashlib
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.model.gpu import describe_gpu
from harness.model.launch import Clock
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.model.texts import counted, joined
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
from harness.report.phrases import join_remarks
from harness.report.sections import interleaving, measurement, settings, timeline
from harness.report.sections.run_info import clock, describe_machine, describe_origin, list_facts

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
