import pytest

from harness.analysis.results import Results
from harness.report.charts.timeline import LAUNCHES
from tests.factories import RESOURCES, cell, cells, launch, run
from tests.report.charts.examples import picture, results, values


def test_each_launch_is_a_mark_at_its_place():
    made = results()
    points = values(picture(made, "course"), "point")
    moments = made.timeline(made.tables[0])
    assert [point["place"] for point in points] == list(range(1, len(moments) + 1))
    assert [point["factor"] for point in points] == [moment.factor for moment in moments]
    assert {point["kind"] for point in points} == {"launch", "A/A control"}


def disturbed():
    """Two rounds of one cell, the first one disturbed and done again."""
    noise = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    pair = cells(modes=["graph"])
    launches = [launch(of, 0.01, number, attempt=1) for number in (1, 2) for of in pair]
    launches += [launch(pair[0], 0.012, 1, resources=noise), launch(pair[1], 0.01, 1)]
    return Results(run(pair), launches)


def test_disturbed_launches_and_those_of_repeated_rounds_are_told_apart_by_shape_too():
    chart = picture(disturbed(), "course")
    kinds = [point["kind"] for point in values(chart, "point")]
    assert sorted(kinds) == ["disturbed", *["launch"] * 4, "not counted: its round was repeated"]
    shapes = chart.specification["layer"][-1]["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 3
    assert chart.words.alt.endswith(" from the mean of its cell, 1 disturbed.")


def test_lines_are_the_samples_within_each_launch():
    seconds = [0.008, 0.01, 0.012, 0.01]
    launches = [launch(cell(), [second * turn for second in seconds], turn) for turn in (1, 2)]
    lines = [value for value in values(picture(Results(run([cell()]), launches), "course"), "rule") if "low" in value]
    assert [line["place"] for line in lines] == [1, 2]
    assert all(line["low"] < line["high"] for line in lines)
    assert lines[1]["high"] == pytest.approx(2 * lines[0]["high"])


def test_the_margin_is_a_band():
    assert values(picture(results(), "course"), "rect") == [{"low": 1 / 1.03, "high": 1.03}]


def test_of_many_the_farthest_are_drawn_and_the_picture_says_so():
    chart = picture(results(count=LAUNCHES // 8), "course")
    points = values(chart, "point")
    assert len(points) == LAUNCHES
    assert [point["place"] for point in points] == sorted(point["place"] for point in points)
    assert (
        f"Only {LAUNCHES} of 250 launches are drawn: those farthest from the means of their cells." in chart.words.notes
    )


def test_samples_without_time_are_no_line_below_the_picture():
    broken = [launch(cell(), [0.0, 0.01, 0.02], turn) for turn in (1, 2)]
    chart = picture(Results(run([cell()]), broken), "course")
    low = chart.specification["layer"][0]["data"]["values"][0]["low"]
    assert all(line["low"] >= min(low, 0.2) for line in values(chart, "rule") if "low" in line)
