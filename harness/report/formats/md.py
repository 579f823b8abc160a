"""The report in Markdown, all of it in one text."""

from harness.analysis.results import Results
from harness.report import markdown, sections


def render(results: Results) -> str:
    """What report.md and details.md say, without charts' files."""
    return markdown.full(sections.build(results))
