"""Whether machines agree: by their verdicts, none of which is of two machines."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.tables import Agreement, agreements
from harness.analysis.verdicts import Verdict
from harness.model.scenario import MACHINE
from tests import factories


@pytest.fixture(scope="module")
def table():
    """A table of two machines; on the second TF 2 is not slower."""
    cells = [replace(cell, axes={MACHINE: machine, **cell.axes}) for machine in "ab" for cell in factories.cells()]
    seconds = {c: 0.02 if c.environment == "tf2.0" and c.axes[MACHINE] == "a" else 0.01 for c in cells}
    axes = {MACHINE: ["a", "b"], **factories.scenario().axes}
    planned = factories.run(cells, scenarios=[factories.scenario(axes=axes)])
    (results_table,) = Results(planned, factories.rounds(seconds, spread=0.002)).tables
    return results_table


def test_machines_that_agree_are_told_once_and_only_where_all_say_the_same(table):
    agreed = agreements(table)
    assert len(agreed) == sum(head.comparison is not None for head in table.columns)
    assert all(list(entry.compared) == ["a", "b"] for entry in agreed)
    across = [entry for entry in agreed if entry.column.comparison and entry.column.comparison.along == "environment"]
    assert {tuple(entry.verdicts.values()) for entry in across} == {(Verdict.SLOWER, Verdict.SAME)}
    assert {entry.agrees for entry in across} == {False}
    for verdicts, agrees in [
        ((Verdict.SAME, Verdict.SLOWER), False),
        ((Verdict.SLOWER, Verdict.UNCLEAR), None),
        ((Verdict.SLOWER, None), None),
        ((Verdict.SLOWER, Verdict.UNCLEAR, Verdict.SAME), False),
        ((Verdict.DIFFERENT_WORK, Verdict.DIFFERENT_WORK), True),
    ]:
        (first, *_) = agreements(table)
        compared = {str(at): replace(first.compared["a"], verdict=verdict) for at, verdict in enumerate(verdicts)}
        assert Agreement(first.table, first.column, first.row, compared).agrees is agrees, verdicts
