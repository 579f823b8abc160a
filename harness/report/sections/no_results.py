"""Cells without results, or with missing launches: the reasons and the advice."""

from collections.abc import Iterator

from harness.analysis.cell_set_names import Box, cover
from harness.analysis.cells import OUT_OF_BUDGET, Missing
from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted
from harness.report.blocks import FILES, REPORT, REST, Block, Code, Column, Folded, Section, Text, Where, tabulate
from harness.report.sections import scripts

#: The largest number of reasons in report.md, and of error outputs in details.md.
REASONS, OUTPUTS = 10, 10


def sections(results: Results) -> Iterator[Section]:
    """Return the reasons why cells have no result."""
    if results.missing:
        yield Section("No result", "missing", list(_blocks(results)))


def _blocks(results: Results) -> Iterator[Block]:
    found = results.missing
    columns: list[Column[Missing]] = [
        Column("status", lambda each: each.status.value, is_label=True),
        Column("cells", lambda each: cells(results, each), is_label=True),
        Column("why", reason),
        Column("what to do", lambda each: advice(results.run, each), is_optional=True),
    ]
    first, others = found[:REASONS], found[REASONS:]
    # an error that is in the answer isn't repeated
    where = FILES if scripts.are_told(results, found) else REPORT
    yield tabulate("No result", columns, first, where=where, noun="reason")
    if others:
        more = f"{counted(len(others), 'more reason')}: in details.md and report.html."
        yield Text(more, where=Where.PASTE | Where.TERMINAL)
        yield tabulate("No result: further reasons", columns, others, noun="reason")
    yield from _outputs(results)


def _outputs(results: Results) -> Iterator[Block]:
    """Return the last lines that launches wrote to standard error."""
    told = [each for each in results.missing if each.stderr]
    if told:
        yield Text("Their error output is in details.md and report.html.", True, where=Where.PASTE | Where.TERMINAL)
    for each in told[:OUTPUTS]:
        summary = f"End of the error output: {each.status.value}, {named(results, each)[0][0]}"
        yield Folded(summary, [Code(each.stderr, "text")])
    if told[OUTPUTS:]:
        yield Text(f"The error output of {len(told) - OUTPUTS} more is in launches.jsonl.", where=REST)


def named(results: Results, of: Missing) -> tuple[list[str], int]:
    """Return names of the cells without a number for one reason, and the number of unnamed cells."""
    boxes, left = cover(of.cells, results.found.cells)
    return [_box(box) for box in boxes], left


def cells(results: Results, of: Missing) -> str:
    """Return the cells without a number for one reason: `step, tf2.1 (2 cells)`."""
    names, left = named(results, of)
    return "; ".join([*names, *([f"and {counted(left, 'more cell')}"] if left else [])])


def _box(box: Box) -> str:
    """Return the name of a set of cells, such as `keras_step, tf2.15, api keras`."""
    environments = box.values.get(ENVIRONMENT, ())
    axes = [f"{axis} {'/'.join(values)}" for axis, values in box.values.items() if axis != ENVIRONMENT]
    count = f" ({box.count} cells)" if box.count > 1 else ""
    return ", ".join([box.scenario, *(["/".join(environments)] if environments else []), *axes]) + count


def reason(of: Missing) -> str:
    """Return why there is no number."""
    unknown = "The run ended before the first counted launch." if _was_interrupted(of) else "No reason was recorded."
    some = " (Some launches only. The result is from the other launches.)" if of.partial else ""
    return (of.reason or unknown) + some


def advice(run: Run, of: Missing) -> str:
    """Return the advice; empty if none is known."""
    budget = " --budget 10m" if of.reason == OUT_OF_BUDGET else ""
    return of.advice or (
        f"Continue with: harness matrix --resume {run.shown_folder}{budget}" if _was_interrupted(of) else ""
    )


def _was_interrupted(of: Missing) -> bool:
    return of.status is Status.INTERRUPTED
