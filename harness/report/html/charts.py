"""The report's charts as the page draws them: the same specifications, with tooltips and without a ground.

How wide they are, and how large their letters, is decided where they are drawn (templates/html/fit.js).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.charts import layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Picture, Words

#: Letters as in the rest of the page.
FONT = "system-ui, sans-serif"

#: Marks that somebody points at, and what of their values is then told, under which title and in which format.
MARKS = ("point", "bar", "circle", "square")
TOLD: Sequence[tuple[str, str, str]] = (
    ("name", "of", ""),
    ("kind", "what", ""),
    ("place", "launch", ""),
    ("factor", "of its cell’s mean", ".3~f"),
    ("series", "series", ""),
    ("phase", "phase", ""),
    ("verdict", "verdict", ""),
    ("size", "size", ",.6~g"),
    ("ratio", "ratio of times", ".3~f"),
    ("time", "time", ".4~g"),
    ("takes", "takes", ".3~g"),
)

# where a specification holds others
_PARTS = ("layer", "hconcat", "vconcat", "concat")


def config() -> Specification:
    """What all charts of the page share: Vega-Lite's `config`."""
    shared = layout.specification(Words("", [], "", ""), [])["config"]
    # the page says what a chart shows, and its style sheet has the colours of its ground
    return {**shared, "background": "transparent", "padding": 4, "font": FONT, "aria": False}


def specification(picture: Picture) -> Specification:
    """The picture's specification for the page, which has its title, its notes and `config` itself."""
    left_out = {"$schema", "config", "title", "description"}
    return _interactive({key: value for key, value in picture.specification.items() if key not in left_out})


def _interactive(part: Mapping[str, Any]) -> Specification:
    """The specification with tooltips on all marks that have something to tell."""
    made = {**part, **{key: [_interactive(each) for each in part[key]] for key in _PARTS if key in part}}
    if "spec" in part:
        made["spec"] = _interactive(part["spec"])
    mark = part.get("mark")
    if (mark["type"] if isinstance(mark, Mapping) else mark) in MARKS:
        return _told(made)
    return made


def _told(unit: Specification) -> Specification:
    values = unit.get("data", {}).get("values") or [{}]
    fields = set(values[0])
    if {"start", "end"} <= fields:
        fields.add("takes")
        unit = {**unit, "transform": [*unit.get("transform", []), _LENGTH]}
    tooltip = [
        {"field": field, "title": title, **({"type": "quantitative", "format": format} if format else {})}
        for field, title, format in TOLD
        # a scenario without series has one that is called nothing
        if field in fields and (field == "takes" or values[0][field] != "")
    ]
    return {**unit, "encoding": {**unit["encoding"], "tooltip": tooltip}} if tooltip else unit


_LENGTH = {"calculate": "datum.end - datum.start", "as": "takes"}
