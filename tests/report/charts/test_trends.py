import pytest

from harness.analysis.results import Results
from harness.report.charts.trends import CURVES
from tests.factories import cell, cells, growing, rounds, run
from tests.report.charts.examples import drawn, kind, picture, results, values


def test_a_step_that_changes_is_a_curve_over_the_steps_made_before():
    steady = cell("tf2.0")
    chart = picture(Results(run([cell(), steady]), [*growing(cell()), *rounds({steady: 0.01})]), "trends")
    points = values(chart, "point")
    assert {point["series"] for point in points} == {"tf1.14 graph"}
    assert [point["steps"] for point in points] == pytest.approx([60 + 20 * at for at in range(10)])
    assert (points[0]["time"], points[-1]["time"]) == pytest.approx((10.5, 29.5), rel=0.01)
    assert "time per step, ms (log scale)" in chart.svg()
    assert "trends" not in map(kind, drawn(results()))


def test_of_many_those_that_change_most_are_drawn():
    members = cells(("tf1.14", "tf2.0"), ("fit", "train_on_batch"))
    launches = [launch for at, member in enumerate(members, 3) for launch in growing(member, 0.01, 0.01 * at)]
    chart = picture(Results(run(members), launches), "trends")
    assert len({point["series"] for point in values(chart, "point")}) == CURVES
    (note,) = [note for note in chart.words.notes if note.startswith("Only ")]
    assert note.startswith(f"Only {CURVES} of 8 ")
