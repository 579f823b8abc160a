"""The section on the work of a step."""

import re
from dataclasses import replace

from harness.analysis.results import Results
from harness.report.sections import untimed
from tests.analysis.test_work_counts import NEW, OLD, counts
from tests.factories import cells, rounds, run
from tests.report.sections.reading import make, render


def test_the_counts_and_the_functions_that_changed_are_shown(snapshot):
    by_cell = {OLD: counts(), NEW: counts(30, {"step": [1, 34, 2], "reset": [1, 19, 3]})}
    launches = [replace(one, observations={"work": by_cell[one.cell]}) for one in rounds({OLD: 0.01, NEW: 0.03})]
    assert render(make(untimed.make_work_sections, run([OLD, NEW]), launches)) == snapshot
    assert not list(untimed.make_work_sections(Results(run([OLD, NEW]), rounds({OLD: 0.01, NEW: 0.03}))))


def test_a_line_through_the_times_of_all_cells_tells_what_calls_explain():
    planned = cells()
    numbers = dict(zip(planned, (970, 8593, 1200, 1000), strict=True))

    def explain(seconds):
        work = {cell: counts(number - 24) for cell, number in numbers.items()}
        launches = [replace(one, observations={"work": work[one.cell]}) for one in rounds(seconds, spread=0.0)]
        return re.findall(r"A step takes .*", render(make(untimed.make_work_sections, run(planned), launches)))

    fitting = {cell: 0.00675 + 2.81e-6 * number for cell, number in numbers.items()}
    (sentence,) = explain(fitting)
    assert sentence.startswith("A step takes 2.81 µs longer for each call")
    assert "explain 21.4 of the 21.4 ms between" in sentence
    # one cell beside the line
    assert not explain({**fitting, planned[3]: 0.012})
