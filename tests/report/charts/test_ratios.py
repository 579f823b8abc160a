import math
from dataclasses import replace

from harness.model.scenario import Comparison
from harness.report.charts import layout
from harness.report.charts.picture import Kind
from harness.report.document import build
from tests.factories import cell, cells, rounds, run, scenario
from tests.report.charts.examples import document, is_snapshot, many, picture, values


def test_the_specification_is_the_snapshot():
    assert is_snapshot(picture(document(), Kind.RATIOS))


def test_each_comparison_is_a_line_with_its_ratio_its_interval_and_its_verdict():
    made = document()
    lines = made.tables[0].comparisons.lines
    chart = picture(made, Kind.RATIOS)
    points = values(chart, "point")
    assert [point["ratio"] for point in points] == [line.compared.estimate.value for line in lines]
    assert [point["verdict"] for point in points] == [line.compared.verdict for line in lines]
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    ends = [(line.compared.estimate.interval.low, line.compared.estimate.interval.high) for line in lines]
    assert [(bar["low"], bar["high"]) for bar in bars] == ends
    beside = {(text["name"], text["told"]) for text in values(chart, "text")}
    for point, line in zip(points, lines, strict=True):
        assert {(point["name"], line.gain), (point["name"], line.compared.verdict)} <= beside


def test_the_margin_is_a_band_and_the_controls_interval_two_lines():
    made = document()
    chart = picture(made, Kind.RATIOS)
    assert values(chart, "rect") == [{"low": 1 / 1.03, "high": 1.03}]
    ends = made.control.estimate.interval
    assert [mark["at"] for mark in values(chart, "rule") if "at" in mark] == [1.0, ends.low, ends.high]
    assert any("A/A control" in note for note in chart.words.notes)


def test_verdicts_part_by_shape_as_well_as_by_colour():
    looks = picture(document(spread=0.05), Kind.RATIOS).specification["layer"][5]["encoding"]
    shapes, fills = looks["shape"]["scale"]["range"], looks["fill"]["scale"]["range"]
    assert len(set(zip(shapes, (fill == "white" for fill in fills), strict=True))) == len(shapes) > 1


def test_of_many_the_farthest_are_drawn_and_the_picture_says_so():
    chart = picture(many(60), Kind.RATIOS)
    points = values(chart, "point")
    assert len(points) == layout.ROWS
    assert points[0]["name"] == "call020, graph against eager, tf1.14"
    assert "Only the 40 farthest from equal of 60 comparisons are drawn." in chart.words.notes


def test_what_two_entries_of_a_header_ask_for_is_drawn_once():
    seconds = dict(zip(cells(modes=["graph"]), (0.01, 0.02), strict=True))
    twice = [Comparison("one", along="environment"), Comparison("other", along="environment")]
    made = build(run(seconds, scenarios=[scenario(compare=twice)]), rounds(seconds))
    assert len(made.tables[0].comparisons.lines) == 2
    assert len(values(picture(made, Kind.RATIOS), "point")) == 1


def test_what_did_different_work_is_left_out_and_the_picture_says_so():
    seconds = dict(zip(cells(), (0.01, 0.02, 0.01, 0.03), strict=True))
    other = cell("tf2.0", mode="eager")
    launches = [replace(each, fingerprint={"parameters": 2 if each.cell == other else 1}) for each in rounds(seconds)]
    chart = picture(build(run(seconds), launches), Kind.RATIOS)
    assert not any("tf2.0" in point["name"] and "eager" in point["name"] for point in values(chart, "point"))
    assert any("did different work" in note for note in chart.words.notes)


def test_one_round_has_points_and_no_intervals():
    chart = picture(document(count=1), Kind.RATIOS)
    assert len(values(chart, "point")) == 10
    assert not [bar for bar in values(chart, "rule") if "low" in bar]
    assert {point["verdict"] for point in values(chart, "point")} == {"no verdict"}


def test_an_interval_that_leaves_the_picture_has_no_end_there_and_the_picture_says_so():
    chart = picture(document(count=2, spread=0.3), Kind.RATIOS)
    bars = [bar for bar in values(chart, "rule") if "low" in bar]
    caps = values(chart, "tick")
    assert len(caps) < 2 * len(bars)
    assert all(math.isfinite(bar["low"]) and math.isfinite(bar["high"]) for bar in bars)
    assert any("beyond the picture" in note for note in chart.words.notes)


def test_nothing_compared_has_no_such_chart():
    alone = dict.fromkeys(cells(["tf1.14"], modes=["graph"]), 0.01)
    assert document(alone).tables[0].comparisons is None
