"""The comparison of two runs: the change of each cell from A to B, the shift of all cells, and other differences."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from harness.analysis.quantities import is_time
from harness.analysis.results import Results
from harness.analysis.run_differences import Aspect, RunDifference
from harness.analysis.runs import FEWEST_CELLS, FEWEST_ROUNDS, CellChange, Changes, Pair, Shift
from harness.analysis.verdicts import Judgement, Verdict, Withheld, describe_too_few
from harness.model.defaults import LEVEL
from harness.model.scenario import STEP, Cell
from harness.model.texts import counted
from harness.report import format, names
from harness.report.blocks import REPORT, Block, Column, Entry, Heading, Items, Section, Text, tabulate
from harness.report.comparisons import HOLM, count_verdicts, describe_deciding
from harness.report.format import Unit
from harness.report.phrases import capitalize, join_remarks, list_names
from harness.report.sections import run_info
from harness.report.sections.how_to_read import ALIKE
from harness.report.sections.measurement import describe_control
from harness.report.sections.remarks import describe_equal_steps

#: The version of the JSON format of `--json`.
SCHEMA = 3

#: The largest number of differences of an environment that are listed. The others are only counted.
PACKAGES = 8

# the order of the rows: changes first
_ORDER = (
    *(Verdict.SLOWER, Verdict.MORE, Verdict.FASTER, Verdict.LESS),
    *(Verdict.DIFFERENT_WORK, Verdict.UNCLEAR, None, Verdict.SAME),
)

# labels of facts about the measurement, in addition to the labels of facts about the machine
_LAUNCH_LABELS = {"cpus": "CPUs of a launch", "gpus": "GPUs of a launch", "memory_bytes": "memory of a launch"}


def make_sections(pair: Pair) -> list[Section]:
    """Return the sections of a comparison of the runs A and B."""
    tables = [block for quantity in pair.others for block in make_table(pair, quantity)]
    blocks = [*describe_runs(pair), *make_table(pair), *tables, *list_absent(pair), *list_differing(pair)]
    return [Section("B vs A", "compare", [replace(block, where=REPORT) for block in blocks])]


def describe_runs(pair: Pair) -> Iterator[Block]:
    """Yield the runs, the number of changed cells, the common shift, and the result of each run's A/A control."""
    for name, results in (("A", pair.first), ("B", pair.second)):
        run = results.run
        yield Text(f"{name}: {run.folder or run.id}, started {run.started}")
    if pair.machines:
        text = "; ".join(format_fact(difference) for difference in pair.machines)
        yield Text(
            f"These runs come from different machines: {text}. So the differences below may come from the machine or "
            "from the software."
        )
    cells = pair.changes.cells
    cell_count = counted(len(cells), "cell", "has")
    yield Text(f"{cell_count} a result in both runs. B vs A: {count_verdicts(cell.change.verdict for cell in cells)}.")
    yield Text(describe_shift(pair))
    for name, results in (("A", pair.first), ("B", pair.second)):
        yield Text(f"{name}: {describe_control(results, math.log1p(pair.margin))}.")


def describe_shift(pair: Pair) -> str:
    """Describe the change of the median cell, and whether the machine caused it."""
    shift, margin = pair.changes.shift, format.share(pair.margin)
    if shift is None:
        cells = [cell.change for cell in pair.changes.cells]
        usable_cells = sum(change.judged and change.ratio.rounds >= FEWEST_ROUNDS for change in cells) or "none"
        return (
            f"The shift is unknown: it needs {FEWEST_CELLS} judged cells with at least {FEWEST_ROUNDS} rounds in each "
            f"run, but the runs share {usable_cells}. So the machine may have caused a change."
        )
    clause = "whose software is the same in both runs" if shift.unchanged else "that are judged"
    sentence = f"Shift: {format.ratio(shift.change.ratio)}, the median change of the {shift.cells} cells {clause}"
    return f"{sentence}{_explain_shift(shift, margin)}"


