"""What all charts share: colours, letters, the rows that they are made of, and the frame of a specification.

A chart has no label beside its plot: a row's name stands above its marks, so that the plot has the whole width, on a
telephone too. Whatever is placed from the plot's right edge is placed by Vega's `width`, not by ours.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.texts import counted
from harness.report import format
from harness.report.charts.picture import Words
from harness.report.escape import plain

#: More rows than these are not drawn.
ROWS = 40

#: A row's name is cut in its middle from here on, and a curve's or a column's.
NAME_CHARACTERS, SERIES_CHARACTERS = 90, 48

#: Pixels: how wide a picture is, and on a telephone, its border included; how high a row is; a letter's width.
WIDTH, NARROW, ROW, LETTER = 660, 350, 34, 6.0

#: Pixels: how far above its row's middle, where the marks are, a name stands.
UP = 13

#: Letters in a line of the notes, of the title, and of an axis's title: these fit on a telephone.
NOTE_LETTERS, TITLE_LETTERS, AXIS_LETTERS = 124, 86, 68

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
        "labelPadding": 6,
        "tickColor": FAINT,
        "titleColor": INK,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "axisX": {"labelFlush": True, "labelOverlap": True, "tickCount": 8},
    "legend": {
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 320,
        "offset": 12,
        "orient": "top",
        "symbolOpacity": 1,
        "symbolSize": 60,
        "title": None,
    },
    "text": {"color": INK, "fontSize": 11},
}


def specification(words: Words, layers: Sequence[Specification], **changes: Any) -> Specification:
    """A chart of `layers` with its words. With its axes it is WIDTH pixels wide, or as wide as its page says."""
    return {
        "$schema": SCHEMA,
        "description": words.alt,
        "config": _CONFIG,
        "title": {
            "text": _wrapped(words.title, TITLE_LETTERS),
            "subtitle": [line for note in words.notes for line in _wrapped(note, NOTE_LETTERS)],
        },
        "width": WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "height": {"step": ROW},
        "layer": list(layers),
        **changes,
    }


def axis_title(words: Words) -> list[str]:
    """The title of an axis, in as many lines as it needs: a new one after each semicolon."""
    return [line for part in words.axis.split("; ") for line in _wrapped(part, AXIS_LETTERS)]


def rows(names: Sequence[str], *, grid: bool = True, apart: float = 0.0) -> Specification:
    """The vertical channel: a row for each of the names, which are all different, downwards.

    `apart` is what lies between two of them, as a share of a row.
    """
    axis = {"title": None, "domain": False, "ticks": False, "labels": False, "grid": grid}
    scale = {"type": "band", "domain": list(names), "paddingInner": apart, "paddingOuter": 0}
    return {"field": "name", "type": "nominal", "scale": scale, "axis": axis}


def headings(
    values: Sequence[Mapping[str, Any]], *, free: float, up: float = UP, **encoding: Any
) -> list[Specification]:
    """The rows' names, each so many pixels `up` from the middle, cut where `free` pixels at the right edge begin.

    They have a white border, the first of the two layers: lines that run down the plot do not strike them through.
    """
    mark = {"type": "text", "align": "left", "baseline": "middle", "dx": 1, "dy": -up}
    mark |= {"limit": {"expr": f"width - {free:.0f}"}}
    border = {"stroke": "white", "strokeWidth": 4, "strokeJoin": "round"}
    return [
        layer({**mark, **more}, values, x={"value": 0}, text={"field": "name"}, **encoding) for more in (border, {})
    ]


def ends(values: Sequence[Mapping[str, Any]], *, left: float = 0, up: float = UP, **encoding: Any) -> Specification:
    """What is `told` of rows, ending `left` pixels from the right edge."""
    mark = {"type": "text", "align": "right", "baseline": "middle", "dx": -left, "dy": -up}
    return layer(mark, values, x={"value": "width"}, text={"field": "told"}, **encoding)


def room(told: Sequence[str]) -> float:
    """The pixels that texts at the right edge take."""
    return LETTER * max(map(len, told), default=0) + 14.0


def layer(mark: Mapping[str, Any], values: Sequence[Mapping[str, Any]], **encoding: Any) -> Specification:
    """Marks of one kind, one for each of the values."""
    return {"data": {"values": [dict(value) for value in values]}, "mark": dict(mark), "encoding": encoding}


def legend(names: Sequence[str]) -> Specification:
    """The legend of a channel with these values, in as many columns as have room; none of a single one."""
    if len(names) < 2:
        return {"legend": None}
    entries = [_entry(name) for name in names]
    return {
        "legend": {
            "columns": {"expr": f"width >= {sum(entries)} ? {len(entries)} : max(1, floor(width / {max(entries)}))"}
        }
    }


def columns(names: Sequence[str], width: float) -> int:
    """How many columns of a legend with these names are so many pixels wide."""
    entries = [_entry(name) for name in names]
    return len(entries) if width >= sum(entries) else max(1, int(width / max(entries)))


def distinct(names: Sequence[str], longest: int = NAME_CHARACTERS) -> list[str]:
    """Names for rows: one line of plain text each, none too long, all different."""
    found: dict[str, None] = {}
    for name in names:
        text, number = _short(plain(name), longest), 1
        told = text
        while told in found:
            number += 1
            told = f"{text} ({number})"
        found[told] = None
    return list(found)


def farthest(distances: Sequence[float], most: int = ROWS) -> list[int]:
    """The indices of the rows that are drawn, in order: all, or the `most` with the largest distances."""
    kept = sorted(range(len(distances)), key=lambda index: -distances[index])[:most]
    return sorted(kept)


# Notes that several charts have. Each is empty where there is nothing to say.


def some(drawn: int, of: int, noun: str, which: str) -> str:
    """`Only 40 of 60 comparisons are drawn: those farthest from 1.`"""
    return f"Only {drawn:,} of {counted(of, noun)} are drawn: {which}." if drawn < of else ""


def cut(count: int) -> str:
    """That so many intervals go beyond the picture."""
    if count < 2:
        return "1 interval reaches beyond the picture, and has no end in it." if count else ""
    return f"{count:,} intervals reach beyond the picture, and have no end in it."


def band(margin: float) -> str:
    """What the grey band is."""
    return f"Grey band: a difference of less than {format.share(margin)} counts as none."


def _entry(name: str) -> int:
    """Pixels that an entry of a legend takes."""
    return int(LETTER * len(name)) + 26


def _wrapped(text: str, letters: int) -> list[str]:
    return textwrap.wrap(text, letters)


def _short(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 2
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"
