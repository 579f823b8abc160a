"""The chart of one series as Vega-Lite: its ratios above its times, over dates.

The page has one specification for all series. templates/html/history/chart.js adds the rows and the values of the
series that is open, and the page's style sheet colors the marks by the names of their layers.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from harness.report.charts.layout import BLUE, FAINT, INK, PAGE_CONFIG, VERMILION, Specification

#: Pixels: the heights of both plots, and the left and right margins.
RATIOS, TIMES, LEFT, RIGHT = 300, 110, 56, 24

#: If more points than this are visible, they are drawn without dots.
DOTS = 300

#: Title of the plot of times.
TITLE = "time per step (not searched for changes)"

#: The font size of all labels, in pixels.
FONT = 12

#: Number of ticks of the axis of ratios, and of the axis of times.
_RATIO_TICKS, _TIME_TICKS = 8, 4

#: The number of labels on the horizontal axis. A wide chart has more.
_TICKS = {"tickCount": {"expr": "max(2, range('x')[1] / 100)"}}

#: Labels with dates in the page's format. Only the first label of an axis contains the year.
_DATE = (
    "span > 2.5e10 ? utcFormat(datum.value, '%b %Y') "
    ": span > 6e8 ? utcFormat(datum.value, datum.index === 0 ? '%-d %b %Y' : '%-d %b') "
    ": utchours(datum.value) + utcminutes(datum.value) === 0 ? utcFormat(datum.value, '%-d %b') "
    ": utcFormat(datum.value, (datum.index === 0 ? '%-d %b, ' : '') + (utcseconds(datum.value) ? '%H:%M:%S' : '%H:%M'))"
).replace("span", "(domain('x')[1] - domain('x')[0])")

_X_AXIS = {"title": None, "grid": False, "labelExpr": _DATE, "labelFontSize": FONT, "labelSeparation": 8, **_TICKS}


def _set_decimals(span: str, ticks: int) -> str:
    """Return a Vega expression for a number format with enough decimals for `ticks` round numbers in a span."""
    return f"',.' + max(0, ceil(-log(({span}) / {ticks}) / LN10)) + 'f'"


#: Whether a tick has neither label nor grid line. On an axis of more than a decade, only ticks with the first digit 1,
#: 2 or 5 have them.
_IS_BETWEEN = "high > 12 * low && indexof('125', substring(format(datum.value, 'e'), 0, 1)) < 0"

_RATIO = (
    f"{_IS_BETWEEN} ? '' : high > 12 * low ? format(datum.value, ',.3~r') + '×' "
    f": format(datum.value, {_set_decimals('high - low', _RATIO_TICKS)}) + '×'"
)

#: The labels of the time axis. The longest time determines the unit.
_SECONDS = " : ".join(
    f"{condition}format(datum.value * {factor}, {_set_decimals(f'(most - least) * {factor}', _TIME_TICKS)}) + ' {unit}'"
    for condition, factor, unit in (("most >= 1 ? ", "1", "s"), ("most >= 1e-4 ? ", "1e3", "ms"), ("", "1e6", "µs"))
)

#: Only runs of one segment are connected by lines, because only they can be compared.
_SEGMENTS = {"detail": {"field": "segment", "type": "nominal"}}


def make_specification() -> Specification:
    """Return the chart, as Vega-Lite without data and width."""
    return {
        "config": PAGE_CONFIG,
        "vconcat": [_make_ratio_plot(), _make_time_plot()],
        "resolve": {"scale": {"x": "shared"}},
        "bounds": "flush",
        "spacing": 66,
    }


def _make_ratio_plot() -> Specification:
    """Return the upper plot: levels, segment boundaries, notes, ratios with their intervals, and changes."""
    scale = {"type": "log", **_make_domain("low", "high")}
    axis = _make_y_axis(_RATIO, _RATIO_TICKS)
    axis["gridOpacity"] = {"condition": {"test": _IS_BETWEEN, "value": 0}, "value": 1}

    def y(field: str) -> Specification:
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    x, position = _make_x_channel("start"), _make_x_channel("at")
    level = {"x": x, "x2": {"field": "end"}}
    interval = {"y": y("low"), "y2": {"field": "high"}}
    dates = {**position, "axis": _X_AXIS}
    course = _make_layer("course", "points", "line", {}, x=dates, y=y("ratio"), **_SEGMENTS)
    return {
        "height": RATIOS,
        # boundaries, notes and dates have separate axes
        "resolve": {"axis": {"x": "independent"}},
        "layer": [
            _make_layer("zone", "levels", "rect", {}, **level, **interval),
            _make_layer("level", "levels", "rule", {"strokeDash": [2, 3]}, **level, y=y("level")),
            _make_flags("breaks", position, y("low"), tick=4),
            _make_flags("notes", position, y("low"), tick=20),
            _make_layer("band", "points", "area", {}, x=position, **interval, **_SEGMENTS),
            {**course, "params": [_make_zoom(), _make_brush()]},
            _make_dots("dots", x=position, y=y("ratio")),
            *_make_change_layers(position, y),
            _make_points("selected", "datum.point === selected", {"size": 150, "color": INK}, x=position, y=y("ratio")),
        ],
    }


def _make_change_layers(x: Specification, y: Callable[[str], Specification]) -> list[Specification]:
    """Return the layers of a change: a line between both levels, the tip of an arrow, and the size."""
    color = _encode_nominal("moved", {"slower": VERMILION, "faster": BLUE})
    tip = _encode_nominal("moved", {"slower": "triangle-up", "faster": "triangle-down"})
    has_room = "scale('x', datum.at) > 7 * length(datum.size) + 12"
    line = {"x": x, "y": y("before"), "y2": {"field": "after"}, "color": color}
    # the offset moves the tip of the triangle to the level
    offset = {"expr": "datum.moved === 'slower' ? 5 : -5"}
    tip_style = {"filled": True, "opacity": 1, "size": 110, "yOffset": offset}
    alignment = {"align": {"expr": f"{has_room} ? 'right' : 'left'"}, "dx": {"expr": f"{has_room} ? -10 : 10"}}
    size_style = {"fontSize": 13, "fontWeight": 600, **alignment}
    return [
        _make_layer("change", "changes", "rule", {"strokeWidth": 2.5}, **line),
        _make_layer("tip", "changes", "point", tip_style, x=x, y=y("after"), color=color, shape=tip),
        _make_layer("size", "changes", "text", size_style, x=x, y=y("middle"), text={"field": "size"}),
    ]


def _make_time_plot() -> Specification:
    """Return the lower plot: the time per step."""
    x = {**_make_x_channel("at"), "axis": _X_AXIS}
    y = {"field": "seconds", "type": "quantitative", "scale": {"zero": False, **_make_domain("least", "most")}}
    y["axis"] = _make_y_axis(_SECONDS, _TIME_TICKS)
    return {
        "height": TIMES,
        "title": {"text": TITLE, "color": FAINT, "fontSize": 13, "fontWeight": "normal", "offset": 8},
        "layer": [
            _make_layer("times", "points", "line", {"color": FAINT, "strokeWidth": 1.25}, x=x, y=y, **_SEGMENTS),
            _make_dots("timed", x=x, y=y),
        ],
    }


# Marks.


def _make_layer(name: str, data: str, mark: str, style: Mapping[str, Any], **encoding: Any) -> Specification:
    """Return marks, one per row of `data`."""
    mark_style = {"type": mark, "clip": True, **style}
    return {"name": name, "data": {"name": data}, "mark": mark_style, "encoding": encoding}


def _make_points(name: str, condition: str, style: Mapping[str, Any], **encoding: Any) -> Specification:
    """Return marks for the runs for which the expression `condition` is true."""
    mark = {"type": "point", "clip": True, "strokeWidth": 1.5, "opacity": 1, **style}
    transform = [{"filter": condition}]
    return {"name": name, "data": {"name": "points"}, "transform": transform, "mark": mark, "encoding": encoding}


def _make_dots(name: str, **encoding: Any) -> Specification:
    # only dots are filtered, because Vega draws a whole line again for each point that is removed from it
    condition = f"visible <= {DOTS} && inrange(datum.at, [from, to])"
    style = {"filled": True, "size": {"expr": "visible > 100 ? 14 : 40"}, "strokeWidth": 0}
    return _make_points(name, condition, style, **encoding)


def _make_flags(kind: Literal["breaks", "notes"], x: Specification, y: Specification, tick: int) -> Specification:
    """Return lines for segment boundaries or notes, with labels above the plot. Overlapping labels are hidden."""
    axis = {
        "orient": "top",
        "values": {"expr": f"{kind}.places"},
        "labelExpr": f"{kind}.labels[indexof({kind}.places, +datum.value)]",
        "labelOverlap": "greedy",
        "labelFlush": False,
        "labelFontSize": FONT,
        "labelFontWeight": "bold",
        "labelPadding": 3,
        "tickSize": tick,
        "tickDash": [1, 3] if kind == "notes" else [1, 0],
        "title": None,
        "grid": False,
        "domain": False,
    }
    dash = _encode_nominal("kind", {"cut": [1, 0], "mark": [5, 4], "note": [1, 3]})
    # without a vertical field in two layers with an axis, Vega-Lite's chart would be invalid
    ends = [{"calculate": "low", "as": "low"}, {"calculate": "high", "as": "high"}]
    vertical = {"y": y, "y2": {"field": "high"}}
    layer = _make_layer(kind, kind, "rule", {"color": FAINT}, x={**x, "axis": axis}, **vertical, strokeDash=dash)
    return {**layer, "transform": ends}


# Channels.


def _encode_nominal(field: str, values: Mapping[str, Any]) -> Specification:
    scale = {"domain": list(values), "range": list(values.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def _make_domain(first: str, last: str) -> Specification:
    """Return the domain of a scale, from the value of the parameter `first` to the value of the parameter `last`."""
    return {"domainMin": {"expr": first}, "domainMax": {"expr": last}, "nice": False}


def _make_x_channel(field: str) -> Specification:
    scale = {"type": "utc", **_make_domain("from", "to")}
    return {"field": field, "type": "temporal", "scale": scale, "axis": None}


def _make_y_axis(label: str, ticks: int) -> Specification:
    """Return a vertical axis. All vertical axes have the same width."""
    width = {"minExtent": LEFT, "maxExtent": LEFT}
    no_lines = {"title": None, "domain": False, "ticks": False}
    return {**width, **no_lines, "labelExpr": label, "tickCount": ticks, "labelFontSize": FONT, "labelColor": FAINT}


# Selections. Drag to select a part; drag with Shift to move the plot; pinch, or scroll with Ctrl, to zoom.


def _make_zoom() -> Specification:
    drag = "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!"
    select = {
        "type": "interval",
        "encodings": ["x"],
        "translate": drag,
        "zoom": "wheel![event.ctrlKey]",
        "clear": False,
    }
    return {"name": "zoom", "bind": "scales", "select": select}


def _make_brush() -> Specification:
    start = "pointerdown[!event.shiftKey && event.button === 0 && event.pointerType !== 'touch']"
    drag = f"[{start}, window:pointerup] > window:pointermove!"
    select = {"type": "interval", "encodings": ["x"], "on": drag, "translate": False, "zoom": False}
    return {"name": "brush", "select": {**select, "clear": "window:pointerup"}}
