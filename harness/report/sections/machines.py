"""The machines of a merged run, and whether machines that measured the same cells agree."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.analysis.results import Results
from harness.analysis.tables import Agreement
from harness.model.run import MachineFacts
from harness.model.scenario import MACHINE
from harness.model.texts import counted, joined
from harness.report import names
from harness.report.blocks import EVERYWHERE, FILES, REPORT, Column, Items, Section, Text, tabulate
from harness.report.comparisons import NO_VERDICT

#: The largest number of comparisons in the list of disagreements.
LISTED = 10


def collect_sentences(results: Results, get_sentences: Callable[[Results], Iterable[str]]) -> list[str]:
    """Return sentences about the run.

    For a merged run, return the sentences of each machine, which start with the machine's name.
    """
    return [
        f"{machine}: {sentence}" if machine else sentence
        for machine, machine_results in results.each_machine.items()
        for sentence in get_sentences(machine_results)
        if sentence
    ]


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on the machines, with the comparisons on which they differ."""
    machines = results.run.machines
    if not machines:
        return
    # count the groups of all machines only once
    groups = Counter(group.machine for group in results.run.plan.groups)
    columns = [
        Column[MachineFacts]("machine", lambda facts: facts.label, is_label=True),
        Column[MachineFacts]("model", name_models),
        Column[MachineFacts]("groups", lambda facts: str(groups[facts.machine.id]), is_number=True),
        Column[MachineFacts]("id", lambda facts: facts.machine.id),
        Column[MachineFacts]("runs", lambda facts: ", ".join(facts.runs)),
    ]
    disagreements = [agreement for agreement in results.agreements if agreement.agrees is False]
    lines = [describe_difference(agreement) for agreement in disagreements[:LISTED]]
    if len(disagreements) > LISTED:
        lines.append(f"and {counted(len(disagreements) - LISTED, 'more comparison')}")
    yield Section(
        "Machines",
        "machines",
        [
            tabulate("Machines", columns, machines, where=FILES),
            Text(explain_separate(machines), where=REPORT),
            *([Items(lines, where=EVERYWHERE)] if lines else []),
        ],
    )


def name_models(facts: MachineFacts) -> str:
    """Return the models of a machine's CPU and GPUs."""
    gpus = facts.host.get("gpus")
    gpu_names = [gpu.get("name") for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
    cpu = facts.backend.to_dict().get("architecture") if facts.backend.is_remote else facts.host.get("cpu")
    return ", ".join(str(part) for part in (cpu, *gpu_names) if part)


def explain_separate(machines: Sequence[MachineFacts]) -> str:
    """Return sentences: whether the machines' models differ, and that the machines' results aren't combined."""
    models = {name_models(machine) for machine in machines}
    kind = "are different models" if len(models) > 1 else "are the same model"
    return (
        f"The machines {kind}. Each row has the results of one machine. Intervals, controls and variances are computed "
        "per machine, and machines aren't compared."
    )


def describe_absent(results: Results) -> list[str]:
    """Return a sentence on missing shards, so that an incomplete run isn't mistaken for a complete run."""
    shards = [f"{shard} ({counted(len(groups), 'group')})" for shard, groups in results.run.absent.items()]
    return [f"The plan is incomplete: the runs of these shards are missing: {joined(shards)}."] if shards else []


def describe_agreements(results: Results) -> list[str]:
    """Return sentences on whether machines agree on the comparisons that several of them measured."""
    counts = Counter(agreement.agrees for agreement in results.agreements)
    if not counts:
        return []
    machine_names = joined(list(dict.fromkeys(name for agreement in results.agreements for name in agreement.compared)))
    parts = [
        f"they agree on {counts[True]}" if counts[True] else "",
        f"they differ on {counts[False]}" if counts[False] else "",
        f"some have no clear verdict on {counts[None]}" if counts[None] else "",
    ]
    return [
        f"{machine_names} measured {counted(counts.total(), 'comparison')} each: {joined(list(filter(None, parts)))}."
    ]


def name_sides(agreement: Agreement) -> str:
    """Return the compared sides, and the row: `graph vs eager, tf1.14 (fit)`."""
    axes = [axis for axis in names.find_varying_axes(agreement.table) if axis != MACHINE]
    place = names.place(agreement.table, agreement.row, axes)
    return f"{names.name_comparison(agreement.table, agreement.column)}{f' ({place})' if place else ''}"


def describe_difference(agreement: Agreement) -> str:
    """Return a sentence with the verdict of each machine, for a comparison on which the machines differ."""
    verdicts = [f"{verdict or NO_VERDICT} on {machine}" for machine, verdict in agreement.verdicts.items()]
    return f"{names.name_table(agreement.table)}: {name_sides(agreement)} is {joined(verdicts)}."
