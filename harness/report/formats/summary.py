"""A short summary in Markdown, for the page of a CI job: `>> "$GITHUB_STEP_SUMMARY"`."""

import shlex
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.scenario import STEP
from harness.model.texts import counted
from harness.report import format, markdown
from harness.report.blocks import Block, Bold, Code, Column, Entry, Items, Section, Text, Words, tabulate
from harness.report.comparisons import ComparisonLine, has_too_few_rounds, list_all_lines
from harness.report.sections import expectations, no_results, summary
from harness.report.sections.scenarios import describe_verdicts

#: The largest number of comparisons in the summary, and of reasons for missing results.
COMPARISONS, ABSENCES = 20, 8

# verdicts that need attention, the most urgent first; comparisons with other verdicts are only counted
_URGENT_VERDICTS = (
    *(Verdict.SLOWER, Verdict.MORE, Verdict.DIFFERENT_WORK),
    *(Verdict.FASTER, Verdict.LESS, Verdict.UNCLEAR),
)


def render(results: Results) -> str:
    """Return the main results, important verdicts, missing results, and the report's path, in less than 60 lines."""
    folder = results.run.folder or f"results/{results.run.id}"
    end: list[Block] = [
        Text(f"The whole report is report.md in {folder}. To write it again:"),
        Code(shlex.join(["harness", "report", folder])),
    ]
    blocks = [
        *summary.make_first_screen(results, table=False),
        *_list_comparisons(results),
        *_list_missing(results),
        *end,
    ]
    return markdown.render_full([Section(summary.make_title(results), "answer", blocks)], "summary.md.j2")


def _list_comparisons(results: Results) -> Iterator[Block]:
    lines = list_all_lines(results)
    if lines:
        yield Text(describe_verdicts(lines, has_too_few_rounds(line.compared for line in lines)))
    urgent_lines = sorted((line for line in lines if line.compared.verdict in _URGENT_VERDICTS), key=_rank_urgency)
    if urgent_lines:
        has_several, clock = len(results.tables) > 1, results.run.plan.clock.time
        # if there are several quantities, each line names its quantity
        is_step_time = all(line.table.quantity == STEP for line in urgent_lines)
        time = clock if is_step_time else "value"
        columns = [
            Column[ComparisonLine]("row", lambda line: _name_row(line, has_several=has_several), is_optional=True),
            Column[ComparisonLine]("comparison", lambda line: line.what_of),
            Column[ComparisonLine](f"{clock} ratio" if is_step_time else "ratio", _make_ratio_entry, is_number=True),
            Column[ComparisonLine]("verdict", lambda line: line.verdict),
        ]
        yield tabulate("Comparisons", columns, urgent_lines[:COMPARISONS])
        omitted_count = len(urgent_lines) - COMPARISONS
        if omitted_count > 0:
            yield Text(f"The report contains {counted(omitted_count, 'more such comparison')}.")
        yield Text(
            f"A ratio is the {time} of the first cell divided by the {time} of the second cell. Verdicts describe the "
            "first cell."
        )
    if results.statements and results.tables:
        yield Text(expectations.count_results(results.statements))


def _name_row(line: ComparisonLine, *, has_several: bool) -> str:
    return ", ".join(filter(None, [line.table.scenario.name if has_several else "", line.place]))


def _make_ratio_entry(line: ComparisonLine) -> Entry:
    is_comparable = line.compared.verdict is not Verdict.DIFFERENT_WORK
    return Entry(format.ratio(line.compared.ratio) if is_comparable else "")


def _rank_urgency(line: ComparisonLine) -> tuple[int, float]:
    assert line.compared.verdict is not None, "only comparisons with a verdict are shown"
    return _URGENT_VERDICTS.index(line.compared.verdict), -line.compared.ratio.distance


def _list_missing(results: Results) -> Iterator[Block]:
    items: list[Words] = [
        [Bold(missing.status.value), f", {no_results.list_cells(results, missing)}: {no_results.explain(missing)}"]
        for missing in results.missing[:ABSENCES]
    ]
    omitted_count = len(results.missing) - ABSENCES
    if omitted_count > 0:
        items.append(f"and {counted(omitted_count, 'more reason')} why cells have no result")
    if items:
        yield Items(items)
