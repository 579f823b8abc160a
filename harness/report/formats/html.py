"""The report as one page, with all launches."""

from harness.analysis.results import Results
from harness.report import sections
from harness.report.html import page


def render(results: Results) -> str:
    """What report.html is."""
    return page.render(results, sections.build(results))
