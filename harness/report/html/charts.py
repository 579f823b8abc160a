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

#: The fields that tooltips of points show, each with its title and format. `{measure}` in a title is replaced by the
#: name of the measured quantity.
TOOLTIP_FIELDS: Sequence[tuple[str, str, str]] = (
    ("name", "of", ""),
    ("series", "series", ""),
    ("verdict", "verdict", ""),
    ("size", "size", ",.6~g"),
    ("ratio", "{measure} ratio", ".3~f"),
    ("time", "{measure}", ".4~g"),
)


def make_specification(picture: Picture) -> Specification:
    """Return the picture's specification for the page, without the parts that the page adds itself."""
    omitted_keys = {"$schema", "config", "title", "description"}
    specification = {key: value for key, value in picture.specification.items() if key not in omitted_keys}
    return _add_tooltips(specification, picture.measure)


def _add_tooltips(part: Specification, measure: str) -> Specification:
    """Return the specification with tooltips on all points that have values to show."""
    children: Specification = {
        key: [_add_tooltips(child, measure) for child in part[key]] for key in ("layer", "concat") if key in part
    }
    with_children = part | children
    return _add_tooltip(with_children, measure) if part.get("mark", {}).get("type") == "point" else with_children


def _add_tooltip(unit: Specification, measure: str) -> Specification:
    values: list[dict[str, Any]] = unit["data"]["values"] or [{}]
    tooltip = [
        {
            "field": field,
            "title": title.format(measure=measure),
            **({"type": "quantitative", "format": format} if format else {}),
        }
        for field, title, format in TOOLTIP_FIELDS
        # a scenario without series has one series without a name
        if values[0].get(field, "") != ""
    ]
    return {**unit, "encoding": {**unit["encoding"], "tooltip": tooltip}} if tooltip else unit
