"""The charts as the page draws them."""

from typing import Any

from harness.analysis.results import Results
from harness.report import sections
from harness.report.charts.vega import Picture, Words
from harness.report.html import data
from harness.report.html.data import make_chart
from tests.quantified import quantified, quantified_run
from tests.report.handmade import drawing, panels


def list_tooltips(specification: dict[str, Any], mark: str) -> list[str]:
    layers = [layer for layer in specification["layer"] if layer["mark"]["type"] == mark]
    (layer,) = (layer for layer in layers if "tooltip" in layer["encoding"])
    return [entry["field"] for entry in layer["encoding"]["tooltip"]]


def test_a_mark_tells_what_it_is_and_the_picture_stays_as_it_is():
    assert list_tooltips(make_chart(drawing()), "point") == ["name", "verdict", "ratio"]
    for panel in make_chart(panels())["concat"]:
        assert list_tooltips(panel, "point") == ["size", "time"]
    # one without values that tell anything stays silent
    unit = {"data": {"values": []}, "mark": {"type": "point"}, "encoding": {}}
    silent = make_chart(Picture("times-step", Words("", [], "", ""), {"layer": [unit]}))
    assert silent["layer"] == [unit]
    for picture in (drawing(), panels()):
        before = repr(picture.specification)
        make_chart(picture)
        assert repr(picture.specification) == before
        assert "tooltip" not in before


def test_a_mark_tells_which_quantity_its_number_is_of():
    results = Results(quantified_run("step", "peak memory"), quantified())
    charts = data.build(results, sections.build(results)).charts
    assert {
        name: [entry["title"] for layer in chart["layer"] for entry in layer["encoding"].get("tooltip", ())]
        for name, chart in charts.items()
        if name.startswith(("answer", "times"))
    } == {
        "answer": ["of", "verdict", "time ratio"],
        "times-step": ["of", "time"],
        "times-step-peak-memory": ["of", "peak memory"],
    }
