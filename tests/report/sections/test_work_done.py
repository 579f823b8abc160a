"""The section on the work of a step."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.report.sections import untimed
from tests.analysis.test_work_counts import NEW, OLD, counts
from tests.factories import rounds, run
from tests.report.sections.reading import make, render


def test_the_counts_and_the_functions_that_changed_are_shown(snapshot):
    by_cell = {OLD: counts(), NEW: counts(30, {"step": [1, 34, 2], "reset": [1, 19, 3]})}
    launches = [replace(one, observations={"work": by_cell[one.cell]}) for one in rounds({OLD: 0.01, NEW: 0.03})]
    assert render(make(untimed.make_work_sections, run([OLD, NEW]), launches)) == snapshot
    assert not list(untimed.make_work_sections(Results(run([OLD, NEW]), rounds({OLD: 0.01, NEW: 0.03}))))
