"""The comparison of two runs: changed cells from A to B, the shift of all cells, and other differences."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.run_differences import Aspect, RunDifference
from harness.analysis.runs import FEWEST_CELLS, FEWEST_ROUNDS, CellChange, Changes, Pair, Shift
from harness.analysis.verdicts import Judgement, Verdict, Withheld, too_few
from harness.model.defaults import LEVEL
from harness.model.scenario import STEP, Cell
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import REPORT, Block, Column, Entry, Heading, Items, Section, Text, tabulate
from harness.report.comparisons import tally
from harness.report.format import Unit
from harness.report.phrases import capital, listed, remarks
from harness.report.sections import run_info
from harness.report.sections.scenarios import at_equal_steps, levels
from harness.report.sections.summary import control

#: The version of `--json`.
SCHEMA = 3

#: The largest number of packages of an environment that are named. More are counted.
PACKAGES = 8

# the order of the list: changes first
_ORDER = (
    *(Verdict.SLOWER, Verdict.MORE, Verdict.FASTER, Verdict.LESS),
    *(Verdict.DIFFERENT_WORK, Verdict.UNCLEAR, None, Verdict.SAME),
)

# labels of facts about the measurement, in addition to those of the machine
_OF_A_LAUNCH = {"cpus": "CPUs of a launch", "gpus": "GPUs of a launch", "memory_bytes": "memory of a launch"}


def sections(pair: Pair) -> list[Section]:
    """Return the sections of a comparison of the runs A and B."""
    others = [block for of in pair.others for block in table(pair, of)]
    blocks = [*head(pair), *table(pair), *others, *absent(pair), *differing(pair)]
    return [Section("B vs A", "compare", blocks)]


def head(pair: Pair) -> Iterator[Block]:
    """Return the runs, the number of changed cells, the common shift, and the smallest change that shows."""
    for name, results in (("A", pair.first), ("B", pair.second)):
        run = results.run
        yield Text(f"{name}: {run.folder or run.id}, started {run.started}", where=REPORT)
    if pair.machines:
        told = "; ".join(fact(each) for each in pair.machines)
        yield Text(
            f"These runs are of different machines: {told}. "
            "A difference below may come from the machine or from the software.",
            where=REPORT,
        )
    cells = pair.changes.cells
    both = counted(len(cells), "cell", "has")
    yield Text(f"{both} a number in both runs. B vs A: {tally(each.change.verdict for each in cells)}.", where=REPORT)
    yield Text(shift(pair), where=REPORT)
    for name, results in (("A", pair.first), ("B", pair.second)):
        yield Text(f"{name}: {control(results, pair.margin)}", where=REPORT)


def shift(pair: Pair) -> str:
    """Describe the change of the median cell, and whether the machine caused it."""
    found, margin = pair.changes.shift, format.share(pair.margin)
    if found is None:
        judged = sum(each.change.judged for each in pair.changes.cells) or "none"
        return (
            f"The shift is unknown: it needs {FEWEST_CELLS} judged cells, but the runs share {judged}. So the machine "
            "may have caused a change."
        )
    whose = "whose software is the same in both runs" if found.unchanged else "that are judged"
    moved = f"Shift: {takes(found.change)}, the median change of the {found.cells} cells {whose}"
    return f"{moved}{_meaning(found, margin)}"


def _meaning(found: Shift, margin: str) -> str:
    match found.change.verdict:
        case Verdict.SAME:
            return f": the same within {margin}, so changes of single cells have other causes than the machine."
        case Verdict.UNCLEAR:
            return ": too imprecise to show whether all cells changed together."
    if found.unchanged:
        return f". B is {found.change.verdict} with the same software, so the machine or the measurement changed."
    return (
        f". B is {found.change.verdict} as a whole, but the software of most cells may differ: the effects of the "
        "machine and of the software can't be separated."
    )


def table(pair: Pair, of: str = STEP) -> Iterator[Block]:
    """Return one row per cell, changes first, with an explanation of the numbers, for one quantity."""
    changes = pair.changes if of == STEP else pair.others[of]
    unit = format.unit_of_quantity(of, [each.first.value for each in changes.cells], pair.clock)
    named = names.apart([each.cell for each in changes.cells], pair.first.run.scenarios)
    ordered = sorted(changes.cells, key=lambda each: _ORDER.index(each.change.verdict))
    caption = "Cells" if of == STEP else f"Cells: {names.measure_of(of, pair.clock)}"
    made = tabulate(caption, columns(pair, changes, of, unit, named), ordered, where=REPORT, noun="cell")
    if of != STEP:
        yield Heading(names.measure_of(of, pair.clock), where=REPORT)
    yield made
    if of != STEP:
        yield Text(made.legend, True, where=REPORT)
        return
    yield Text(
        f"{made.legend} Rounds of different runs are not paired, so these intervals include the variability of both "
        "(Welch). Day-to-day differences are in the shift, not in these intervals.",
        True,
        where=REPORT,
    )
    judged = sum(each.change.judged for each in changes.cells)
    if judged:
        margin = format.share(pair.margin)
        separately = ", and separately the verdicts without the shift" if changes.shift else ""
        yield Text(
            f"Verdicts describe B: faster or slower by more than {margin}, the same within {margin}, unclear if "
            f"neither is shown. The verdicts of the {counted(judged, 'judged cell')} hold together at "
            f"{format.level(LEVEL)} (Holm){separately}.",
            True,
            where=REPORT,
        )
    shown = [each.change for each in changes.cells if each.change.ratio.interval]
    if shown:
        yield Text(levels(shown, FEWEST_ROUNDS), True, where=REPORT)


def columns(
    pair: Pair, changes: Changes, of: str, unit: Unit, named: dict[Cell, list[str]]
) -> list[Column[CellChange]]:
    """Return the columns of a cell."""
    measure, longer = names.measure_of(of, pair.clock), "longer" if is_time(of) else "more"
    per, symbol = (" per step" if of == STEP else "", f", {unit.symbol}" if unit.symbol else "")
    times = f"Ratios are the {measure} in B over the {measure} in A: above 1 B takes {longer}."
    times = f"{capital(measure)}{per}{f' in {unit.symbol}' if unit.symbol else ''}. {times}"
    return [
        Column("cell", lambda each: ", ".join(named[each.cell]), is_label=True),
        Column(f"A{symbol}", lambda each: format.time(each.first, unit), legend=times, is_number=True),
        Column(f"B{symbol}", lambda each: format.time(each.second, unit), is_number=True),
        Column("B / A", lambda each: _ratio(each, each.change), is_number=True),
        Column("without the shift", lambda each: _ratio(each, each.without_shift), is_number=True, is_optional=True),
        Column("verdict", lambda each: each.change.verdict or "", is_verdict=True, is_optional=True),
        Column("remarks", lambda each: remark(changes, each), is_optional=True),
    ]


def takes(judged: Judgement) -> str:
    """Return the time of the second run relative to the first, in words."""
    return format.ratio(judged.ratio)


def _ratio(each: CellChange, judged: Judgement | None) -> Entry:
    if judged is None or each.change.verdict is Verdict.DIFFERENT_WORK:
        return Entry("")
    return Entry(takes(judged), order=judged.ratio.value)


def remark(changes: Changes, each: CellChange) -> str:
    """Return the remark of one cell."""
    change, corrected = each.change, each.without_shift
    shifted = changes.shift and changes.shift.change.verdict in (Verdict.SLOWER, Verdict.FASTER)
    mixed = len({other.same_software for other in changes.cells}) > 1
    return remarks(
        [
            "work not checked" if each.work.work == "not checked" else each.work.reason,
            too_few(change.ratio.rounds, FEWEST_ROUNDS) if change.withheld is Withheld.FEW_ROUNDS else "",
            at_equal_steps(each.steps, change.withheld),
            f"{corrected.verdict} without the shift"
            if corrected and corrected.verdict and (shifted or corrected.verdict is not change.verdict)
            else "",
            "different software" if mixed and not each.same_software else "",
        ]
    )


def absent(pair: Pair) -> Iterator[Block]:
    """Yield the cells with a number in only one run, by the reason in the other run."""
    for name, lone in (("B", pair.changes.only_first), ("A", pair.changes.only_second)):
        by_status: dict[str, list[str]] = {}
        for each in lone:
            by_status.setdefault(each.status or "not asked for", []).append(str(each.cell))
        for status, cells in by_status.items():
            yield Text(f"No number in {name} ({status}): {listed(cells)}.", where=REPORT)


def differing(pair: Pair) -> Iterator[Block]:
    """Return other differences. Environments and scenarios with the same differences are grouped."""
    by_subject: dict[tuple[Aspect, str], list[str]] = {}
    for each in pair.differences:
        by_subject.setdefault((each.part, each.subject), []).append(fact(each))
    alike: dict[tuple[Aspect, tuple[str, ...]], list[str]] = {}
    for (part, subject), known in by_subject.items():
        alike.setdefault((part, tuple(known)), []).append(subject)
    if not alike:
        nothing = "machine, engine, measurement, harness, scenarios and environments are the same, as far as known"
        yield Text(f"Nothing else differs: {nothing}.", where=REPORT)
        return
    yield Text("Other differences, A → B:", where=REPORT)
    yield Items([_differing(part, subjects, known) for (part, known), subjects in alike.items()], where=REPORT)


def _differing(part: Aspect, subjects: Sequence[str], known: Sequence[str]) -> str:
    left = [f"and {len(known) - PACKAGES} more"] if len(known) > PACKAGES else []
    whose = ", ".join(filter(None, subjects))
    return f"{part}{f' {whose}' if whose else ''}: {'; '.join([*known[:PACKAGES], *left])}"


def fact(each: RunDifference) -> str:
    """Return one difference in words; for a hash, only that it differs."""
    if each.name == "image":
        return "a different image"
    if each.name == "source":
        return "its file, or the kit, has changed"
    called = _OF_A_LAUNCH.get(each.name, "") if each.part is Aspect.MEASUREMENT else ""
    return run_info.change(each.name, each.first, each.second, called)


def document(pair: Pair) -> dict[str, Any]:
    """Return the pair as JSON values: times in seconds per step, ratios as time(second) / time(first)."""
    return {
        "schema": SCHEMA,
        "first": _head(pair.first),
        "second": _head(pair.second),
        "margin": pair.margin,
        "other_machine": [asdict(each) for each in pair.machines],
        **asdict(pair.changes),
        "quantities": {of: asdict(changes) for of, changes in pair.others.items()},
        "differences": [asdict(each) for each in pair.differences],
    }


def _head(results: Results) -> dict[str, Any]:
    run, found = results.run, results.control
    return {
        "id": run.id,
        "started": run.started,
        "folder": run.folder,
        "clock": run.plan.clock.value,
        "control": found and asdict(found),
    }
