"""The sections of a report. Each section is one file, with its data, columns and sentences.

To add a section, add a file here, and a line in the list below. The list is in the order of the report.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.results import Results
from harness.report.blocks import Section
from harness.report.sections import (
    attribution,
    cells,
    claims,
    environments,
    expectations,
    how_to_read,
    machines,
    no_results,
    observations,
    on_device,
    reproduce,
    run_details,
    scaling,
    scenarios,
    summary,
    sweeps,
    timeline,
    unsaved_artifacts,
    work_done,
)

SECTIONS: Sequence[Callable[[Results], Iterator[Section]]] = (
    summary.make_sections,
    machines.make_sections,
    claims.make_sections,
    scenarios.make_sections,
    scaling.make_sections,
    sweeps.make_sections,
    expectations.make_sections,
    observations.make_sections,
    attribution.make_sections,
    work_done.make_sections,
    on_device.make_sections,
    cells.make_sections,
    run_details.make_sections,
    environments.make_sections,
    timeline.make_sections,
    no_results.make_sections,
    unsaved_artifacts.make_sections,
    how_to_read.make_sections,
    reproduce.make_sections,
)


def build(results: Results) -> list[Section]:
    """Return all sections of a report."""
    return [section for make in SECTIONS for section in make(results)]
