import pytest

from harness.analysis.results import Results
from tests.factories import RESOURCES, cell, cells, launch, run
from tests.report.charts.examples import picture, values


def draw(launches):
    return picture(Results(run(dict.fromkeys(launch.cell for launch in launches)), launches), "course")


def test_disturbed_launches_and_those_of_repeated_rounds_are_told_apart_by_shape_too():
    noise = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    pair = cells(modes=["graph"])
    repeated = [launch(member, 0.01, number, attempt=1) for number in (1, 2) for member in pair]
    chart = draw([*repeated, launch(pair[0], 0.012, 1, resources=noise), launch(pair[1], 0.01, 1)])
    kinds = sorted(point["kind"] for point in values(chart, "point"))
    assert kinds == ["disturbed", *["launch"] * 4, "not counted: its round was repeated"]
    shapes = chart.specification["layer"][-1]["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 3
    assert chart.words.alt.endswith(", 1 disturbed.")


def test_lines_are_the_samples_within_each_launch():
    seconds = [0.008, 0.01, 0.012, 0.01]
    chart = draw([launch(cell(), [second * number for second in seconds], number) for number in (1, 2)])
    lines = [value for value in values(chart, "rule") if "low" in value]
    assert [line["place"] for line in lines] == [1, 2]
    assert all(line["low"] < line["high"] for line in lines)
    assert lines[1]["high"] == pytest.approx(2 * lines[0]["high"])
    # those without time are no line below the picture
    chart = draw([launch(cell(), [0.0, 0.01, 0.02], number) for number in (1, 2)])
    low = chart.specification["layer"][0]["data"]["values"][0]["low"]
    assert all(line["low"] >= min(low, 0.2) for line in values(chart, "rule") if "low" in line)
