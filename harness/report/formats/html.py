"""The report as one page."""

from harness.analysis.results import Results


def render(results: Results) -> str:
    """What report.html is."""
    raise NotImplementedError
