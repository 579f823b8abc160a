"""The report as one HTML page, with all launches."""

from harness.analysis.results import Results
from harness.report import sections
from harness.report.html import page


def render(results: Results) -> str:
    """Return the text of report.html."""
    return page.render(results, sections.build(results)).decode()
