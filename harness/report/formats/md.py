"""The report in Markdown, all of it in one text."""

from harness.analysis.results import Results
from harness.report import markdown, sections


def render(results: Results) -> str:
    """Return the texts of report.md and details.md, without the files of charts."""
    return markdown.render_full(sections.build(results))
