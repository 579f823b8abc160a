"""A short summary in Markdown, for the page of a CI job: `>> "$GITHUB_STEP_SUMMARY"`."""

import shlex
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.defaults import LEVEL
from harness.model.scenario import STEP
from harness.model.texts import counted
from harness.report import format, markdown
from harness.report.blocks import Block, Bold, Code, Column, Entry, Items, Section, Text, Words, tabulate
from harness.report.comparisons import ComparisonLine, has_too_few_rounds, list_lines
from harness.report.sections import expectations, no_results, summary
from harness.report.sections.scenarios import describe_verdicts

#: The largest number of comparisons that are shown, and of reasons for missing results.
COMPARISONS, ABSENCES = 20, 8

# verdicts that need attention, the most urgent first; comparisons with other verdicts are only counted
_SHOWN = (
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
    blocks = [*summary.make_first_screen(results, table=False), *_compared(results), *_absent(results), *end]
    # the heading has the second level, because the page also contains summaries of other jobs
    return "#" + markdown.render_full([Section(summary.make_title(results), "answer", blocks)])


def _compared(results: Results) -> Iterator[Block]:
    compared = [line for table in results.all_tables for line in list_lines(table)]
    if compared:
        yield Text(describe_verdicts(compared, has_too_few_rounds(line.compared for line in compared)))
    shown = sorted((line for line in compared if line.compared.verdict in _SHOWN), key=_urgency)
    if shown:
        several, clock = len(results.tables) > 1, results.run.plan.clock.time
        # if there are several quantities, each line names its quantity
        of_step = all(line.table.quantity == STEP for line in shown)
        time = clock if of_step else "value"
        columns = [
            Column[ComparisonLine]("row", lambda line: _row(line, several=several), is_optional=True),
            Column[ComparisonLine]("comparison", lambda line: line.what_of),
            Column[ComparisonLine](f"{clock} ratio" if of_step else "ratio", _ratio, is_number=True),
            Column[ComparisonLine]("verdict", lambda line: line.verdict),
        ]
        yield tabulate("Comparisons", columns, shown[:COMPARISONS])
        more = len(shown) - COMPARISONS
        if more > 0:
            yield Text(f"{counted(more, 'more such comparison')} in the report.")
        yield Text(
            f"A ratio is the {time} of the first cell divided by the {time} of the second one. Verdicts describe the "
            f"first. All intervals of one table in the report together have {format.level(LEVEL)} confidence."
        )
    if results.statements and results.tables:
        yield Text(expectations.count_results(results.statements))


def _row(line: ComparisonLine, *, several: bool) -> str:
    return ", ".join(filter(None, [line.table.scenario.name if several else "", line.place]))


def _ratio(line: ComparisonLine) -> Entry:
    is_comparable = line.compared.verdict is not Verdict.DIFFERENT_WORK
    return Entry(format.ratio(line.compared.ratio) if is_comparable else "")


def _urgency(line: ComparisonLine) -> tuple[int, float]:
    assert line.compared.verdict is not None, "only those with a verdict are shown"
    return _SHOWN.index(line.compared.verdict), -line.compared.ratio.distance


def _absent(results: Results) -> Iterator[Block]:
    items: list[Words] = [
        [Bold(missing.status.value), f", {no_results.list_cells(results, missing)}: {no_results.explain(missing)}"]
        for missing in results.missing[:ABSENCES]
    ]
    more = len(results.missing) - ABSENCES
    if more > 0:
        items.append(f"and {counted(more, 'more reason')} why cells have no result")
    if items:
        yield Items(items)
