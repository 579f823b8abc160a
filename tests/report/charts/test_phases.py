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
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_a_phase_is_named_in_its_bar_where_that_has_room():
    chart = picture(results(), "phases")
    names = {text["phase"] for text in values(chart, "text") if "phase" in text}
    assert "import" in names
    assert "interpreter start" not in names
    # in a narrower plot fewer phases are named
    layers = chart.specification["layer"]
    needs = {part["phase"]: part["pixels"] for layer in layers for part in layer["data"]["values"] if "pixels" in part}
    assert needs["import"] < needs["first call"] < needs["interpreter start"]
    for layer in layers:
        if layer["encoding"].get("text", {}).get("field") == "phase":
            assert layer["transform"] == [{"filter": "datum.pixels <= width"}]


def test_of_many_those_that_are_ready_last_are_drawn():
    assert len({part["name"] for part in values(picture(many(60), "phases"), "bar")}) == layout.ROWS
