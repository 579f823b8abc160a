"""The charts as the page draws them."""

from typing import Any

from harness.model.launch import Clock
from harness.report.charts.vega import Picture, Words
from harness.report.html.charts import PAGE_CONFIG, make_specification
from tests.report.handmade import drawing, panels


def layers(specification: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [each for each in specification["layer"] if each["mark"]["type"] == mark]


def told(specification: dict[str, Any], mark: str) -> list[str]:
    (layer,) = (each for each in layers(specification, mark) if "tooltip" in each["encoding"])
    return [each["field"] for each in layer["encoding"]["tooltip"]]


def test_a_mark_tells_what_it_is_and_its_number() -> None:
    assert told(make_specification(drawing(), Clock.WALL), "point") == ["name", "verdict", "ratio"]


def test_the_picture_beside_the_markdown_is_left_as_it_is() -> None:
    for picture in (drawing(), panels()):
        before = repr(picture.specification)
        make_specification(picture, Clock.WALL)
        assert repr(picture.specification) == before
        assert "tooltip" not in before


def test_the_page_has_the_words_around_a_chart_and_its_ground() -> None:
    assert not {"title", "description", "config", "$schema"} & set(make_specification(drawing(), Clock.WALL))
    assert PAGE_CONFIG["background"] == "transparent"
    assert PAGE_CONFIG["aria"] is False


def test_charts_side_by_side_tell_too() -> None:
    for panel in make_specification(panels(), Clock.WALL)["concat"]:
        assert told(panel, "point") == ["size", "time"]


def test_a_mark_without_values_that_tell_anything_stays_silent() -> None:
    unit = {"data": {"values": []}, "mark": {"type": "point"}, "encoding": {}}
    made = make_specification(Picture("times-step", Words("", [], "", ""), {"layer": [unit]}), Clock.WALL)
    assert made["layer"] == [unit]
