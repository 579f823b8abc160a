"""Cells without results, missing launches and unsaved artifacts: the reasons and the advice."""

import shlex
from collections.abc import Iterator, Sequence

from harness.analysis.cell_set_names import Box, cover_with_boxes
from harness.analysis.cells import Missing
from harness.analysis.results import Results
from harness.model.launch import Launch, Status
from harness.model.scenario import ENVIRONMENT
from harness.model.texts import counted
from harness.report.blocks import FILES, REPORT, REST, Block, Code, Column, Folded, Section, Text, Where, tabulate
from harness.report.sections import continuation, scripts

#: The largest number of reasons in report.md, of error outputs in details.md, and of launches with unsaved artifacts.
REASONS, OUTPUTS, LAUNCHES = 10, 10, 50


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section with the reasons why cells have no result, and the section on unsaved artifacts."""
    if results.missing:
        yield Section(title(results), "missing", list(_list_blocks(results)))
    if unsaved := [launch for launch in results.launches if launch.not_kept]:
        yield Section("Unsaved artifacts", "not-kept", list(_list_unsaved(unsaved)))


def title(results: Results) -> str:
    """Return the number of cells without a result, and of all cells: `1 of 12 cells has no result`."""
    return count_cells(results, f" of {counted(len(results.found.cells), 'cell')}")


def count_cells(results: Results, of_all: str = "") -> str:
    """Return the number of cells without a result: `1 cell has no result`."""
    cells_without_result = {cell for missing in results.missing if not missing.partial for cell in missing.cells}
    count = len(cells_without_result)
    if not count:
        return "Some launches have no result"
    return f"{f'{count}{of_all}' if of_all else counted(count, 'cell')} {'has' if count == 1 else 'have'} no result"


def _list_blocks(results: Results) -> Iterator[Block]:
    reasons, command = results.missing, continuation.command_to_continue(results)
    columns: list[Column[Missing]] = [
        Column("status", lambda missing: missing.status.value, is_label=True),
        Column("cells", lambda missing: list_cells(results, missing), is_label=True),
        Column("why", explain),
        # the first screen contains the command that continues the run
        Column("what to do", lambda missing: missing.advice if command else advise(results, missing), is_optional=True),
    ]
    listed_reasons, other_reasons = reasons[:REASONS], reasons[REASONS:]
    # the first screen counts the cells, or explains their errors; a terminal shows the reasons if there is no result
    has_results = bool(results.tables or results.found.observed)
    where = FILES if has_results or scripts.explain_all_missing(results, reasons) else REPORT
    yield tabulate(title(results), columns, listed_reasons, where=where, noun="reason")
    if other_reasons:
        note = f"{counted(len(other_reasons), 'more reason', 'is')} in details.md and report.html."
        yield Text(note, where=Where.PASTE | (where & Where.TERMINAL))
        yield tabulate(f"{title(results)}: further reasons", columns, other_reasons, noun="reason")
    yield from _list_outputs(results)


def _list_outputs(results: Results) -> Iterator[Block]:
    """Yield the last lines that launches wrote to standard error."""
    with_output = [missing for missing in results.missing if missing.stderr]
    if with_output:
        yield Text("The error output of these launches is in details.md and report.html.", True, where=Where.PASTE)
    for failure in with_output[:OUTPUTS]:
        summary = f"End of the error output: {failure.status.value}, {name_cells(results, failure)[0][0]}"
        yield Folded(summary, [Code(failure.stderr, "text")])
    if with_output[OUTPUTS:]:
        yield Text(
            f"The error output for {counted(len(with_output) - OUTPUTS, 'more reason')} is in launches.jsonl.",
            where=REST,
        )


def name_cells(results: Results, missing: Missing) -> tuple[list[str], int]:
    """Return names of the cells that have no result for one reason, and the number of cells that aren't named."""
    boxes, unnamed_count = cover_with_boxes(missing.cells, results.found.cells)
    return [_name_box(box) for box in boxes], unnamed_count


def list_cells(results: Results, missing: Missing) -> str:
    """Return the cells that have no result for one reason: `step, tf2.1 (2 cells)`."""
    names, unnamed_count = name_cells(results, missing)
    return "; ".join([*names, *([f"and {counted(unnamed_count, 'more cell')}"] if unnamed_count else [])])


def _name_box(box: Box) -> str:
    """Return the name of a set of cells, such as `keras_step, tf2.15, api=keras`."""
    environments = box.values.get(ENVIRONMENT, ())
    axes = [f"{axis}={'/'.join(values)}" for axis, values in box.values.items() if axis != ENVIRONMENT]
    count = f" ({box.count} cells)" if box.count > 1 else ""
    return ", ".join([box.scenario, *(["/".join(environments)] if environments else []), *axes]) + count


def explain(missing: Missing) -> str:
    """Return why cells have no result."""
    is_interrupted = missing.status is Status.INTERRUPTED
    unknown = "The run ended before the first counted launch." if is_interrupted else "No reason was recorded."
    partial_note = (
        " (Only some launches have no result. The result is from the other launches.)" if missing.partial else ""
    )
    return (missing.reason or unknown) + partial_note


def advise(results: Results, missing: Missing) -> str:
    """Return the advice for cells without a result; empty if there is no advice."""
    if missing.advice or missing.status is not Status.INTERRUPTED:
        return missing.advice
    command = continuation.command_to_continue(results) or shlex.join(
        ["harness", "matrix", "--resume", results.run.shown_folder]
    )
    return f"To continue the run: {command}"


def _list_unsaved(launches: Sequence[Launch]) -> Iterator[Block]:
    """Yield the artifacts that launches left and that weren't saved, with the reasons."""
    count = counted(len(launches), "launch")
    text = f"{count} left unsaved artifacts. For their names, see details.md and report.html."
    yield Text(text, True, where=Where.PASTE | Where.TERMINAL)
    columns: list[Column[Launch]] = [
        Column("cell", lambda launch: str(launch.cell), is_label=True),
        Column("round", lambda launch: str(launch.round or "pilot")),
        Column("not saved", lambda launch: "; ".join(launch.not_kept)),
    ]
    yield tabulate("Unsaved artifacts", columns, launches[:LAUNCHES], noun="launch")
    if launches[LAUNCHES:]:
        yield Text(f"{counted(len(launches) - LAUNCHES, 'more launch', 'is')} in launches.jsonl.", where=REST)
