"""The sections of a report, one file each: the data they take from the results, their columns and their sentences.

The sections in the order in which they stand. A new one is a file here and a line in this list.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.analysis.results import Results
from harness.report.blocks import Section
from harness.report.sections import (
    answer,
    attribution,
    cells,
    claims,
    course,
    environments,
    kept,
    machines,
    measured,
    missing,
    observed,
    on_device,
    reproduce,
    scenarios,
    statements,
    sweeps,
)

SECTIONS: Sequence[Callable[[Results], Iterator[Section]]] = (
    answer.sections,
    machines.sections,
    claims.sections,
    scenarios.sections,
    sweeps.sections,
    statements.sections,
    observed.sections,
    attribution.sections,
    on_device.sections,
    cells.sections,
    measured.sections,
    environments.sections,
    course.sections,
    missing.sections,
    kept.sections,
    reproduce.sections,
)


def build(results: Results) -> list[Section]:
    """All sections of a report."""
    return [section for make in SECTIONS for section in make(results)]
