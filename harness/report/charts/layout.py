"""Shared parts of all charts: colors, fonts, scales, marks, and the frame of a specification.

Names of rows aren't labels of an axis, so that a narrow plot can have them above its marks and use the whole width.
Positions relative to the right edge use Vega's `width`.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from harness.analysis.statistics import Estimate, Interval
from harness.model.texts import counted
from harness.report import format
from harness.report.charts import axes
from harness.report.charts.vega import Picture, Words, number_names
from harness.report.escape import escape_terminal
from harness.report.format import Unit

#: The largest number of drawn rows.
ROWS = 40

#: The largest number of characters in the name of a row, and in the name of a curve or a column. Longer names are cut
#: in the middle.
NAME_CHARACTERS, SERIES_CHARACTERS = 90, 48

#: In pixels: the width of a picture, its width on a phone including the border, the border on both sides, and the width
#: of a letter.
WIDTH, NARROW, PADDING, LETTER = 660, 350, 20, 6.0

#: The largest number of letters per line in notes, in titles and in axis titles, so that they fit on a phone.
NOTE_LETTERS, TITLE_LETTERS, AXIS_LETTERS = 112, 86, 68

#: The colors of text and outlines, of secondary text, and of grid lines.
INK, FAINT, GRID = "#222222", "#666666", "#e9e9e9"

#: The color of the area within the margin.
BAND = "#dddddd"

#: Colors that are distinct with any color vision. Source: M. Okabe and K. Ito, "Color Universal Design", 2008.
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"

#: The colors of a chart on a dark background, by their colors on a white background.
DARK = {
    "white": "#0d1117",
    INK: "#e6edf3",
    FAINT: "#9da7b3",
    GRID: "#2b3138",
    BAND: "#39414a",
    BLUE: "#4a9fe3",
    VERMILION: "#f08a3c",
    GREEN: "#2fc79c",
}

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

Specification = dict[str, Any]

Row = TypeVar("Row")

#: Vega-Lite's configuration of all charts. The background is white, also on a dark page. Texts use the reader's fonts.
CONFIG: Specification = {
    "background": "white",
    "padding": PADDING // 2,
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

#: Vega-Lite's `config` of all charts on the page, with the font of the page. The page itself contains the description
#: of a chart, and its style sheet sets the background colors.
PAGE_CONFIG = {**CONFIG, "background": "transparent", "padding": 4, "font": "system-ui, sans-serif", "aria": False}


def darken(svg: str) -> str:
    """Return a chart for a dark page."""
    return re.sub(r'( (?:fill|stroke)=")([^"]+)', lambda match: match[1] + DARK.get(match[2], match[2]), svg)


def escape_texts(title: str, notes: Sequence[str], axis: str, alt: str) -> Words:
    """Return the texts of a chart, escaped and without empty notes."""
    return Words(
        escape_terminal(title),
        [escape_terminal(note) for note in notes if note],
        escape_terminal(axis),
        escape_terminal(alt),
    )


def wrap_axis_title(words: Words) -> list[str]:
    """Return the lines of an axis title, with a new line after each semicolon."""
    return [line for part in words.axis.split("; ") for line in textwrap.wrap(part, AXIS_LETTERS)]


def make_specification(words: Words, **parts: Any) -> Specification:
    """Return the Vega-Lite specification of a chart with its texts. `parts` are its other parts."""
    title = {
        "text": textwrap.wrap(words.title, TITLE_LETTERS),
        "subtitle": [line for note in words.notes for line in textwrap.wrap(note, NOTE_LETTERS)],
    }
    return {
        "$schema": SCHEMA,
        "description": words.alt,
        "config": CONFIG,
        **({"title": title} if words.title else {}),
        **parts,
    }


def make_picture(
    name: str, words: Words, layers: Sequence[Specification], height: float | Specification, measure: str, **parts: Any
) -> Picture:
    """Return a chart with one plot. With its axes, it is WIDTH pixels wide, unless a page sets another width.

    `parts` are other parts of its specification.
    """
    autosize = {"type": "fit-x", "contains": "padding"}
    specification = make_specification(
        words, width=WIDTH, autosize=autosize, height=height, layer=list(layers), **parts
    )
    return Picture(name, words, specification, escape_terminal(measure))


# Channels.


def make_quantity_channel(
    domain: Interval, axis: Mapping[str, Any], *, log: bool = True, **scale: Any
) -> Specification:
    """Return the channel for numbers from `domain.low` to `domain.high`. The caller sets its field."""
    kind = "log" if log else "linear"
    bounds = {"type": kind, "domain": [domain.low, domain.high], "nice": False, **scale}
    return {"type": "quantitative", "scale": bounds, "axis": dict(axis)}


def make_ratio_channel(
    domain: Interval, title: str | Sequence[str], width: float, min_gap: float = axes.APART, **scale: Any
) -> Specification:
    """Return the channel for ratios: a log axis, `width` pixels wide, with ticks at least `min_gap` pixels apart."""
    marks = axes.choose_ratio_ticks(domain, width, min_gap)
    axis = {"title": title, "values": marks, "labelExpr": axes.RATIO, "grid": False}
    return make_quantity_channel(domain, axis, **scale)


def make_time_channel(
    domain: Interval, unit: Unit, title: str | Sequence[str], *, log: bool = True, **scale: Any
) -> Specification:
    """Return the channel for times in a unit; `domain` is in seconds."""
    scaled_domain = Interval(domain.low * unit.factor, domain.high * unit.factor)
    axis = {"title": title, "format": ",.3~g" if scaled_domain.high < 1e3 else ",.3~r"}
    return make_quantity_channel(
        scaled_domain, axis | ({"values": axes.choose_time_ticks(scaled_domain)} if log else {}), log=log, **scale
    )


def make_looks(
    field: str, looks: Mapping[str, Sequence[str]], channels: Sequence[str], legend: Specification | None
) -> dict[str, Specification]:
    """Return channels that distinguish the names in a field. `looks` maps each name to its value in each channel."""
    ranges = zip(channels, zip(*looks.values(), strict=True), strict=True)
    return {
        channel: {
            "field": field,
            "type": "nominal",
            "scale": {"domain": list(looks), "range": list(values)},
            "legend": legend,
        }
        for channel, values in ranges
    }


def make_row_channel(names: Sequence[str], *, gap: float = 0.0) -> Specification:
    """Return the vertical channel: one row per name, from top to bottom. Names are unique.

    `gap` is the gap between two rows as a share of a row.
    """
    axis = {"title": None, "domain": False, "ticks": False, "labels": False, "grid": False}
    scale = {"type": "band", "domain": list(names), "paddingInner": gap, "paddingOuter": 0}
    return {"field": "name", "type": "nominal", "scale": scale, "axis": axis}


def make_legend(names: Sequence[str], width: float | None = None) -> Specification | None:
    """Return the legend of a channel with these names, in as many columns as fit; None for a single name.

    Without a `width` in pixels, the legend is as wide as the plot.
    """
    if len(names) < 2:
        return None
    entries = [int(LETTER * len(name)) + 26 for name in names]
    if width is None:
        columns = f"width >= {sum(entries)} ? {len(entries)} : max(1, floor(width / {max(entries)}))"
        return {"columns": {"expr": columns}}
    return {"columns": len(entries) if width >= sum(entries) else max(1, int(width / max(entries)))}


# Marks.


def make_layer(mark: Mapping[str, Any], values: Sequence[Mapping[str, Any]], **encoding: Any) -> Specification:
    """Return a layer with marks of one kind, one mark per value."""
    return {"data": {"values": [dict(value) for value in values]}, "mark": dict(mark), "encoding": encoding}


def make_band(
    margin: float,
    domain: Interval,
    along: Literal["x", "y"],
    ratio: Specification,
    rows: Sequence[Mapping[str, Any]] = ({},),
) -> list[Specification]:
    """Return layers with the margin as a gray band across the plot or across each row, and with a line at 1."""
    ends = {"low": max(domain.low, 1.0 / (1.0 + margin)), "high": min(domain.high, 1.0 + margin)}
    across = {along: {"field": "low", **ratio}, f"{along}2": {"field": "high"}}
    return [
        make_layer({"type": "rect", "color": BAND}, [{**row, **ends} for row in rows], **across),
        make_layer(
            {"type": "rule", "color": FAINT}, [{**row, "at": 1.0} for row in rows], **{along: {"field": "at", **ratio}}
        ),
    ]


def make_estimate_layers(
    points: Sequence[tuple[Mapping[str, Any], Estimate]],
    domain: Interval,
    along: Literal["x", "y"],
    make_channels: Callable[[str], Specification],
    looks: Mapping[str, Specification],
    *,
    point: Specification,
    field: str,
    factor: float = 1.0,
    end: str = "at",
    cap: float = 7,
) -> list[Specification]:
    """Return layers with points, and with intervals as bars that have caps at their ends.

    `make_channels` returns the channels for a field. `field` is the field of the points' values, and `end` is the field
    of the caps' values. All values are multiplied by `factor`. Caps are `cap` pixels long.
    """
    line = "stroke" if "stroke" in looks else "color"
    orientation = "vertical" if along == "x" else "horizontal"
    bars = [
        (datum, axes.clip_interval(estimate.interval, domain, factor))
        for datum, estimate in points
        if estimate.interval
    ]
    return [
        make_layer(
            {"type": "rule", "strokeWidth": 1.5},
            [{**datum, "low": bar.low, "high": bar.high} for datum, bar in bars],
            **make_channels("low"),
            **{f"{along}2": {"field": "high"}, line: looks[line]},
        ),
        make_layer(
            {"type": "tick", "orient": orientation, "size": cap, "thickness": 1.5},
            [{**datum, end: number} for datum, bar in bars for number in bar.caps],
            **make_channels(end),
            color=looks[line],
        ),
        make_layer(
            {"type": "point"} | point,
            [{**datum, field: estimate.value * factor} for datum, estimate in points],
            **make_channels(field),
            **looks,
        ),
    ]


def make_heading_layers(values: Sequence[Mapping[str, Any]], **encoding: Any) -> list[Specification]:
    """Return layers with the names of rows.

    The first of the two layers is a white border, so that vertical lines of the plot don't cross the names.
    """
    mark = {"type": "text", "align": "left", "baseline": "middle", "dx": 1, "limit": {"expr": "width"}}
    border = {"stroke": "white", "strokeWidth": 4, "strokeJoin": "round"}
    return [
        make_layer({**mark, **style}, values, x={"value": 0}, text={"field": "name"}, **encoding)
        for style in (border, {})
    ]


def make_end_layer(
    values: Sequence[Mapping[str, Any]], *, left: float = 0, dy: float | Specification = 0, **encoding: Any
) -> Specification:
    """Return a layer with the text `told` of each row. It ends `left` pixels before the right edge."""
    mark = {"type": "text", "align": "right", "baseline": "middle", "dx": -left, "dy": dy}
    return make_layer(mark, values, x={"value": "width"}, text={"field": "told"}, **encoding)


def measure_room(texts: Sequence[str]) -> float:
    """Return the width in pixels of texts at the right edge."""
    return LETTER * max(map(len, texts), default=0) + 14.0


# The selection of rows, and their names.


def select_farthest(rows: Sequence[Row], distance: Callable[[Row], float], limit: int = ROWS) -> list[Row]:
    """Return the rows to draw, in order: all rows, or the `limit` rows with the largest distances."""
    indexes = sorted(range(len(rows)), key=lambda index: -distance(rows[index]))[:limit]
    return [rows[index] for index in sorted(indexes)]


def make_distinct_names(names: Sequence[str], max_length: int = NAME_CHARACTERS) -> list[str]:
    """Return short and unique names of rows, each on one line of plain text."""
    return number_names((_shorten(escape_terminal(name), max_length) for name in names), "{} ({})")


def map_to_picture_names(names: Iterable[str], max_length: int = NAME_CHARACTERS) -> dict[str, str]:
    """Return the name in the picture for each distinct name."""
    unique_names = list(dict.fromkeys(names))
    return dict(zip(unique_names, make_distinct_names(unique_names, max_length), strict=True))


def _shorten(text: str, max_length: int) -> str:
    if len(text) <= max_length:
        return text
    tail_length = max_length // 2
    return f"{text[: max_length - tail_length - 1]}…{text[-tail_length:]}"


# Sentences that several charts use. A note can be empty.

#: The note of a chart without intervals.
NO_INTERVALS = "From one round: no intervals."


def note_marks(ratios: Sequence[Estimate], margin: float, *others: str) -> str:
    """Return the note that explains the marks of a chart of ratios, such as `Bars: confidence intervals, grey: …`."""
    bars = "bars: confidence intervals" if any(ratio.interval for ratio in ratios) else "one round: no intervals"
    text = ", ".join(filter(None, [bars, *others, f"grey: within {format.share(margin)}"]))
    return f"{text[0].upper()}{text[1:]}."


def note_partial(drawn_count: int, total: int, noun: str, selection: str) -> str:
    """Return a note on a chart that draws only a part of its rows, or an empty string.

    For example, `Only 40 of 60 comparisons are drawn: those farthest from 1.`
    """
    return f"Only {drawn_count:,} of {counted(total, noun)} are drawn: {selection}." if drawn_count < total else ""


def note_cut(estimates: Sequence[Estimate], domain: Interval) -> str:
    """Return a note on the number of intervals that extend beyond the axis."""
    count = sum(
        len(axes.clip_interval(estimate.interval, domain).caps) < 2 for estimate in estimates if estimate.interval
    )
    if count < 2:
        return "1 interval extends beyond the chart." if count else ""
    return f"{count:,} intervals extend beyond the chart."


def describe_extremes(rows: Sequence[Row], number: Callable[[Row], float], describe: Callable[[Row], str]) -> str:
    """Describe the rows with the extreme numbers: `from 0.7×, faster (eager) to 1.2×, slower (graph)`."""
    lowest, highest = (pick(rows, key=number) for pick in (min, max))
    return describe(lowest) if lowest is highest else f"from {describe(lowest)} to {describe(highest)}"
