import pytest

from harness.analysis.results import Results
from tests.factories import cell, growing, rounds, run
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