def _explain_shift(shift: Shift, margin: str) -> str:
    match shift.change.verdict:
        case Verdict.SAME:
            return f": the same within {margin}, so changes of single cells have other causes than the machine."
        case Verdict.UNCLEAR:
            return ": too imprecise to show whether all cells changed together."
    if shift.unchanged:
        return f". B is {shift.change.verdict} with the same software, so the machine or the measurement changed."
    return (
        f". B is {shift.change.verdict} as a whole, but the software of most cells may differ: the effects of the "
        "machine and of the software can't be separated."
    )


def make_table(pair: Pair, quantity: str = STEP) -> Iterator[Block]:
    """Yield the table of one quantity, with one row per cell, changes first, and an explanation of its numbers."""
    changes = pair.changes if quantity == STEP else pair.others[quantity]
    unit = format.unit_of_quantity(quantity, [cell.first.value for cell in changes.cells], pair.clock)
    cell_names = names.distinguish_cells([cell.cell for cell in changes.cells], pair.first.run.scenarios)
    sorted_cells = sorted(changes.cells, key=lambda cell: _ORDER.index(cell.change.verdict))
    caption = "Cells" if quantity == STEP else f"Cells: {names.measure_of(quantity, pair.clock)}"
    table = tabulate(caption, make_columns(pair, changes, quantity, unit, cell_names), sorted_cells, noun="cell")
    if quantity != STEP:
        yield Heading(names.measure_of(quantity, pair.clock))
    yield table
    if quantity != STEP:
        yield Text(table.legend, True)
        return
    yield Text(
        f"{table.legend} Rounds of different runs are not paired, so these intervals include the variability of both "
        "(Welch). Day-to-day differences are in the shift, not in these intervals.",
        True,
    )
    judged_count = sum(cell.change.judged for cell in changes.cells)
    if judged_count:
        margin = format.share(pair.margin)
        separately = " The same holds separately for the verdicts without the shift." if changes.shift else ""
        yield Text(
            f"A verdict describes B: faster or slower (by more than {margin}), same (within {margin}), or unclear "
            "(the interval allows more than one of these). All verdicts of the "
            f"{counted(judged_count, 'judged cell')} are correct with {format.level(LEVEL)} confidence, and so are all "
            "intervals together."
            f"{f' {HOLM}' if judged_count > 1 else ''}{separately}",
            True,
        )
    if any(cell.change.ratio.interval and cell.change.ratio.rounds < FEWEST_ROUNDS for cell in changes.cells):
        yield Text(ALIKE.format(FEWEST_ROUNDS), True)


def make_columns(
    pair: Pair, changes: Changes, quantity: str, unit: Unit, cell_names: dict[Cell, list[str]]
) -> list[Column[CellChange]]:
    """Return the columns of the table of cells."""
    measure, comparative = names.measure_of(quantity, pair.clock), "longer" if is_time(quantity) else "more"
    suffix, symbol = (" per step" if quantity == STEP else "", f", {unit.symbol}" if unit.symbol else "")
    legend = f"A ratio is the {measure} in B divided by the {measure} in A. If it is above 1, B takes {comparative}."
    legend = f"{capitalize(measure)}{suffix}{f' in {unit.symbol}' if unit.symbol else ''}. {legend}"
    return [
        Column("cell", lambda cell: ", ".join(cell_names[cell.cell]), is_label=True),
        Column(f"A{symbol}", lambda cell: format.time(cell.first, unit), legend=legend, is_number=True),
        Column(f"B{symbol}", lambda cell: format.time(cell.second, unit), is_number=True),
        Column("B / A", lambda cell: _make_ratio_entry(cell, cell.change), is_number=True),
        Column(
            "without the shift",
            lambda cell: _make_ratio_entry(cell, cell.without_shift),
            is_number=True,
            is_optional=True,
        ),
        Column("verdict", lambda cell: cell.change.verdict or "", is_verdict=True, is_optional=True),
        Column("remarks", lambda cell: make_remark(changes, cell), is_optional=True),
    ]


def _make_ratio_entry(cell: CellChange, judgement: Judgement | None) -> Entry:
    if judgement is None or cell.change.verdict is Verdict.DIFFERENT_WORK:
        return Entry("")
    return Entry(format.ratio_and_inverse(judgement.ratio, judgement.verdict), order=judgement.ratio.value)


