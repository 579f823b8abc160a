"""The sections of a report. Each section is one file, with its data, columns and sentences.

To add a section, add a file here, and a line in the list below. The list is in the order of the report.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.results import Results
from harness.report.blocks import Section, number_pictures
from harness.report.sections import (
    attribution,
    cells,
    claims,
    continuation,
    environments,
    how_to_read,
    machines,
    no_results,
    observations,
    run_info,
    scenarios,
    summary,
    sweeps,
    timeline,
    untimed,
)

SECTIONS: Sequence[Callable[[Results], Iterator[Section]]] = (
    summary.make_sections,
    machines.make_sections,
    claims.make_sections,
    scenarios.make_sections,
    sweeps.make_sections,
    observations.make_statements,
    observations.make_sections,
    attribution.make_sections,
    untimed.make_work_sections,
    untimed.make_sections,
    cells.make_sections,
    run_info.make_sections,
    environments.make_sections,
    timeline.make_sections,
    no_results.make_sections,
    how_to_read.make_sections,
    continuation.make_sections,
)


def build(results: Results) -> list[Section]:
    """Return all sections of a report. Their charts have distinct names, which are the names of their files."""
    return number_pictures([section for make in SECTIONS for section in make(results)])
