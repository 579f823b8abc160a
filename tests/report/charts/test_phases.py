import pytest

from harness.report.charts import layout
from harness.report.charts.phases import COLOURS
from tests.factories import PHASES
from tests.report.charts.examples import many, picture, results, values


def test_the_phases_of_a_cell_follow_one_another_from_zero():
    parts = values(picture(results(), "phases"), "bar")
    first = [part for part in parts if part["name"] == parts[0]["name"]]
    before = {name: length for name, length in PHASES.items() if name not in ("warm up", "steady state")}
    assert [part["phase"] for part in first] == list(before)
    assert [part["end"] - part["start"] for part in first] == pytest.approx(list(before.values()))
    assert first[0]["start"] == 0.0
    assert [part["start"] for part in first[1:]] == [part["end"] for part in first[:-1]]


def test_a_phase_is_named_in_its_bar_where_that_has_room():
    chart = picture(results(), "phases")
    told = {text["phase"] for text in values(chart, "text") if "phase" in text}
    assert "import" in told
    assert "interpreter start" not in told


def test_in_a_narrower_plot_fewer_phases_are_named():
    layers = picture(results(), "phases").specification["layer"]
    needs = {part["phase"]: part["pixels"] for layer in layers for part in layer["data"]["values"] if "pixels" in part}
    assert needs["import"] < needs["first call"] < needs["interpreter start"]
    for layer in layers:
        if layer["encoding"].get("text", {}).get("field") == "phase":
            assert layer["transform"] == [{"filter": "datum.pixels <= width"}]


def test_neighbouring_phases_have_different_colours():
    colours = list(COLOURS.values())
    assert len(set(colours)) == len(colours)


def test_of_many_those_that_are_ready_last_are_drawn_and_the_picture_says_so():
    chart = picture(many(60), "phases")
    assert len({part["name"] for part in values(chart, "bar")}) == layout.ROWS
    assert "Only 40 of 120 cells are drawn: those that take longest." in chart.words.notes
