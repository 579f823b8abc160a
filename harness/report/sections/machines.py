"""The machines of a merged run: the results of each machine, and whether machines that ran the same cells agree."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.analysis.agreement import Agreement
from harness.analysis.results import Results
from harness.model.run import MachineFacts
from harness.model.scenario import MACHINE
from harness.model.texts import counted, joined
from harness.report import names
from harness.report.blocks import EVERYWHERE, FILES, REPORT, Column, Items, Section, Text, tabulate
from harness.report.comparisons import NO_VERDICT

#: The largest number of such comparisons in the list.
LISTED = 10


def told(results: Results, of: Callable[[Results], Iterable[str]]) -> list[str]:
    """Return sentences about the run; for a merged run, those of each machine, beginning with the machine's name."""
    return [
        f"{machine}: {sentence}" if machine else sentence
        for machine, each in results.each_machine.items()
        for sentence in of(each)
        if sentence
    ]


def sections(results: Results) -> Iterator[Section]:
    """Yield the section on the machines, and on each comparison on which they differ."""
    machines = results.run.machines
    if not machines:
        return
    # what is under way there must not be looked up by each of them
    groups = Counter(group.machine for group in results.run.plan.groups)
    columns = [
        Column[MachineFacts]("machine", lambda each: each.label, is_label=True),
        Column[MachineFacts]("model", model),
        Column[MachineFacts]("groups", lambda each: str(groups[each.machine.id]), is_number=True),
        Column[MachineFacts]("id", lambda each: each.machine.id),
        Column[MachineFacts]("runs", lambda each: ", ".join(each.runs)),
    ]
    differing = [each for each in results.agreements if each.agrees is False]
    lines = [difference(each) for each in differing[:LISTED]]
    more = [f"and {counted(len(differing) - LISTED, 'more comparison')}"] if len(differing) > LISTED else []
    yield Section(
        "Machines",
        "machines",
        [
            tabulate("Machines", columns, machines, where=FILES),
            Text(apart(machines), where=REPORT),
            *([Items([*lines, *more], where=EVERYWHERE)] if lines else []),
        ],
    )


def model(each: MachineFacts) -> str:
    """Return the models of a machine's CPU and GPUs."""
    cards = each.host.get("gpus")
    known = [card.get("name") for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []
    cpu = each.backend.told().get("architecture") if each.backend.is_remote else each.host.get("cpu")
    return ", ".join(str(part) for part in (cpu, *known) if part)


def apart(machines: Sequence[MachineFacts]) -> str:
    """Return a sentence that results of different machines aren't combined, and whether their models differ."""
    models = {model(each) for each in machines}
    of = "are different models" if len(models) > 1 else "are the same model"
    return (
        f"The machines {of}. Each row has the results of one machine. Intervals, controls and variances are computed "
        "per machine, and machines aren't compared."
    )


def absent(results: Results) -> list[str]:
    """Return a sentence on missing parts of the plan, so that an incomplete run isn't mistaken for a complete one."""
    told = [f"{shard} ({counted(len(groups), 'group')})" for shard, groups in results.run.absent.items()]
    return [f"The plan is incomplete: the runs of these shards are missing: {joined(told)}."] if told else []


def sentences(results: Results) -> list[str]:
    """Return sentences on whether machines agree on the comparisons that several of them measured."""
    found = Counter(each.agrees for each in results.agreements)
    if not found:
        return []
    on = joined(list(dict.fromkeys(name for each in results.agreements for name in each.compared)))
    parts = [
        f"they agree on {found[True]}" if found[True] else "",
        f"they differ on {found[False]}" if found[False] else "",
        f"on {found[None]} some have no clear verdict" if found[None] else "",
    ]
    return [f"{on} measured {counted(found.total(), 'comparison')} each: {joined(list(filter(None, parts)))}."]


def what(each: Agreement) -> str:
    """Return the compared sides, and the row: `graph vs eager, tf1.14 (fit)`."""
    axes = [axis for axis in names.varying(each.table) if axis != MACHINE]
    place = names.place(each.table, each.row, axes)
    return f"{names.what(each.table, each.column)}{f' ({place})' if place else ''}"


def difference(each: Agreement) -> str:
    """Return the result of each machine for a comparison on which they differ."""
    said = [f"{verdict or NO_VERDICT} on {machine}" for machine, verdict in each.verdicts.items()]
    return f"{names.title(each.table)}: {what(each)} is {joined(said)}."
