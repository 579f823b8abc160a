import pytest

from harness.report.charts.times import CELLS
from tests.factories import cells
from tests.report.charts.examples import many, picture, results, values


def test_each_cell_is_a_mark_on_its_environments_line():
    points = values(picture(results(), "times"), "point")
    assert [(point["name"], point["series"]) for point in points[:4]] == [
        ("fit, tf1.14", "graph"),
        ("fit, tf1.14", "eager"),
        ("fit, tf2.0", "graph"),
        ("fit, tf2.0", "eager"),
    ]
    assert [point["time"] for point in points[:2]] == pytest.approx([10, 20], rel=0.02)


def test_times_far_apart_get_a_log_axis_that_says_so_and_others_begin_with_zero():
    far, near = results(dict(zip(cells(), (0.001, 0.002, 0.01, 0.1), strict=True))), results()
    (far, far_x), (near, near_x) = (
        (chart, chart.specification["layer"][0]["encoding"]["x"]["scale"])
        for chart in (picture(far, "times"), picture(near, "times"))
    )
    assert (far_x["type"], far.words.axis) == ("log", "time per step, ms (log scale)")
    assert (near_x["type"], near_x["domain"][0], near.words.axis) == ("linear", 0.0, "time per step, ms")


def test_of_many_the_longest_are_drawn():
    assert len({point["name"] for point in values(picture(many(60), "times"), "point")}) == CELLS / 2
