"""The chart of a series, as a specification."""

import re

import pytest
import vl_convert

from harness.history import chart
from harness.report.html import assets

#: Values that the page's script adds: templates/html/history/chart.js.
PARAMETERS = {"from": 0, "to": 1, "low": 0.9, "high": 1.1, "least": 0, "most": 1, "visible": 1, "selected": 0}
FLAGS: dict[str, list[str]] = {"places": [], "labels": []}


@pytest.mark.slow
def test_every_signal_has_one_definition():
    values = {**PARAMETERS, "breaks": FLAGS, "notes": FLAGS}
    complete = {
        **chart.make_specification(),
        "datasets": {name: [] for name in ("points", "levels", "breaks", "notes", "changes")},
        "params": [{"name": name, "value": value} for name, value in values.items()],
    }
    vega = vl_convert.vegalite_to_vega(complete)
    for group in (vega, *vega["marks"]):
        names = [signal["name"] for signal in group.get("signals", [])]
        assert len(names) == len(set(names)), "Vega refuses the chart"
    assert {"zoom", "zoom_at", "brush"} <= {signal["name"] for signal in vega["signals"]}


def test_the_style_sheet_names_layers_that_exist():
    parts = chart.make_specification()["vconcat"]
    layers = {layer["name"] for part in parts for layer in part["layer"]}
    styled = set(re.findall(r"\.(\w+)_marks", assets.read_files(["history/history.css"])))
    assert styled
    assert styled <= layers
