"""Ratios of times on a log axis, a row each, with interval, verdict and the margin as a band: comparisons and effects.

The picture is a forest plot, as meta-analyses have it: S. Lewis and M. Clarke, "Forest plots: trying to see the wood
and the trees", BMJ 322, 2001.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.attribution import Attribution
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict
from harness.model.scenario import Scenario
from harness.model.texts import counted
from harness.report import format, names
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.comparisons import NO_VERDICT, ComparisonLine

#: For each verdict its shape, the colour of its outline, and that of its inside: told apart in black and white too.
#: Triangles point to where such a ratio lies.
LOOKS = {
    Verdict.SLOWER.value: ("triangle-right", layout.VERMILION, layout.VERMILION),
    Verdict.FASTER.value: ("triangle-left", layout.BLUE, layout.BLUE),
    Verdict.SAME.value: ("circle", layout.GREEN, layout.GREEN),
    Verdict.UNCLEAR.value: ("circle", layout.INK, "white"),
    NO_VERDICT: ("diamond", layout.INK, "white"),
}

# pixels at the right edge: the longest ratio, and it with its verdict
_RATIO, _BOTH = 70, 150


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One row: its name, which is its own, how many times as long it takes, and its verdict."""

    name: str
    takes: Estimate
    verdict: str

    def __str__(self) -> str:
        return f"{format.factor(self.takes.value)}, {self.verdict} ({self.name})"


@dataclass(frozen=True, slots=True)
class Forest:
    """The ratios that are drawn, at least one, in order, of `of`. `margin` is a share, 0.03 for 3 %.

    `control` is the A/A control's ratio, where it has an interval and is to be drawn.
    """

    rows: Sequence[ForestRow]
    of: int
    margin: float
    control: Estimate | None = None

    @property
    def shown(self) -> Interval:
        """From where to where the axis goes; the margin and the control are on it."""
        drawn = [*(row.takes for row in self.rows), *([self.control] if self.control else [])]
        return axes.domain(drawn, around=(1.0 / (1.0 + self.margin), 1.0 + self.margin))

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        return axes.cut([row.takes for row in self.rows], self.shown)

    @property
    def ends(self) -> str:
        """The lowest and the highest ratio in words."""
        least, most = (pick(self.rows, key=lambda row: row.takes.value) for pick in (min, max))
        return str(least) if least is most else f"from {least} to {most}"


# Comparisons.


def comparisons(compared: Sequence[ComparisonLine], control: Estimate | None, margin: float) -> Forest | None:
    """What is drawn of a table's comparisons: those farthest from 1; None where none did the same work."""
    same = _same_work(compared)
    if not same:
        return None
    rows = [(line.name, line.compared.takes, line.verdict) for line in same]
    return Forest(_farthest(rows), len(same), margin, control if control and control.interval else None)


def comparisons_words(chart: Forest, scenario: Scenario, compared: Sequence[ComparisonLine]) -> Words:
    """What stands around the chart of comparisons."""
    twins = ""
    if chart.control:
        twins = f" Dotted lines: two identical cells (the A/A control), {format.between(chart.control.interval)}×."
    different = len(_each_once(compared)) - len(_same_work(compared))
    left_out = f"{counted(different, 'comparison')} of different work {'is' if different == 1 else 'are'} left out."
    return Words(
        f"{scenario.title}: which is faster, and by how much",
        [
            f"{_bars(chart)} {layout.band(chart.margin)}{twins}",
            layout.some(len(chart.rows), chart.of, "comparison", "those farthest from 1"),
            layout.cut(chart.cut),
            left_out if different else "",
        ],
        "time of the first / time of the second (log scale); right of 1: the first takes longer",
        f"Chart of {counted(len(chart.rows), 'comparison')} of {scenario.name}, time of the first over time of the "
        f"second: {chart.ends}.",
    )


def _each_once(compared: Sequence[ComparisonLine]) -> list[ComparisonLine]:
    """Two entries of a header may ask for the same comparison."""
    lines = {(line.compared.cell, line.compared.other): line for line in reversed(compared)}
    return list(reversed(lines.values()))


def _same_work(compared: Sequence[ComparisonLine]) -> list[ComparisonLine]:
    return [line for line in _each_once(compared) if line.compared.verdict is not Verdict.DIFFERENT_WORK]


# Effects.


def effects(made: Attribution, margin: float) -> Forest:
    """What is drawn of a scenario's effects: those farthest from 1."""
    rows = [(names.effect(made.scenario, each), each.estimate, each.verdict or NO_VERDICT) for each in made.told]
    return Forest(_farthest(rows), len(rows), margin)


