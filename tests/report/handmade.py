"""Sections with something of everything, made by hand: what renderers lay out."""

from collections.abc import Sequence
from typing import Any

from harness.model.scenario import Cell
from harness.report.blocks import (
    REPORT,
    Bold,
    Code,
    Column,
    Entry,
    Figure,
    Folded,
    Head,
    Heading,
    Items,
    Line,
    Link,
    Section,
    Table,
    Text,
    Where,
    tabulate,
)
from harness.report.charts import layout
from harness.report.charts.vega import Picture, Words
from harness.report.escape import escape_terminal

#: Names of a chart's rows that leave a plot no room beside them on a narrow screen.
NAMES = [f"{call}, tf.keras: each in its default mode: tf2.0 vs tf1.14" for call in ("fit", "train")]


def drawing(names: Sequence[str] = NAMES, *, text: str = "Hand-made", name: str = "points") -> Picture:
    """A chart with a row for each name."""
    text = escape_terminal(text)
    words = Words(text, [f"{text}: two points.", ""], f"{text}: how long a step takes", f"Chart of {text}")
    values = [{"name": each, "verdict": "slower", "ratio": place} for place, each in enumerate(names, 1)]
    x = {"field": "ratio", "type": "quantitative", "axis": {"title": words.axis}, "scale": {"domain": [0, 3]}}
    looks = {"domain": ["slower", "faster"], "range": [layout.VERMILION, layout.BLUE]}
    y = layout.make_row_channel(names)
    labels = [{"name": name, "told": "1.23× (1.20 to 1.26)"} for name in names]
    colour = {"field": "verdict", "type": "nominal", "scale": looks}
    layers = [
        layout.make_layer({"type": "rule", "color": layout.INK}, [{"at": 1.0}], x={**x, "field": "at"}),
        layout.make_layer({"type": "point", "filled": True, "opacity": 1}, values, x=x, y=y, color=colour),
        *layout.make_heading_layers(labels, y=y),
        layout.make_end_layer(labels, y=y),
    ]
    return layout.make_picture(name, words, layers, {"step": 34}, "time")


def panels(count: int = 3) -> Picture:
    """A chart of several panels."""
    values = [{"size": size, "time": size**2} for size in (1.0, 2.0, 3.0)]
    axes: dict[str, Any] = {
        "x": {"field": "size", "type": "quantitative", "axis": {"title": "size"}},
        "y": {"field": "time", "type": "quantitative", "axis": {"title": "time per step, ms"}},
    }
    panel = {"width": 300, "height": 200, "layer": [layout.make_layer({"type": "point"}, values, **axes)]}
    words = Words("Panels", [], "", f"Chart of {count} panels")
    return Picture("panels", words, {"concat": [panel] * count, "columns": 2})


def compared(cells: Sequence[Cell], count: int = 3, *, text: str = "") -> Table:
    """A table that is searched: comparisons of the first two cells, one of them without a result."""
    verdicts = ("slower", "", "faster")

    def ratio(place: int) -> Entry:
        number = Entry(f"{place + 0.5}× (0.4 to 9)", cells=cells[:2], order=10.0 - place)
        return number if place % 3 != 1 else Entry("")

    return tabulate(
        f"Compared{text}",
        [
            Column[int]("call", lambda place: f"call {place}{text}", is_label=True),
            Column[int]("comparison", lambda place: "tf2.0 vs tf1.14, graph", is_label=True),
            Column[int]("time ratio", ratio, is_number=True),
            Column[int](
                "below 1 faster", lambda _: Entry("··─●─··|", is_code=True), where=Where.PASTE | Where.TERMINAL
            ),
            Column[int]("verdict", lambda place: verdicts[place % 3], is_optional=True, is_verdict=True),
            Column[int]("remarks", lambda place: f"{place} more rounds (3 min) would probably settle it, or so{text}"),
        ],
        range(count),
        where=REPORT,
        noun="comparison",
        is_searchable=True,
    )


def phases(cells: Sequence[Cell], *, text: str = "") -> Table:
    """A table of a line a cell; the last cell has no device."""
    return tabulate(
        f"Phases{text}",
        [
            Column[Cell]("cell", lambda cell: f"{cell.environment} {cell.axes.get('mode', '')}{text}", is_label=True),
            Column[Cell]("import, s", lambda cell: f"1.{cells.index(cell)}", is_number=True),
            Column[Cell]("device", lambda cell: "" if cell == cells[-1] else Entry("cpu", stands_out=True)),
        ],
        cells,
        cell=lambda cell: cell,
        noun="cell",
    )


def everything(cells: Sequence[Cell], *, text: str = "") -> list[Section]:
    """An answer, comparisons, and details; `text` is in every string that somebody reads."""
    machine = Table(f"Machine{text}", [Head(""), Head("value")], [Line([Entry(f"cores{text}"), Entry("2")])])
    words = ["From ", Link(f"the source{text}", "https://example.org/question/1"), " of ", Bold(f"it{text}")]
    return [
        Section(
            f"A step{text}: tf1.14, tf2.0",
            "made-answer",
            [
                Text(f"tf2.0 takes 2.70× (± 0.1) as long as tf1.14{text}.", where=REPORT | Where.DETAILS),
                Text(f"Measured in 5 rounds{text}.", True, where=REPORT),
                Text("only pasted", where=Where.PASTE),
                Text("only printed", where=Where.TERMINAL),
            ],
        ),
        Section(
            f"Comparisons{text}",
            "made-compared",
            [Figure(drawing(text=f"Hand-made{text}"), where=REPORT), compared(cells, text=text), Figure(panels())],
        ),
        Section(
            f"Phases of it{text}",
            "made-phases",
            [
                Heading(f"One part{text}"),
                phases(cells, text=text),
                Folded(f"More of it{text}", [machine, Figure(drawing(name="folded", text=f"Folded{text}"))]),
            ],
        ),
        Section(
            f"Again{text}",
            "made-again",
            [
                Text(words, where=REPORT),
                Items([f"one{text}", ["two ", Bold("and three")]], where=REPORT),
                Code(f"harness matrix -s step\nharness report{text}", where=REPORT),
            ],
        ),
    ]
