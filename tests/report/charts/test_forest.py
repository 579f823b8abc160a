"""The chart of a table's comparisons, and that of the effects of its axes."""

import math
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.report.charts import layout
from harness.report.comparisons import list_lines
from tests.factories import cell, cells, rounds, run
from tests.report.charts.examples import many, picture, results, values

BOTH = pytest.mark.parametrize("kind", ["ratios", "effects"])


def encoding(of, mark, channel):
    (found,) = (entry["encoding"] for entry in of.specification["layer"] if entry["mark"]["type"] == mark)
    return found[channel]


def told(kind, made):
    """What is to be drawn: each ratio, time of the first over time of the second, with its verdict."""
    if kind == "ratios":
        return [(line.compared.ratio, line.compared.verdict) for line in list_lines(made.tables[0])]
    (attribution,) = made.attributions
    return [(effect.estimate, effect.verdict) for effect in attribution.effects]


@BOTH
def test_each_ratio_is_a_row_with_its_interval_and_its_verdict(kind):
    made = results()
    expected, chart = told(kind, made), picture(made, kind)
    points = values(chart, "point")
    assert [(point["ratio"], point["verdict"]) for point in points] == [(each.value, v) for each, v in expected]
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    assert [(bar["low"], bar["high"]) for bar in bars] == [(e.interval.low, e.interval.high) for e, _ in expected]
    beside = {(text["name"], text["told"]) for text in values(chart, "text") if "told" in text}
    for point in points:
        assert (point["name"], point["verdict"]) in beside
        ratio = {text.removesuffix("×") for name, text in beside if name == point["name"] and text.endswith("×")}
        assert [float(text) for text in ratio] == [pytest.approx(point["ratio"], rel=0.005)]


def test_rows_are_named_as_in_the_tables():
    made = results()
    names = [point["name"] for point in values(picture(made, "ratios"), "point")]
    assert names == [line.name for line in list_lines(made.tables[0])]
    assert [point["name"] for point in values(picture(made, "effects"), "point")] == [
        "tf2.0 vs tf1.14",
        "eager vs graph",
        "train_on_batch vs fit",
        "tf2.0 × eager",
        "tf2.0 × train_on_batch",
        "eager × train_on_batch",
    ]


@BOTH
def test_the_slower_is_right_of_1_and_its_triangle_points_there(kind):
    chart = picture(results(), kind)
    for point in values(chart, "point"):
        assert point["verdict"] != "slower" or point["ratio"] > 1.0
        assert point["verdict"] != "faster" or point["ratio"] < 1.0
    looks = encoding(chart, "point", "shape")["scale"]
    shapes = dict(zip(looks["domain"], looks["range"], strict=True))
    assert (shapes["slower"], shapes["faster"]) == ("triangle-right", "triangle-left")


@BOTH
def test_axis_and_rows_have_one_unit(kind):
    chart = picture(results(), kind)
    axis = encoding(chart, "point", "x")["axis"]
    assert axis["labelExpr"].endswith("+ '×'")
    assert axis["title"][-1].startswith("right of 1: ")
    text = [*chart.words.notes, chart.words.alt, *(value["told"] for value in values(chart, "text") if "told" in value)]
    assert not any("+" in entry or "-" in entry for entry in text)
    assert not any("%" in entry.replace("below 3 %", "") for entry in text)


@BOTH
def test_the_margin_is_a_band(kind):
    assert values(picture(results(), kind), "rect") == [{"low": 1 / 1.03, "high": 1.03}]


def test_the_controls_interval_is_two_lines():
    made = results()
    chart, ends = picture(made, "ratios"), made.found.control.estimate.interval
    assert [mark["at"] for mark in values(chart, "rule") if "at" in mark] == [1.0, ends.low, ends.high]
    assert "Dotted lines: two identical cells (the A/A control), 0.9" in chart.words.notes[0]
    assert [mark["at"] for mark in values(picture(made, "effects"), "rule") if "at" in mark] == [1.0]


def test_verdicts_part_by_shape_as_well_as_by_colour():
    chart = picture(results(spread=0.05), "ratios")
    shapes, fills = (encoding(chart, "point", channel)["scale"]["range"] for channel in ("shape", "fill"))
    assert len(set(zip(shapes, (fill == "white" for fill in fills), strict=True))) == len(shapes) > 1


def test_of_many_the_farthest_are_drawn_and_the_picture_says_so():
    chart = picture(many(60), "ratios")
    points = values(chart, "point")
    assert len(points) == layout.ROWS
    assert points[0]["name"] == "call020: graph vs eager, tf1.14"
    assert "Only 40 of 60 comparisons are drawn: those farthest from 1." in chart.words.notes


def test_what_did_different_work_is_left_out_and_the_picture_says_so():
    seconds = dict(zip(cells(), (0.01, 0.02, 0.01, 0.03), strict=True))
    other = cell("tf2.0", mode="eager")
    launches = [
        replace(entry, fingerprint={"parameters": 2 if entry.cell == other else 1}) for entry in rounds(seconds)
    ]
    chart = picture(Results(run(seconds), launches), "ratios")
    assert [point["name"] for point in values(chart, "point")] == ["tf2.0 vs tf1.14, graph", "graph vs eager, tf1.14"]
    assert "3 comparisons of cells that did different work are not shown." in chart.words.notes


@BOTH
@pytest.mark.parametrize("count", [1, 2])
def test_few_rounds_have_no_verdicts_and_one_has_no_intervals(kind, count):
    chart = picture(results(count=count, spread=0.3), kind)
    assert {point["verdict"] for point in values(chart, "point")} == {"no verdict"}
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    assert len(bars) == (0 if count == 1 else len(values(chart, "point")))
    assert ("From one round: no intervals." in chart.words.notes[0]) is (count == 1)


def test_an_interval_that_leaves_the_picture_has_no_end_there_and_the_picture_says_so():
    chart = picture(results(count=2, spread=1.0), "ratios")
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    caps = values(chart, "tick")
    assert len(caps) < 2 * len(bars)
    assert all(math.isfinite(bar["low"]) and math.isfinite(bar["high"]) for bar in bars)
    assert any("beyond the chart" in note for note in chart.words.notes)


def test_what_changes_do_together_is_explained_where_it_is_drawn():
    chart = picture(results(), "effects")
    assert (
        "“A × B” is the additional factor of two changes. It is 1 if their two factors simply multiply."
        in chart.words.notes
    )