def make_remark(changes: Changes, cell: CellChange) -> str:
    """Return the remark of one cell."""
    change, without_shift = cell.change, cell.without_shift
    has_shift = changes.shift and changes.shift.change.verdict in (Verdict.SLOWER, Verdict.FASTER)
    has_mixed_software = len({other.same_software for other in changes.cells}) > 1
    return join_remarks(
        [
            describe_deciding(change.deciding),
            "work not checked" if cell.work.work == "not checked" else cell.work.reason,
            describe_too_few(change.ratio.rounds, FEWEST_ROUNDS) if change.withheld is Withheld.FEW_ROUNDS else "",
            describe_equal_steps(cell.steps, change.withheld),
            f"{without_shift.verdict} without the shift"
            if without_shift and without_shift.verdict and (has_shift or without_shift.verdict is not change.verdict)
            else "",
            "different software" if has_mixed_software and not cell.same_software else "",
        ]
    )


def list_absent(pair: Pair) -> Iterator[Block]:
    """Yield the cells with a result in only one run, grouped by the reason why the other run has no result."""
    for name, unpaired_cells in (("B", pair.changes.only_first), ("A", pair.changes.only_second)):
        by_status: dict[str, list[str]] = {}
        for unpaired in unpaired_cells:
            by_status.setdefault(unpaired.status or "not requested", []).append(str(unpaired.cell))
        for status, cells in by_status.items():
            yield Text(f"No result in {name} ({status}): {list_names(cells)}.")


def list_differing(pair: Pair) -> Iterator[Block]:
    """Yield the other differences. Environments and scenarios with the same differences are grouped."""
    by_subject: dict[tuple[Aspect, str], list[str]] = {}
    for difference in pair.differences:
        if _looks_same(difference):
            continue
        by_subject.setdefault((difference.part, difference.subject), []).append(format_fact(difference))
    subjects_by_facts: dict[tuple[Aspect, tuple[str, ...]], list[str]] = {}
    for (part, subject), texts in by_subject.items():
        subjects_by_facts.setdefault((part, tuple(texts)), []).append(subject)
    if not subjects_by_facts:
        aspects = "machine, engine, measurement, harness, scenarios and environments are the same, as far as known"
        yield Text(f"Nothing else differs: {aspects}.")
        return
    yield Text("Other differences, A → B:")
    yield Items([_describe_differing(part, subjects, facts) for (part, facts), subjects in subjects_by_facts.items()])


def _describe_differing(part: Aspect, subjects: Sequence[str], facts: Sequence[str]) -> str:
    subject_names = ", ".join(filter(None, subjects))
    return f"{part}{f' {subject_names}' if subject_names else ''}: {list_names(facts, PACKAGES)}"


def _looks_same(difference: RunDifference) -> bool:
    """Return whether two numbers, such as sizes of a machine's memory, differ by less than their texts show."""
    values = (difference.first, difference.second)
    if not all(isinstance(value, int | float) for value in values):
        return False
    first, second = (run_info.format_fact(difference.name, value) for value in values)
    return first == second


def format_fact(difference: RunDifference) -> str:
    """Return one difference as text. The text for a hash has no values."""
    if difference.name == "image":
        return "a different image"
    if difference.name == "source":
        return "its file, or the kit, has changed"
    label = _LAUNCH_LABELS.get(difference.name, "") if difference.part is Aspect.MEASUREMENT else ""
    return run_info.format_change(difference.name, difference.first, difference.second, label)


def make_document(pair: Pair) -> dict[str, Any]:
    """Return the pair as JSON values. Times are in seconds per step, and ratios are time(second) / time(first)."""
    return {
        "schema": SCHEMA,
        "first": _make_head(pair.first),
        "second": _make_head(pair.second),
        "margin": pair.margin,
        "other_machine": [asdict(difference) for difference in pair.machines],
        **asdict(pair.changes),
        "quantities": {quantity: asdict(changes) for quantity, changes in pair.others.items()},
        "differences": [asdict(difference) for difference in pair.differences],
    }


def _make_head(results: Results) -> dict[str, Any]:
    run, control = results.run, results.control
    return {
        "id": run.id,
        "started": run.started,
        "folder": run.folder,
        "clock": run.plan.clock.value,
        "control": control and asdict(control),
    }
