"""The phases of each cell before the steady state, one after the other."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.distribution import BEFORE, order_phases
from harness.analysis.results import Results
from harness.analysis.tables import ScenarioTable
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import layout
from harness.report.charts.layout import Specification
from harness.report.charts.vega import Picture, make_file_name
from harness.report.format import Unit

#: The color of each phase. Light and dark colors alternate, so that adjacent phases differ in black and white.
COLOURS = dict(
    zip(
        BEFORE,
        (layout.SKY, layout.VERMILION, layout.ORANGE, layout.BLUE, layout.YELLOW, layout.GREEN, layout.PURPLE),
        strict=True,
    )
)
#: The color of all other phases.
OTHER = "#999999"

#: Colors on which letters are white. On all other colors, letters are black.
_DARK = {layout.BLUE, layout.VERMILION, layout.GREEN}

#: Height of a row's bar, and distance of its name above the middle of the bar, in pixels.
BAR, UP = 13, 14

# the free space next to a word, in pixels
_FREE = 8.0


@dataclass(frozen=True, slots=True)
class PhaseStack:
    """The medians of a cell's phases in seconds, by name and in order, and the median of their sum."""

    name: str
    phases: Mapping[str, float]
    total: float


def draw(results: Results, table: ScenarioTable) -> Iterator[Picture]:
    """Yield the chart of the phases of a table's cells that start slowest; nothing if no launch recorded phases."""
    measured = results.measured[table.scenario.name]
    started_cells = [(cell, cell.used.cold) for cell in measured if cell.used.cold and cell.used.phases]
    slowest_cells = layout.select_farthest(started_cells, lambda pair: pair[1].median)
    if not slowest_cells:
        return
    stacks = [
        PhaseStack(name, {phase: spread.median for phase, spread in cell.used.phases.items()}, cold.median)
        for name, (cell, cold) in zip(
            layout.make_distinct_names([names.name_measured(table, cell) for cell, _ in slowest_cells]),
            slowest_cells,
            strict=True,
        )
    ]
    unit, scenario = format.phase_unit([stack.total for stack in stacks]), table.scenario
    phase_names = order_phases(phase for stack in stacks for phase in stack.phases)
    longest_phase = max(phase_names, key=lambda phase: sum(stack.phases.get(phase, 0.0) for stack in stacks))
    extremes = layout.describe_extremes(
        stacks, lambda stack: stack.total, lambda stack: f"{_format_time(stack.total, unit)} ({stack.name})"
    )
    words = layout.escape_texts(
        f"{scenario.title}: time to the first step",
        [
            "Bars: the median of each phase over all launches. At the right: the median time to the end of the "
            "first step.",
            layout.note_partial(len(stacks), len(started_cells), "cell", "those that take longest"),
        ],
        f"time since the launch was requested, {unit.symbol}",
        f"Chart of the phases before the steady state of {counted(len(stacks), 'cell')} of {scenario.name}, "
        f"mostly {longest_phase}. Total: {extremes}.",
    )
    yield layout.make_picture(
        make_file_name(results, "phases", scenario),
        words,
        _make_layers(stacks, phase_names, unit, layout.wrap_axis_title(words)),
    )


def _make_layers(
    stacks: Sequence[PhaseStack], phase_names: Sequence[str], unit: Unit, title: Sequence[str]
) -> list[Specification]:
    # the sum of the medians can differ from the median of the sums
    axis_end = 1.02 * max(sum(stack.phases.values()) for stack in stacks) or 1.0
    picture_names = layout.map_to_picture_names(phase_names, layout.SERIES_CHARACTERS)
    parts = [part for stack in stacks for part in _make_parts(stack, unit, picture_names, axis_end)]
    totals = [{"name": stack.name, "told": _format_time(stack.total, unit)} for stack in stacks]
    x = {
        "type": "quantitative",
        "scale": {"domain": [0.0, axis_end * unit.factor], "nice": False},
        "axis": {"title": title},
    }
    y = layout.make_row_channel([stack.name for stack in stacks], grid=False)
    colours = {picture_names[phase]: [COLOURS.get(phase, OTHER)] for phase in phase_names}
    return [
        layout.make_layer(
            {"type": "bar", "stroke": "white", "strokeWidth": 1, "height": BAR},
            parts,
            y=y,
            x={"field": "start", **x},
            x2={"field": "end"},
            **layout.make_looks("phase", colours, ["color"], layout.make_legend(list(colours))),
        ),
        *(
            layout.make_layer(
                {"type": "text", "baseline": "middle", "fontSize": 10, "color": ink},
                [part for part in parts if part["letters"] == ink and part["pixels"] <= layout.WIDTH],
                y=y,
                x={"field": "middle", **x},
                text={"field": "phase"},
            )
            # hide a name that doesn't fit, because a page may draw the chart narrower
            | {"transform": [{"filter": "datum.pixels <= width"}]}
            for ink in ("white", "black")
        ),
        *layout.make_heading_layers(
            [{"name": stack.name} for stack in stacks],
            free=layout.measure_room([total["told"] for total in totals]),
            up=UP,
            y=y,
        ),
        layout.make_end_layer(totals, up=UP, y=y),
    ]


def _make_parts(
    stack: PhaseStack, unit: Unit, picture_names: Mapping[str, str], axis_end: float
) -> Iterator[dict[str, Any]]:
    """Yield the start and the end of each phase of the stack, and the plot width at which the phase's name fits."""
    start_seconds = 0.0
    for phase, seconds in stack.phases.items():
        stop_seconds, name = start_seconds + seconds, picture_names[phase]
        yield {
            "name": stack.name,
            "phase": name,
            "start": start_seconds * unit.factor,
            "end": stop_seconds * unit.factor,
            "middle": 0.5 * (start_seconds + stop_seconds) * unit.factor,
            "letters": "white" if COLOURS.get(phase) in _DARK else "black",
            "pixels": math.ceil(axis_end / max(seconds, 1e-9 * axis_end) * (layout.LETTER * len(name) + _FREE)),
        }
        start_seconds = stop_seconds


def _format_time(seconds: float, unit: Unit) -> str:
    return f"{format.number(seconds * unit.factor)} {unit.symbol}"
