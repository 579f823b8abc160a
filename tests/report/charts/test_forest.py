"""The chart of a table's comparisons, and that of the effects of its axes."""

import math
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.report.charts import layout
from harness.report.comparisons import list_lines
from tests.factories import cell, cells, rounds, run
from tests.report.charts.examples import many, picture, results, values

BOTH = ("ratios", "effects")


def encoding(chart, mark, channel):
    (layer_encoding,) = (layer["encoding"] for layer in chart.specification["layer"] if layer["mark"]["type"] == mark)
    return layer_encoding[channel]


def bars(chart):
    return [bar for bar in values(chart, "rule") if "low" in bar]


def list_ratios(kind, measured):
    """What is to be drawn: each ratio, time of the first over time of the second, with its verdict."""
    if kind == "ratios":
        return [(line.compared.ratio, line.compared.verdict) for line in list_lines(measured.tables[0])]
    (attribution,) = measured.attributions
    return [(effect.estimate, effect.verdict) for effect in attribution.effects]


@pytest.mark.parametrize("kind", BOTH)
def test_each_ratio_is_a_row_with_its_interval_and_its_verdict(kind):
    measured = results()
    expected, chart = list_ratios(kind, measured), picture(measured, kind)
    points = values(chart, "point")
    assert [(point["ratio"], point["verdict"]) for point in points] == [
        (ratio.value, verdict) for ratio, verdict in expected
    ]
    intervals = [(ratio.interval.low, ratio.interval.high) for ratio, _ in expected]
    assert [(bar["low"], bar["high"]) for bar in bars(chart)] == intervals
    beside = {(text["name"], text["told"]) for text in values(chart, "text") if "told" in text}
    for point in points:
        assert (point["name"], point["verdict"]) in beside
        ratios = {text.removesuffix("×") for name, text in beside if name == point["name"] and text.endswith("×")}
        assert [float(text) for text in ratios] == [pytest.approx(point["ratio"], rel=0.005)]


@pytest.mark.parametrize("kind", BOTH)
def test_axis_rows_and_marks_say_which_side_is_slower(kind):
    chart = picture(results(), kind)
    for point in values(chart, "point"):
        assert point["verdict"] != "slower" or point["ratio"] > 1.0
        assert point["verdict"] != "faster" or point["ratio"] < 1.0
    looks = encoding(chart, "point", "shape")["scale"]
    shapes = dict(zip(looks["domain"], looks["range"], strict=True))
    assert (shapes["slower"], shapes["faster"]) == ("triangle-right", "triangle-left")
    axis = encoding(chart, "point", "x")["axis"]
    assert axis["labelExpr"].endswith("+ '×'")
    texts = [*chart.words.notes, chart.words.alt, *(text["told"] for text in values(chart, "text") if "told" in text)]
    assert not any("+" in text or "-" in text or "%" in text.replace("below 3 %", "") for text in texts)
    # the margin is a band
    assert values(chart, "rect") == [{"low": 1 / 1.03, "high": 1.03}]


def test_rows_are_named_as_in_the_tables():
    measured = results()
    names = [point["name"] for point in values(picture(measured, "ratios"), "point")]
    assert names == [line.name for line in list_lines(measured.tables[0])]
    assert [point["name"] for point in values(picture(measured, "effects"), "point")] == [
        "tf2.0 vs tf1.14",
        "eager vs graph",
        "train_on_batch vs fit",
        "tf2.0 × eager",
        "tf2.0 × train_on_batch",
        "eager × train_on_batch",
    ]


def test_the_controls_interval_is_two_lines():
    measured = results()
    ends = measured.found.control.estimate.interval
    lines = {kind: [mark["at"] for mark in values(picture(measured, kind), "rule") if "at" in mark] for kind in BOTH}
    assert lines == {"ratios": [1.0, ends.low, ends.high], "effects": [1.0]}


def test_verdicts_part_by_shape_as_well_as_by_colour():
    chart = picture(results(spread=0.05), "ratios")
    shapes, fills = (encoding(chart, "point", channel)["scale"]["range"] for channel in ("shape", "fill"))
    assert len(set(zip(shapes, (fill == "white" for fill in fills), strict=True))) == len(shapes) > 1


def test_of_many_the_farthest_are_drawn():
    points = values(picture(many(60), "ratios"), "point")
    assert len(points) == layout.ROWS
    assert points[0]["name"] == "call020: graph vs eager, tf1.14"


def test_what_did_different_work_is_left_out():
    seconds = dict(zip(cells(), (0.01, 0.02, 0.01, 0.03), strict=True))
    other = cell("tf2.0", mode="eager")
    launches = [
        replace(launch, fingerprint={"parameters": 2 if launch.cell == other else 1}) for launch in rounds(seconds)
    ]
    chart = picture(Results(run(seconds), launches), "ratios")
    assert [point["name"] for point in values(chart, "point")] == ["tf2.0 vs tf1.14, graph", "graph vs eager, tf1.14"]
    assert any(note.startswith("3 comparisons ") for note in chart.words.notes)


@pytest.mark.parametrize("kind", BOTH)
def test_few_rounds_have_no_verdicts_and_one_has_no_intervals(kind):
    for count in (1, 2):
        chart = picture(results(count=count, spread=0.3), kind)
        points = values(chart, "point")
        assert {point["verdict"] for point in points} == {"no verdict"}
        assert len(bars(chart)) == (0 if count == 1 else len(points))


def test_an_interval_that_leaves_the_picture_has_no_end_there_and_the_picture_says_so():
    chart = picture(results(count=2, spread=1.0), "ratios")
    assert len(values(chart, "tick")) < 2 * len(bars(chart))
    assert all(math.isfinite(bar["low"]) and math.isfinite(bar["high"]) for bar in bars(chart))
    assert any("beyond the chart" in note for note in chart.words.notes)