def effects_words(chart: Forest, made: Attribution, device: str) -> Words:
    """What stands around the chart of effects; `device` where the scenario has a chart for each of several."""
    on = f" on {device}" if device else ""
    joined = "Two changes joined by ×: their additional factor, 1 where the two factors simply multiply."
    return Words(
        f"{made.scenario.title}: what explains the differences{on}",
        [
            f"{_bars(chart)} {layout.band(chart.margin)}",
            joined if any(each.parts for each in made.told) else "",
            layout.some(len(chart.rows), chart.of, "effect", "those farthest from 1"),
            layout.cut(chart.cut),
        ],
        "factor of the time per step, mean over the other axes (log scale); right of 1: takes longer",
        f"Chart of what explains the differences in {made.scenario.name}{on}, "
        f"{counted(len(chart.rows), 'effect')}: {chart.ends}.",
    )


# What both share.


def specification(chart: Forest, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    shown, rows = chart.shown, chart.rows
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [shown.low, shown.high], "nice": False},
        "axis": {
            "title": layout.axis_title(words),
            "values": axes.ratio_marks(shown, layout.NARROW),
            "labelExpr": axes.RATIO,
            "grid": False,
        },
    }
    y = layout.rows([row.name for row in rows])
    verdicts = [verdict for verdict in LOOKS if any(row.verdict == verdict for row in rows)]
    shapes, strokes, fills = zip(*(LOOKS[verdict] for verdict in verdicts), strict=True)
    bars = [(row, axes.bar(row.takes.interval, shown)) for row in rows if row.takes.interval]
    dotted = axes.bar(chart.control.interval, shown).caps if chart.control and chart.control.interval else ()

    def by_verdict(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": verdicts, "range": list(range_)}
        return {"field": "verdict", "type": "nominal", "scale": scale, "legend": None}

    def at(field: str) -> dict[str, Any]:
        return {"field": field, **x}

    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "rect", "color": layout.BAND},
                [{"low": max(shown.low, 1.0 / (1.0 + chart.margin)), "high": min(shown.high, 1.0 + chart.margin)}],
                x=at("low"),
                x2={"field": "high"},
            ),
            layout.layer({"type": "rule", "color": layout.FAINT}, [{"at": 1.0}], x=at("at")),
            layout.layer(
                {"type": "rule", "color": layout.INK, "strokeDash": [2, 3]},
                [{"at": end} for end in dotted],
                x=at("at"),
            ),
            layout.layer(
                {"type": "rule", "strokeWidth": 1.5},
                [{"name": row.name, "verdict": row.verdict, "low": each.low, "high": each.high} for row, each in bars],
                y=y,
                x=at("low"),
                x2={"field": "high"},
                stroke=by_verdict(strokes),
            ),
            layout.layer(
                {"type": "tick", "orient": "vertical", "size": 8, "thickness": 1.5},
                [{"name": row.name, "verdict": row.verdict, "at": cap} for row, each in bars for cap in each.caps],
                y=y,
                x=at("at"),
                color=by_verdict(strokes),
            ),
            layout.layer(
                {"type": "point", "size": 70, "strokeWidth": 1.5, "opacity": 1},
                [{"name": row.name, "verdict": row.verdict, "ratio": row.takes.value} for row in rows],
                y=y,
                x=at("ratio"),
                shape=by_verdict(shapes),
                stroke=by_verdict(strokes),
                fill=by_verdict(fills),
            ),
            *layout.headings([{"name": row.name} for row in rows], free=_BOTH, y=y),
            layout.ends([{"name": row.name, "told": row.verdict} for row in rows], left=_RATIO, y=y),
            layout.ends([{"name": row.name, "told": format.factor(row.takes.value)} for row in rows], y=y),
        ],
    )


def _bars(chart: Forest) -> str:
    has_intervals = any(row.takes.interval for row in chart.rows)
    return "Bars: confidence intervals." if has_intervals else "From one round: no intervals."


def _farthest(rows: Sequence[tuple[str, Estimate, str]]) -> list[ForestRow]:
    kept = [rows[index] for index in layout.farthest([abs(math.log(takes.value)) for _, takes, _ in rows])]
    told = layout.distinct([name for name, _, _ in kept])
    return [ForestRow(name, takes, verdict) for name, (_, takes, verdict) in zip(told, kept, strict=True)]
