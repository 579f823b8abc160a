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
    machines,
    no_results,
    observations,
    on_device,
    reproduce,
    run_info,
    scaling,
    scenarios,
    summary,
    sweeps,
    timeline,
    unsaved_artifacts,
)

SECTIONS: Sequence[Callable[[Results], Iterator[Section]]] = (
    summary.sections,
    machines.sections,
    claims.sections,
    scenarios.sections,
    scaling.sections,
    sweeps.sections,
    expectations.sections,
    observations.sections,
    attribution.sections,
    on_device.sections,
    cells.sections,
    run_info.sections,
    environments.sections,
    timeline.sections,
    no_results.sections,
    unsaved_artifacts.sections,
    reproduce.sections,
)


def build(results: Results) -> list[Section]:
    """Return all sections of a report."""
    return [section for make in SECTIONS for section in make(results)]
