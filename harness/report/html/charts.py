"""The report's charts for the page: the same specifications, with tooltips and without a background.

templates/html/fit.js sets the width of the charts and the size of their letters.
"""

from collections.abc import Sequence
from typing import Any

from harness.report.charts.layout import CONFIG, Specification
from harness.report.charts.vega import Picture

#: Vega-Lite's `config` of all charts on the page, with the font of the page. The page itself contains the description
#: of a chart, and its style sheet sets the background colors.
PAGE_CONFIG = {**CONFIG, "background": "transparent", "padding": 4, "font": "system-ui, sans-serif", "aria": False}

#: The marks that have tooltips, and the fields that tooltips show, each with its title and format. `{measure}` in a
#: title is replaced by the name of the measured quantity.
MARKS = ("point", "bar")
TOOLTIP_FIELDS: Sequence[tuple[str, str, str]] = (
    ("name", "of", ""),
    ("kind", "what", ""),
    ("place", "launch", ""),
    ("factor", "of its cell’s mean", ".3~f"),
    ("series", "series", ""),
    ("phase", "phase", ""),
    ("verdict", "verdict", ""),
    ("size", "size", ",.6~g"),
    ("ratio", "{measure} ratio", ".3~f"),
    ("time", "{measure}", ".4~g"),
    ("takes", "takes", ".3~g"),
)

_LENGTH = {"calculate": "datum.end - datum.start", "as": "takes"}


def make_specification(picture: Picture) -> Specification:
    """Return the picture's specification for the page, without the parts that the page adds itself."""
    omitted_keys = {"$schema", "config", "title", "description"}
    specification = {key: value for key, value in picture.specification.items() if key not in omitted_keys}
    return _add_tooltips(specification, picture.measure)


def _add_tooltips(part: Specification, measure: str) -> Specification:
    """Return the specification with tooltips on all marks that have values to show."""
    children: Specification = {
        key: [_add_tooltips(child, measure) for child in part[key]] for key in ("layer", "concat") if key in part
    }
    with_children = part | children
    return _add_tooltip(with_children, measure) if part.get("mark", {}).get("type") in MARKS else with_children


def _add_tooltip(unit: Specification, measure: str) -> Specification:
    values: list[dict[str, Any]] = unit["data"]["values"] or [{}]
    fields = set(values[0])
    if {"start", "end"} <= fields:
        fields.add("takes")
        unit = {**unit, "transform": [*unit.get("transform", []), _LENGTH]}
    tooltip = [
        {
            "field": field,
            "title": title.format(measure=measure),
            **({"type": "quantitative", "format": format} if format else {}),
        }
        for field, title, format in TOOLTIP_FIELDS
        # a scenario without series has one series without a name
        if field in fields and (field == "takes" or values[0][field] != "")
    ]
    return {**unit, "encoding": {**unit["encoding"], "tooltip": tooltip}} if tooltip else unit
