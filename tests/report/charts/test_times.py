import pytest

from harness.report.charts.times import CELLS
from tests.factories import cells
from tests.report.charts.examples import many, picture, results, values


def test_each_cell_is_a_mark_on_its_environments_line():
    chart = picture(results(), "times")
    points = values(chart, "point")
    assert [(point["name"], point["series"]) for point in points[:4]] == [
        ("fit, tf1.14", "graph"),
        ("fit, tf1.14", "eager"),
        ("fit, tf2.0", "graph"),
        ("fit, tf2.0", "eager"),
    ]
    assert [point["time"] for point in points[:2]] == pytest.approx([10, 20], rel=0.02)
    assert chart.words.axis == "time per step, ms"


def test_times_far_apart_get_a_log_axis_that_says_so():
    seconds = dict(zip(cells(), (0.001, 0.002, 0.01, 0.1), strict=True))
    chart = picture(results(seconds), "times")
    assert chart.specification["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    assert chart.words.axis == "time per step, ms (log scale)"


def test_times_close_together_begin_with_zero():
    x = picture(results(), "times").specification["layer"][0]["encoding"]["x"]
    assert x["scale"]["type"] == "linear"
    assert x["scale"]["domain"][0] == 0.0


def test_of_many_the_longest_are_drawn_and_the_picture_says_so():
    chart = picture(many(60), "times")
    assert len({point["name"] for point in values(chart, "point")}) == CELLS / 2
    assert "Only 30 of 60 lines are drawn: those with the longest times." in chart.words.notes
