"""The main picture: each comparison's ratio with its interval, the margin as a band, and the A/A control."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict
from harness.report import format
from harness.report.charts import axes, layout
from harness.report.charts.layout import Specification
from harness.report.charts.picture import Words
from harness.report.comparisons import Comparisons, Line

#: What stands beside a comparison that has no verdict.
NO_VERDICT = "no verdict"

#: For each verdict its shape, the colour of its outline, and that of its inside: told apart in black and white too.
LOOKS = {
    Verdict.FASTER.value: ("triangle-right", layout.BLUE, layout.BLUE),
    Verdict.SLOWER.value: ("triangle-left", layout.VERMILION, layout.VERMILION),
    Verdict.SAME.value: ("circle", layout.GREEN, layout.GREEN),
    Verdict.UNCLEAR.value: ("circle", layout.INK, "white"),
    NO_VERDICT: ("diamond", layout.INK, "white"),
}

# 1.5 from 0.6667
_FACTOR = "format(max(datum.value, 1 / datum.value), '.3~g')"
_MARK = f"abs(log(datum.value)) < 1e-9 ? 'equal' : {_FACTOR} + (datum.value > 1 ? '× faster' : '× slower')"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison: time(other) / time(cell), above 1 when what stands before "against" is faster.

    `gain` is the same as the source's percentage.
    """

    name: str
    estimate: Estimate
    verdict: str
    gain: str


@dataclass(frozen=True, slots=True)
class Ratios:
    """The comparisons that are drawn, at least one, in the table's order, `of` so many that did the same work.

    `different` did not, and are not drawn. `margin` is a share, 0.03 for 3 %; `control` is the A/A control's ratio
    where it has an interval.
    """

    rows: Sequence[Ratio]
    of: int
    different: int
    margin: float
    control: Estimate | None

    @property
    def shown(self) -> Interval:
        """From where to where the axis goes."""
        estimates = [row.estimate for row in self.rows] + ([self.control] if self.control else [])
        return axes.domain(estimates, around=(1.0 / (1.0 + self.margin), 1.0 + self.margin))

    @property
    def cut(self) -> int:
        """How many intervals reach beyond the axis."""
        intervals = (row.estimate.interval for row in self.rows)
        return sum(len(axes.bar(each, self.shown).caps) < 2 for each in intervals if each)

    @property
    def resolved(self) -> str:
        """The control's difference as a percentage, with its interval."""
        return format.gain(self.control) if self.control else ""

    @property
    def slowest(self) -> Ratio:
        """The one with the lowest ratio."""
        return min(self.rows, key=lambda row: row.estimate.value)

    @property
    def fastest(self) -> Ratio:
        """The one with the highest ratio."""
        return max(self.rows, key=lambda row: row.estimate.value)


def ratios(view: Comparisons, control: Estimate | None, margin: float) -> Ratios | None:
    """What is drawn of a table's comparisons: those farthest from 1; None where none did the same work."""
    # two entries of a header may ask for the same comparison
    lines = {(line.compared.cell, line.compared.other): line for line in reversed(view.lines)}
    same = [line for line in reversed(lines.values()) if line.compared.verdict is not Verdict.DIFFERENT_WORK]
    if not same:
        return None
    kept = [same[index] for index in layout.farthest([_distance(line) for line in same])]
    names = layout.distinct([", ".join([*line.labels, line.what]) for line in kept])
    return Ratios(
        rows=[
            Ratio(name, line.compared.estimate, line.compared.verdict or NO_VERDICT, line.gain)
            for name, line in zip(names, kept, strict=True)
        ],
        of=len(same),
        different=len(lines) - len(same),
        margin=margin,
        control=control if control and control.interval else None,
    )


def specification(chart: Ratios, words: Words) -> Specification:
    """The chart as Vega-Lite."""
    shown = chart.shown
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [shown.low, shown.high], "nice": False},
        "axis": {
            "title": words.axis,
            "values": axes.ratio_marks(shown, layout.WIDTH),
            "labelExpr": _MARK,
            "grid": False,
        },
    }
    y = layout.lines([row.name for row in chart.rows])
    verdicts = [verdict for verdict in LOOKS if any(row.verdict == verdict for row in chart.rows)]
    shapes, strokes, fills = zip(*(LOOKS[verdict] for verdict in verdicts), strict=True)
    bars = [(row, axes.bar(row.estimate.interval, shown)) for row in chart.rows if row.estimate.interval]

    def by_verdict(range_: Sequence[str]) -> dict[str, Any]:
        scale = {"domain": verdicts, "range": list(range_)}
        return {"field": "verdict", "type": "nominal", "scale": scale, "legend": None}

    def at(field: str) -> dict[str, Any]:
        return {"field": field, **x}

    return layout.specification(
        words,
        [
            layout.layer(
                {"type": "rect", "color": "#dddddd"},
                [{"low": max(shown.low, 1.0 / (1.0 + chart.margin)), "high": min(shown.high, 1.0 + chart.margin)}],
                x=at("low"),
                x2={"field": "high"},
            ),
            layout.layer({"type": "rule", "color": layout.FAINT}, [{"at": 1.0}], x=at("at")),
            layout.layer(
                {"type": "rule", "color": layout.INK, "strokeDash": [2, 3]},
                [{"at": end} for end in _control(chart, shown)],
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
                [{"name": row.name, "verdict": row.verdict, "ratio": row.estimate.value} for row in chart.rows],
                y=y,
                x=at("ratio"),
                shape=by_verdict(shapes),
                stroke=by_verdict(strokes),
                fill=by_verdict(fills),
            ),
            layout.beside([(row.name, row.verdict) for row in chart.rows], y=y),
            layout.beside([(row.name, row.gain) for row in chart.rows], y=y, pixels=72),
        ],
    )


def _control(chart: Ratios, shown: Interval) -> list[float]:
    """The ends of the control's interval that lie on the axis."""
    ends = chart.control and chart.control.interval
    return list(axes.bar(ends, shown).caps) if ends else []


def _distance(line: Line) -> float:
    return abs(math.log(line.compared.estimate.value))
