"""The line over releases, in place of a list of ratios."""

import pytest

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.report.charts import releases
from harness.report.charts.times import LOOKS
from harness.report.comparisons import list_lines
from harness.report.sections import scenarios
from tests.factories import cells, rounds, run
from tests.report.charts.examples import values

#: Seconds by environment, not in order of release: slow from 2.2 on, fast again in 2.10.
SECONDS = {"tf1.14": 0.01, "tf2.10": 0.0101, "tf2.0": 0.0105, "tf2.2": 0.15, "tf2.2-py3.7": 0.15, "tf2.3": 0.14}
ORDER = ["tf1.14", "tf2.0", "tf2.2", "tf2.2-py3.7", "tf2.3", "tf2.10"]


def measured(seconds=None, calls=("fit",), modes=("graph",), count=5):
    """A run whose cells take as long as their environment, in eager mode twice as long."""
    seconds = seconds or SECONDS
    known = [
        Environment(name, f"{name.removeprefix('tf').partition('-')[0]}.0", "3.7", "2019-09-01T00:00:00Z")
        for name in seconds
    ]
    members = cells(list(seconds), calls, modes)
    times = {of: seconds[of.environment] * (1 + (of.axes["mode"] == "eager")) for of in members}
    return Results(run(members, environments=known), rounds(times, count=count, spread=0.001))


def pictured(results):
    (table,) = results.tables
    return list(releases.draw(results, table, list_lines(table)))


def chart(results):
    (found,) = pictured(results)
    return found


def axis(of, channel):
    return of.specification["layer"][2]["encoding"][channel]


def test_a_line_has_each_environment_in_order_of_its_release():
    points = values(chart(measured()), "point")
    assert [point["environment"] for point in points] == ORDER
    assert [point["ratio"] for point in points] == [
        pytest.approx(SECONDS[name] / SECONDS["tf1.14"], rel=0.02) for name in ORDER
    ]
    assert axis(chart(measured()), "x")["scale"]["domain"] == ORDER


def test_marks_of_the_axis_lie_on_both_sides_of_all_ratios():
    y = axis(chart(measured()), "y")
    assert y["scale"]["type"] == "log"
    assert min(y["axis"]["values"]) <= 1.0
    assert max(y["axis"]["values"]) >= max(point["ratio"] for point in values(chart(measured()), "point"))


def test_the_caption_says_where_the_line_goes_up_and_down():
    words = chart(measured()).words
    told = words.notes[0]
    assert "14.3× in tf2.2" in told
    assert "in tf2.10" in told
    assert "tf2.2-py3.7" not in told
    assert told in words.alt
    level = chart(measured(dict.fromkeys(SECONDS, 0.01))).words
    assert "no change is larger" in level.notes[0]


def test_what_is_unclear_is_hollow():
    inside = {point["environment"]: point["inside"] for point in values(chart(measured()), "point")}
    assert inside["tf2.2"] == LOOKS[0][1]
    few = chart(measured(count=2))
    assert "white" in {point["inside"] for point in values(few, "point")}
    assert any("Hollow" in note for note in few.words.notes)


def test_each_way_has_a_line_and_its_name_in_the_legend():
    made = chart(measured(calls=("fit", "train_on_batch"), modes=("graph", "eager")))
    names = list(dict.fromkeys(point["series"] for point in values(made, "point")))
    assert len(names) == len(set(names)) == len(LOOKS)
    assert {"fit, graph", "fit, eager", "train_on_batch, graph"} < set(names)
    assert "(" in made.words.notes[0]


def test_fewer_releases_have_no_line():
    three = {name: SECONDS[name] for name in ("tf1.14", "tf2.2", "tf2.2-py3.7", "tf2.3")}
    assert pictured(measured(three)) == []
    assert len(pictured(measured({**three, "tf2.10": 0.01}))) == 1


def test_what_the_line_shows_is_no_list_of_ratios_as_well():
    def drawn(results):
        (section,) = scenarios.make_sections(results)
        return [block.picture.name.partition("-")[0] for block in section.blocks if hasattr(block, "picture")]

    assert drawn(measured()) == ["releases", "times"]
    assert drawn(measured(modes=("graph", "eager"))) == ["releases", "ratios", "times"]
    assert drawn(measured({"tf1.14": 0.01, "tf2.0": 0.02})) == ["ratios", "times"]


def test_the_picture_has_the_numbers_where_the_line_goes_up():
    svg = chart(measured()).svg()
    assert ">15.0×<" in svg
    assert ">tf2.2-py3.7<" in svg
