"""What follows from a run's launches, in one place."""

import pytest

from harness.analysis.results import Results
from tests.factories import cells, rounds, run

PARTS = ["found", "tables", "answers", "attributions", "sweeps", "statements", "behaviours", "missing"]


@pytest.mark.parametrize("part", [*PARTS, "disturbance", "ended", "samplings"])
def test_each_part_is_computed_once(part):
    results = Results(run(), rounds(dict.fromkeys(cells(), 0.01)))
    assert getattr(results, part) is getattr(results, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_run_without_launches_has_every_part(part):
    getattr(Results(run(), []), part)


def test_a_table_without_a_number_is_none():
    assert Results(run(), []).tables == []
    assert not Results(run(), []).compares
    assert [table.scenario.name for table in Results(run(), rounds(dict.fromkeys(cells(), 0.01))).tables] == ["step"]
