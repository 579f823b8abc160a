"""The charts as the page draws them."""

from typing import Any

from harness.analysis.results import Results
from harness.report import sections
from harness.report.charts.vega import Picture, Words
from harness.report.html import data
from harness.report.html.charts import PAGE_CONFIG, make_specification
from tests.quantified import quantified, quantified_run
from tests.report.handmade import drawing, panels


def layers(specification: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [entry for entry in specification["layer"] if entry["mark"]["type"] == mark]


def told(specification: dict[str, Any], mark: str) -> list[str]:
    (layer,) = (layer for layer in layers(specification, mark) if "tooltip" in layer["encoding"])
    return [entry["field"] for entry in layer["encoding"]["tooltip"]]


def test_a_mark_tells_what_it_is_and_its_number() -> None:
    assert told(make_specification(drawing()), "point") == ["name", "verdict", "ratio"]


def test_a_mark_tells_which_quantity_its_number_is_of() -> None:
    results = Results(quantified_run("step", "peak memory"), quantified())
    charts = data.build(results, sections.build(results)).charts
    said = {
        name: [entry["title"] for layer in chart["layer"] for entry in layer["encoding"].get("tooltip", ())]
        for name, chart in charts.items()
        if name.startswith(("ratios", "times"))
    }
    assert said == {
        "times-step": ["of", "time"],
        "ratios-step": ["of", "verdict", "time ratio"],
        "times-step-peak-memory": ["of", "peak memory"],
        "ratios-step-peak-memory": ["of", "verdict", "peak memory ratio"],
    }


def test_the_picture_beside_the_markdown_is_left_as_it_is() -> None:
    for picture in (drawing(), panels()):
        before = repr(picture.specification)
        make_specification(picture)
        assert repr(picture.specification) == before
        assert "tooltip" not in before


def test_the_page_has_the_words_around_a_chart_and_its_ground() -> None:
    assert not {"title", "description", "config", "$schema"} & set(make_specification(drawing()))
    assert PAGE_CONFIG["background"] == "transparent"
    assert PAGE_CONFIG["aria"] is False


def test_charts_side_by_side_tell_too() -> None:
    for panel in make_specification(panels())["concat"]:
        assert told(panel, "point") == ["size", "time"]


def test_a_mark_without_values_that_tell_anything_stays_silent() -> None:
    unit = {"data": {"values": []}, "mark": {"type": "point"}, "encoding": {}}
    made = make_specification(Picture("times-step", Words("", [], "", ""), {"layer": [unit]}))
    assert made["layer"] == [unit]
