"""What all charts share: colours, letters, the lines that rows are, and the frame of a specification."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.charts.picture import Words
from harness.report.escape import plain

#: More lines than these are not drawn.
ROWS = 40

#: A line's name is cut in its middle from here on.
NAME_CHARACTERS = 64

#: Pixels: the plot's width, and a line's height.
WIDTH, STEP = 400, 19

INK, FAINT, GRID = "#222222", "#666666", "#e9e9e9"

#: What lies within the margin.
BAND = "#dddddd"

#: Masataka Okabe and Kei Ito, "Color Universal Design", 2008: told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

Specification = dict[str, Any]

# a white ground, on a dark page too; what stands in the picture is drawn as text, in the reader's own letters
_CONFIG: Specification = {
    "background": "white",
    "padding": 10,
    "font": "sans-serif",
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 14,
        "fontWeight": "bold",
        "limit": 800,
        "offset": 12,
        "subtitleColor": FAINT,
        "subtitleFontSize": 11,
        "subtitleLineHeight": 15,
        "subtitlePadding": 5,
    },
    "axis": {
        "domainColor": FAINT,
        "gridColor": GRID,
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 440,
        "labelPadding": 6,
        "tickColor": FAINT,
        "titleColor": INK,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "axisX": {"labelFlush": False, "labelOverlap": True, "tickCount": 8},
    "legend": {
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 200,
        "offset": 6,
        "orient": "top",
        "symbolOpacity": 1,
        "symbolSize": 60,
        "title": None,
    },
    "text": {"color": INK, "fontSize": 11},
}


def specification(words: Words, layers: Sequence[Specification], **changes: Any) -> Specification:
    """A chart of `layers`, WIDTH pixels wide and a line's height a line, with its words."""
    return {
        "$schema": SCHEMA,
        "description": words.alt,
        "config": _CONFIG,
        "title": {"text": words.title, "subtitle": list(words.notes)},
        "width": WIDTH,
        "height": {"step": STEP},
        "layer": list(layers),
        **changes,
    }


def lines(names: Sequence[str]) -> Specification:
    """The vertical channel: one line for each of the names, which are all different, downwards."""
    axis = {"title": None, "domain": False, "ticks": False, "grid": True}
    scale = {"type": "band", "domain": list(names), "paddingInner": 0.2, "paddingOuter": 0.1}
    return {"field": "name", "type": "nominal", "scale": scale, "axis": axis}


def layer(mark: Mapping[str, Any], values: Sequence[Mapping[str, Any]], **encoding: Any) -> Specification:
    """Marks of one kind, one for each of the values."""
    return {"data": {"values": [dict(value) for value in values]}, "mark": dict(mark), "encoding": encoding}


def beside(told: Sequence[tuple[str, str]], pixels: int = 10, **encoding: Any) -> Specification:
    """Text so many pixels to the right of the plot, for lines by name."""
    mark = {"type": "text", "align": "left", "baseline": "middle", "dx": pixels}
    values = [{"name": name, "told": text} for name, text in told]
    return layer(mark, values, x={"value": "width"}, text={"field": "told"}, **encoding)


def distinct(names: Sequence[str]) -> list[str]:
    """Names for lines: one line of plain text each, none too long, all different."""
    found: dict[str, None] = {}
    for name in names:
        text, number = _short(plain(name)), 1
        told = text
        while told in found:
            number += 1
            told = f"{text} ({number})"
        found[told] = None
    return list(found)


def farthest(distances: Sequence[float], most: int = ROWS) -> list[int]:
    """The indices of the lines that are drawn, in order: all, or the `most` with the largest distances."""
    kept = sorted(range(len(distances)), key=lambda index: -distances[index])[:most]
    return sorted(kept)


def _short(text: str) -> str:
    if len(text) <= NAME_CHARACTERS:
        return text
    tail = NAME_CHARACTERS // 2
    return f"{text[: NAME_CHARACTERS - tail - 1]}…{text[-tail:]}"
