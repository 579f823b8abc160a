"""The whole report in Markdown, in one text."""

from harness.analysis.results import Results
from harness.report import markdown, sections


def render(results: Results) -> str:
    """Return the contents of report.md and details.md in one text. The files of charts aren't included."""
    return markdown.render_full(sections.build(results))
