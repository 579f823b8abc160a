"""Where the time goes before the steady state: the phases of each cell, one after the other."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.phases import BEFORE, in_order
from harness.analysis.tables import Measured, ScenarioTable
from harness.model.scenario import Scenario
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.format import Unit

#: For each phase its colour, light and dark in turn, so that neighbours part in black and white; others share the last.
COLOURS = dict(
    zip(
        BEFORE,
        (layout.SKY, layout.VERMILION, layout.ORANGE, layout.BLUE, layout.YELLOW, layout.GREEN, layout.PURPLE),
        strict=True,
    )
)
OTHER = "#999999"

#: Colours on which white letters are read; on all others black ones are.
_DARK = {layout.BLUE, layout.VERMILION, layout.GREEN}

#: Pixels: how high a row is, its bar, and how far above the bar's middle its name stands.
STEP, BAR, UP = 34, 13, 14

# pixels that are left free beside a word
_FREE = 8.0


@dataclass(frozen=True, slots=True)
class Stack:
    """One cell: the medians of its phases in seconds, by name and in order, and of their sum."""

    name: str
    phases: Sequence[tuple[str, float]]
    total: float

    @property
    def end(self) -> float:
        """Where the last phase ends: the sum of the medians, which need not be the sums' median."""
        return sum(seconds for _, seconds in self.phases)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The cells that are drawn, at least one, in the table's order; `of` so many."""

    rows: Sequence[Stack]
    of: int
    names: Sequence[str]
    unit: Unit

    @property
    def longest(self) -> str:
        """The phase that takes most over all cells."""
        totals: Counter[str] = Counter()
        for row in self.rows:
            totals.update(dict(row.phases))
        return max(self.names, key=lambda name: totals[name])

    @property
    def ends(self) -> str:
        """What is ready first and last, in words."""
        least, most = (pick(self.rows, key=lambda row: row.total) for pick in (min, max))
        told = [f"{self.told(row.total)} ({row.name})" for row in (least, most)]
        return told[0] if least is most else f"from {told[0]} to {told[1]}"

    def told(self, seconds: float) -> str:
        """A time in the chart's unit: `1.9 s`."""
        return f"{format.number(seconds * self.unit.factor)} {self.unit.symbol}"


def stacks(table: ScenarioTable, measured: Sequence[Measured]) -> Stacks | None:
    """What is drawn of the cells' phases: those that are ready last; None where no launch told of any."""
    told = [(each, each.used.cold) for each in measured if each.used.cold and each.used.phases]
    kept = [told[index] for index in layout.farthest([cold.median for _, cold in told])]
    if not kept:
        return None
    called = layout.distinct([names.measured(table, each) for each, _ in kept])
    return Stacks(
        rows=[
            Stack(name, [(phase, spread.median) for phase, spread in each.used.phases.items()], cold.median)
            for name, (each, cold) in zip(called, kept, strict=True)
        ],
        of=len(told),
        names=in_order(phase for each, _ in kept for phase in each.used.phases),
        unit=format.phase_unit([cold.median for _, cold in kept]),
    )


def words(chart: Stacks, scenario: Scenario) -> Words:
    """What stands around the chart."""
    return Words(
        f"{scenario.title}: time to the first step",
        [
            "Each phase: its median over the cell's launches. At the right: the median time to the end of the first "
            "step.",
            layout.some(len(chart.rows), chart.of, "cell", "those that take longest"),
        ],
        f"time since the launch was requested, {chart.unit.symbol}",
        f"Chart of the phases before the steady state of {counted(len(chart.rows), 'cell')} of {scenario.name}, most "
        f"of it {chart.longest}: {chart.ends} in all.",
    )


def specification(chart: Stacks, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    end = 1.02 * max(row.end for row in chart.rows) or 1.0
    called = layout.distinct(chart.names, layout.SERIES_CHARACTERS)
    parts = [
        part for row in chart.rows for part in _parts(chart, row, dict(zip(chart.names, called, strict=True)), end)
    ]
    totals = [chart.told(row.total) for row in chart.rows]
    x = {
        "type": "quantitative",
        "scale": {"domain": [0.0, end * chart.unit.factor], "nice": False},
        "axis": {"title": layout.axis_title(words)},
    }
    y = layout.rows([row.name for row in chart.rows], grid=False)
    colours = {"domain": called, "range": [COLOURS.get(name, OTHER) for name in chart.names]}
    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "bar", "stroke": "white", "strokeWidth": 1, "height": BAR},
                parts,
                y=y,
                x={"field": "start", **x},
                x2={"field": "end"},
                color={"field": "phase", "type": "nominal", "scale": colours, **layout.legend(called)},
            ),
            *(
                layout.layer(
                    {"type": "text", "baseline": "middle", "fontSize": 10, "color": ink},
                    [part for part in parts if part["letters"] == ink and part["pixels"] <= layout.WIDTH],
                    y=y,
                    x={"field": "middle", **x},
                    text={"field": "phase"},
                )
                # a page may draw it narrower
                | {"transform": [{"filter": "datum.pixels <= width"}]}
                for ink in ("white", "black")
            ),
            *layout.headings([{"name": row.name} for row in chart.rows], free=layout.room(totals), up=UP, y=y),
            layout.ends(
                [{"name": row.name, "told": total} for row, total in zip(chart.rows, totals, strict=True)], up=UP, y=y
            ),
        ],
        height={"step": STEP},
    )


def _parts(chart: Stacks, row: Stack, told: dict[str, str], end: float) -> list[dict[str, Any]]:
    """The row's phases, each from where to where, and how wide the plot must be for its name to have room in it."""
    parts: list[dict[str, Any]] = []
    start = 0.0
    for phase, seconds in row.phases:
        stop = start + seconds
        parts.append(
            {
                "name": row.name,
                "phase": told[phase],
                "start": start * chart.unit.factor,
                "end": stop * chart.unit.factor,
                "middle": 0.5 * (start + stop) * chart.unit.factor,
                "letters": "white" if COLOURS.get(phase) in _DARK else "black",
                "pixels": math.ceil(end / max(seconds, 1e-9 * end) * (layout.LETTER * len(told[phase]) + _FREE)),
            }
        )
        start = stop
    return parts
