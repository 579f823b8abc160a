"""Where the time goes before the steady state: the phases of each cell, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.phases import BEFORE, in_order
from harness.report import format
from harness.report.cells import Measured
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

# pixels: what a letter takes, and what is left free beside a word
_LETTER, _FREE = 6.0, 8.0


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
    def least(self) -> Stack:
        """The one that is ready first."""
        return min(self.rows, key=lambda row: row.total)

    @property
    def most(self) -> Stack:
        """The one that is ready last."""
        return max(self.rows, key=lambda row: row.total)

    @property
    def longest(self) -> str:
        """The phase that takes most over all cells."""
        totals = dict.fromkeys(self.names, 0.0)
        for row in self.rows:
            for name, seconds in row.phases:
                totals[name] += seconds
        return max(totals, key=lambda name: totals[name])

    def told(self, seconds: float) -> str:
        """A time in the chart's unit: `1.9 s`."""
        return f"{format.number(seconds * self.unit.factor)} {self.unit.symbol}"


def stacks(measured: Sequence[Measured]) -> Stacks | None:
    """What is drawn of the cells' phases: those that are ready last; None where no launch told of any."""
    told = [(each, each.used.cold) for each in measured if each.used.cold and each.used.phases]
    kept = [told[index] for index in layout.farthest([cold.median for _, cold in told])]
    if not kept:
        return None
    names = layout.distinct([each.name for each, _ in kept])
    return Stacks(
        rows=[
            Stack(name, [(phase, spread.median) for phase, spread in each.used.phases.items()], cold.median)
            for name, (each, cold) in zip(names, kept, strict=True)
        ],
        of=len(told),
        names=in_order(phase for each, _ in kept for phase in each.used.phases),
        unit=format.phase_unit([cold.median for _, cold in kept]),
    )


def specification(chart: Stacks, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    end = 1.02 * max(row.end for row in chart.rows) or 1.0
    names = layout.distinct(chart.names)
    parts = [part for row in chart.rows for part in _parts(chart, row, dict(zip(chart.names, names, strict=True)), end)]
    x = {
        "type": "quantitative",
        "scale": {"domain": [0.0, end * chart.unit.factor], "nice": False},
        "axis": {"title": words.axis},
    }
    y = layout.lines([row.name for row in chart.rows])
    y["axis"] = {**y["axis"], "grid": False}
    colours = {"domain": names, "range": [COLOURS.get(name, OTHER) for name in chart.names]}
    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "bar", "stroke": "white", "strokeWidth": 1},
                parts,
                y=y,
                x={"field": "start", **x},
                x2={"field": "end"},
                color={"field": "phase", "type": "nominal", "scale": colours, "legend": {"columns": 7}},
            ),
            *(
                layout.layer(
                    {"type": "text", "baseline": "middle", "fontSize": 10, "color": ink},
                    [part for part in parts if part["letters"] == ink and part["fits"]],
                    y=y,
                    x={"field": "middle", **x},
                    text={"field": "phase"},
                )
                for ink in ("white", "black")
            ),
            layout.beside([(row.name, chart.told(row.total)) for row in chart.rows], y=y),
        ],
    )


def _parts(chart: Stacks, row: Stack, told: dict[str, str], end: float) -> list[dict[str, object]]:
    """The row's phases, each from where to where, and whether its name has room in it."""
    parts: list[dict[str, object]] = []
    start = 0.0
    for phase, seconds in row.phases:
        stop = start + seconds
        pixels = seconds / end * layout.WIDTH
        parts.append(
            {
                "name": row.name,
                "phase": told[phase],
                "start": start * chart.unit.factor,
                "end": stop * chart.unit.factor,
                "middle": 0.5 * (start + stop) * chart.unit.factor,
                "letters": "white" if COLOURS.get(phase) in _DARK else "black",
                "fits": pixels >= _LETTER * len(told[phase]) + _FREE,
            }
        )
        start = stop
    return parts
