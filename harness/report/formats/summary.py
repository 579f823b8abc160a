"""A short summary in Markdown, for the page of a CI job: `>> "$GITHUB_STEP_SUMMARY"`."""

import shlex
from collections.abc import Iterator

from harness.analysis.results import Results
from harness.model.texts import counted
from harness.report import markdown
from harness.report.blocks import Block, Bold, Code, Items, Section, Text, Words
from harness.report.sections import no_results, summary

#: The largest number of reasons for missing results in the summary.
ABSENCES = 8


def render(results: Results) -> str:
    """Return the first screen of the report, missing results, and the report's path.

    The text has less than 60 lines, and a line for each further scenario of the run.
    """
    folder = results.run.shown_folder
    end: list[Block] = [
        Text(f"The whole report is report.md in {folder}. To write it again:"),
        Code(shlex.join(["harness", "report", folder])),
    ]
    blocks = [*summary.make_first_screen(results, is_report=False), *_list_missing(results), *end]
    return markdown.render_full([Section(summary.make_title(results), "answer", blocks)], "summary.md.j2")


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
